"""Three lines of Spark give the answers of the function itself, where Spark and Java are installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from loans import loans, write_models

from cfproto_plugin.integrations.datasets import FrameExplainer

pytestmark = [
    pytest.mark.needs("pyspark"),
    pytest.mark.skipif(shutil.which("java") is None, reason="needs Java"),
    pytest.mark.filterwarnings("ignore"),  # of Spark's own code
    pytest.mark.slow,
]


def test_map_in_pandas_gives_the_same_answers(tmp_path, monkeypatch):
    from pyspark.sql import SparkSession
    from pyspark.sql.pandas.types import from_arrow_schema

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    write_models(tmp_path)
    rows = loans(24, seed=3).assign(id=range(24))
    rows.to_parquet(tmp_path / "rows.parquet")
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        explain = FrameExplainer(tmp_path / "explainer.zip", keep={"id": "int64"})
        frame = spark.read.parquet(str(tmp_path / "rows.parquet"))
        answers = frame.mapInPandas(explain.each, from_arrow_schema(explain.schema))
        answers.write.parquet(str(tmp_path / "answers"))
    finally:
        spark.stop()
    found = pd.read_parquet(tmp_path / "answers").sort_values("id")
    alone = explain(rows)
    assert found["id"].tolist() == alone["id"].tolist()
    assert found["income"].tolist() == alone["income"].tolist()
    assert found["status"].tolist() == alone["status"].tolist()


def test_the_recipe_of_the_page_runs_as_it_is_printed(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "datasets.md").read_text(encoding="utf-8")
    blocks = [text for _, text in re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)]
    rows, recipe = (next(text for text in blocks if word in text) for word in ("to_parquet", "SparkSession"))
    for code in (rows, recipe):
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, env=environment, timeout=600)
    found = pd.read_parquet(tmp_path / "answers-of-spark").sort_values("patient").reset_index(drop=True)
    alone = FrameExplainer(tmp_path / "explainer.zip", keep={"patient": "int64"})(
        pd.read_parquet(tmp_path / "rows.parquet")
    )
    assert len(found) == 569
    pd.testing.assert_frame_equal(found.drop(columns="row"), alone.drop(columns="row"), check_dtype=False)
