"""The files that the built-in adapters read models from. `tests/cli` reads one of every kind."""

from __future__ import annotations

import numpy as np
import pytest

from cfproto_plugin.plugins import registry

X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)


def formats():
    return {suffix: file for suffix, ((_, _, file),) in registry().file_formats().items()}


def test_only_formats_that_run_no_code_are_called_safe():
    assert {suffix for suffix, file in formats().items() if file.safe} == {
        ".json",
        ".ubj",
        ".keras",
        ".skops",
        ".state",
    }


@pytest.mark.parametrize("suffix", [".json", ".ubj"])
@pytest.mark.parametrize("native", [False, True])
def test_xgboost_model_is_written_and_read_again(tmp_path, suffix, native):
    from xgboost import XGBClassifier

    model = XGBClassifier(n_estimators=3, n_jobs=1).fit(X, X[:, 0] > 0)
    kept = model.get_booster() if native else model
    formats()[suffix].save(kept, tmp_path / f"model{suffix}")
    again = formats()[suffix].load(tmp_path / f"model{suffix}")
    assert type(again) is type(kept)
    booster = again if native else again.get_booster()
    np.testing.assert_array_equal(booster.inplace_predict(X), model.get_booster().inplace_predict(X))


@pytest.mark.needs("keras")
def test_keras_model_is_written_and_read_again(tmp_path):
    import keras

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, "softmax")])
    formats()[".keras"].save(model, tmp_path / "model.keras")
    again = formats()[".keras"].load(tmp_path / "model.keras")
    np.testing.assert_allclose(again(X), model(X), rtol=1e-6)


@pytest.mark.needs("torch")
def test_weights_are_read_into_the_module_that_is_given(tmp_path):
    import torch

    torch.save((trained := torch.nn.Linear(3, 2)).state_dict(), tmp_path / "weights.pt")
    again = formats()[".pt"].load(tmp_path / "weights.pt", model=(empty := torch.nn.Linear(3, 2)))
    assert again is empty
    assert torch.equal(again.weight, trained.weight)


@pytest.mark.needs("xgboost")
@pytest.mark.parametrize(
    "settings",
    [
        {"booster": "gblinear"},
        {"booster": "dart", "rate_drop": 0.2},
        {"tree_method": "exact", "gamma": 1.0},  # prunes nodes
        {"grow_policy": "lossguide", "max_leaves": 9},
        {"num_parallel_tree": 3},
        {"multi_strategy": "multi_output_tree"},
    ],
    ids=str,
)
@pytest.mark.parametrize("classes", [2, 3])
def test_xgboost_models_of_every_kind_pass_the_look_at_their_file(tmp_path, settings, classes):
    from xgboost import XGBClassifier

    y = (X[:, 0] > 0).astype(int) + (classes == 3) * (X[:, 1] > 0)
    model = XGBClassifier(n_estimators=4, n_jobs=1, **settings).fit(X, y)
    formats()[".json"].save(model, tmp_path / "model.json")
    again = formats()[".json"].load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
