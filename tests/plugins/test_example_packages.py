"""The packages under examples/, installed by pip into an environment of their own and used as a stranger would."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.install
TOP = Path(__file__).parents[2]
PACKAGES = ("cfproto-lightgbm", "cfproto-onnx")
NOT_OURS = {"PYTHONPATH", "PYTEST_ADDOPTS", "CFPROTO_DISABLE_PLUGINS"}
USE = """
import json
import sys

import lightgbm as lgb
import numpy as np
import onnxruntime
import pandas as pd
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_breast_cancer

from cfproto_plugin import CounterfactualExplainer, Features

X, y = load_breast_cancer(return_X_y=True)
told = {"imported by hand": [name for name in sys.modules if name.startswith(("cfproto_lightgbm", "cfproto_onnx"))]}


def tell(name, e, predicted):
    told[name] = {
        "adapter": e.meta["adapter"],
        "status": e.status.tolist(),
        "confirmed": np.asarray(predicted == e.counterfactual_class).tolist(),
        "changed class": (e.counterfactual_class != e.original_class).tolist(),
    }


booster = lgb.train({"objective": "binary", "num_threads": 1, "verbose": -1}, lgb.Dataset(X[20:], y[20:]), 30)
booster.save_model("model.txt")
e = CounterfactualExplainer(booster).fit(X[20:]).explain(X[:20])
tell("booster", e, booster.predict(e.counterfactual) > 0.5)

rng = np.random.default_rng(0)
rows = pd.DataFrame({"age": rng.integers(18, 80, 600), "income": rng.lognormal(3, 0.5, 600)})
rows["housing"] = pd.Categorical(rng.choice(["own", "rent", "free"], 600))
rows["purpose"] = pd.Categorical(rng.choice(["car", "house", "travel"], 600))
good = np.where((rows["income"] > 20) & (rows["housing"] != "rent") | (rows["age"] > 60), "good", "bad")
model = lgb.LGBMClassifier(n_estimators=30, n_jobs=1, verbose=-1).fit(rows, good)
some, rules = rows[model.predict(rows) == "bad"][:15], Features(immutable=("purpose",))
named = CounterfactualExplainer(model, prototypes="medoid", distance="occurrence", features=rules)
e = named.fit(rows).explain(some)
tell("classifier", e, model.predict(e.counterfactual))
told["classifier"]["immutable kept"] = bool((e.counterfactual["purpose"] == some["purpose"]).all())
provider = type(named.fitted_.guide.provider)
told["provider"] = provider.__module__ + "." + provider.__qualname__
plain = CounterfactualExplainer(model, features=rules).fit(rows)
told["distance counts"] = any(
    not np.allclose(ours, plain.fitted_.space.embeddings[at]) for at, ours in named.fitted_.space.embeddings.items()
)

