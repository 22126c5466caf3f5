"""Three lines of Spark give the answers of the function itself, where Spark and Java are installed."""

from __future__ import annotations

import os
import shutil
import sys

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
