"""An explainer is saved in one process and loaded in another, which gives the same counterfactuals bit for bit."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

import networks
import pytest
import saved_cases

from cfproto_plugin import CounterfactualExplainer, SearchConfig

pytestmark = pytest.mark.needs("skops", "xgboost", "pandas", "polars", "pyarrow")


def save_case(folder, name, explainer, rows, *, zipped):
    """Save an explainer, what it said of the rows, and what must be trusted to load it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*by reference.*")
        saved = explainer.save(folder / (f"{name}.zip" if zipped else name))
    (folder / f"{name}.expected.json").write_text(explainer.explain(rows).to_json(), encoding="utf-8")
    (folder / f"{name}.trusted.json").write_text(json.dumps(saved.trusted), encoding="utf-8")
    return saved


def loaded_elsewhere(folder):
    """By case, the fields that another process finds to be different."""
    done = subprocess.run([sys.executable, saved_cases.__file__, folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_tables_of_every_kind_answer_the_same_in_another_process(tmp_path):
    expected = {}
    for number, case in enumerate(saved_cases.TABLES):
        save_case(tmp_path, case.__name__, *case(), zipped=number % 2 == 0)
        expected[case.__name__] = []
    assert loaded_elsewhere(tmp_path) == expected


@pytest.mark.slow
@pytest.mark.needs("torch", "keras")
def test_networks_with_encoder_and_autoencoder_answer_the_same_in_another_process(tmp_path, digits):
    x, search = digits.x[:200], SearchConfig(max_iterations=40, c_steps=2, method="fista")
    rows = x[:3]
    stored = {}
    for name, make in (("torch", networks.in_torch), ("keras", networks.in_keras)):
        explainer = CounterfactualExplainer(
            make(digits.classifier),
            encoder=make(digits.encoder, softmax=False),
            autoencoder=make(digits.autoencoder, softmax=False),
            search=search,
        ).fit(x)
        stored[name] = save_case(tmp_path, f"{name}_images", explainer, rows, zipped=name == "torch").models
    table, y = saved_cases.numbers()
    layers = networks.trained(table.astype("float32"), y, (4, 8, 2))
    for name, make in (("torch", networks.in_torch), ("keras", networks.in_keras)):
        explainer = CounterfactualExplainer(make(layers)).fit(table.astype("float32"))
        save_case(tmp_path, f"{name}_table", explainer, table[:3].astype("float32"), zipped=name == "keras")
    assert set(stored["torch"].values()) == {"model.state", "encoder.state", "autoencoder.state"}
    assert set(stored["keras"].values()) == {"model.keras", "encoder.keras", "autoencoder.keras"}
    cases = ("torch_images", "keras_images", "torch_table", "keras_table")
    assert loaded_elsewhere(tmp_path) == {case: [] for case in cases}
    assert not list(Path(tmp_path).rglob("*.pkl"))