scale, centre = X.std(axis=0), X.mean(axis=0)
direction = ((X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)) / scale**2).astype(np.float32)[:, None]
shift = np.float32(-centre @ direction)
nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["z"]), helper.make_node("Sigmoid", ["z"], ["p"])]
into = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 30])
out = helper.make_tensor_value_info("p", TensorProto.FLOAT, ["n", 1])
weights = [numpy_helper.from_array(direction, "w"), numpy_helper.from_array(shift, "b")]
graph = helper.make_model(
    helper.make_graph(nodes, "linear", [into], [out], weights),
    opset_imports=[helper.make_opsetid("", 17)],
    ir_version=8,
)
open("model.onnx", "wb").write(graph.SerializeToString())
session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
e = CounterfactualExplainer(session).fit(X).explain(X[:15])
tell("session", e, session.run(None, {"x": e.counterfactual.astype(np.float32)})[0][:, 0] > 0.5)
names = [f"c{i}" for i in range(30)]
pd.DataFrame(X[20:], columns=names).to_csv("train.csv", index=False)
pd.DataFrame(X[:3], columns=names).to_csv("rows.csv", index=False)
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The interpreter of an environment with the product and both packages, installed as the README says."""
    folder = tmp_path_factory.mktemp("environment")
    run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], folder)
    python = folder / "env" / "bin" / "python"
    packages = [f"{TOP / 'examples' / name}[test]" for name in PACKAGES]
    options = ["-q", "--no-compile", "-c", TOP / "tests" / "constraints.txt"]
    run([sys.executable, "-m", "pip", "--python", python, "install", *options, f"{TOP}[pandas]", *packages], folder)
    return python


@pytest.fixture(scope="module")
def used(python):
    script = python.parent / "use.py"
    script.write_text(USE)
    return json.loads(run([python, "-W", "error", script], python.parent))


def run(command, folder):
    """Run it in the folder, which also keeps the bytecode, so that none is written beside the examples."""
    own = {"OMP_NUM_THREADS": "1", "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    env = {name: value for name, value in os.environ.items() if name not in NOT_OURS} | own
    done = subprocess.run(list(map(str, command)), cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_native_booster_works_with_no_import_and_no_registration(used):
    assert used["imported by hand"] == []
    assert used["booster"]["adapter"] == "lightgbm"
    assert used["booster"]["status"] == ["found"] * 20


def test_classifier_goes_to_its_own_adapter_and_not_to_the_one_of_its_base_class(used):
    assert used["classifier"]["adapter"] == "lightgbm"
    assert set(used["classifier"]["status"]) <= {"found", "fallback"}
    assert used["classifier"]["immutable kept"]


def test_provider_and_distance_of_the_package_can_be_named(used):
    assert used["provider"] == "cfproto_lightgbm.medoids.MedoidPrototypes"
    assert used["distance counts"]


def test_exported_model_works_with_no_import_and_no_registration(used):
    assert used["session"]["adapter"] == "onnx"
    assert used["session"]["status"] == ["found"] * 15


@pytest.mark.parametrize("model", ["booster", "classifier", "session"])
def test_model_itself_confirms_every_counterfactual(used, model):
    assert all(used[model]["confirmed"])
    assert all(used[model]["changed class"])


@pytest.mark.parametrize("model", ["model.txt", "model.onnx"])
def test_saved_model_is_explained_on_the_command_line(python, used, model):
    tables = ["--train", "train.csv", "--rows", "rows.csv"]
    lines = json.loads(run([python.parent / "cfproto", "explain", model, *tables, "--json"], python.parent))
    assert [line["status"] for line in lines] == ["found"] * 3
    assert all(line["original_class"] != line["counterfactual_class"] for line in lines)


def test_plugins_command_lists_the_packages_beside_the_built_in_ones(python):
    listed = {
        plugin["name"]: plugin
        for plugin in json.loads(run([python.parent / "cfproto", "plugins", "--json"], python.parent))
    }
    assert {"keras", "sklearn", "torch", "xgboost", "prototypes", "distances", "lightgbm", "onnx"} <= set(listed)
    assert {plugin["status"] for plugin in listed.values()} == {"ok"}
    ours = listed["lightgbm"]
    assert (ours["adapters"], ours["prototypes"], ours["distances"]) == (["lightgbm"], ["medoid"], ["occurrence"])
    assert ours["source"] == "cfproto-lightgbm 0.1.0"
    assert listed["onnx"]["adapters"] == ["onnx"]
    assert (ours["files"], listed["onnx"]["files"]) == ([".txt"], [".onnx"])


@pytest.mark.parametrize("package", PACKAGES)
def test_package_passes_its_own_tests(python, package):
    out = run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", TOP / "examples" / package], python.parent)
    assert re.search(r"^\d+ passed", out, re.MULTILINE)


def test_the_product_does_not_mention_them():
    files = [path for folder in ("cfproto_plugin", "adapters") for path in (TOP / folder).rglob("*") if path.is_file()]
    texts = {path: path.read_text() for path in files if path.suffix not in {".pyc", ".so"}}
    assert len(texts) > 50
    assert not [str(path) for path, text in texts.items() if re.search(r"lightgbm|lgbm|onnx", text, re.IGNORECASE)]
