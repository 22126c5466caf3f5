"""What `save` writes and replaces, what `load` asks for, and what it says when something is not as it was."""

from __future__ import annotations

import json
import os
import pickletools
import stat
import sys
import time
import warnings
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hostile import edited_manifest, parts_of
from saved_cases import by_first, content, enough_income, numbers, people
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from cfproto_plugin import (
    AdapterSpec,
    CounterfactualExplainer,
    Features,
    ModelFile,
    SearchConfig,
    adapt,
    hookimpl,
    register,
    unregister,
)
from cfproto_plugin.errors import FileError, InputError, ModelError, NotFittedError, UnknownNameError
from cfproto_plugin.files import locks, reading, writing
from cfproto_plugin.prototypes.kdtree import KDTreePrototypes

load = CounterfactualExplainer.load
xgboost = pytest.mark.needs("xgboost")
skops = pytest.mark.needs("skops")


@pytest.fixture(scope="module")
def data():
    return numbers(120)


@pytest.fixture(scope="module")
def logistic(data):
    return LogisticRegression().fit(*data)


@pytest.fixture(scope="module")
def boosted(data):
    from xgboost import XGBClassifier

    return CounterfactualExplainer(XGBClassifier(n_estimators=5, n_jobs=1).fit(*data)).fit(data[0])


@pytest.fixture(scope="module")
def function(data):
    return CounterfactualExplainer(by_first).fit(data[0])


def assert_same(found, expected, rows):
    assert content(found.explain(rows)) == content(expected.explain(rows))


# Writing


@xgboost
@pytest.mark.parametrize("name", ["explainer", "explainer.zip", "explainer.cfproto", "Explainer.ZIP"])
def test_a_folder_or_one_file_is_written_without_any_pickle(boosted, data, tmp_path, name):
    saved = boosted.save(tmp_path / name)
    assert saved.models == {"model": "model.json"}
    place = tmp_path / name
    if place.is_dir():
        parts = {each.name: each.read_bytes() for each in place.iterdir()}
    else:
        with zipfile.ZipFile(place) as archive:
            parts = {each: archive.read(each) for each in archive.namelist()}
    assert {each.partition("-")[0].partition(".")[0] for each in parts} == {"manifest", "explainer", "arrays", "model"}
    for part in parts.values():
        with pytest.raises(ValueError):
            list(pickletools.genops(part))
    assert_same(load(place), boosted, data[0][:3])


@xgboost
def test_the_same_explainer_gives_the_same_bytes(boosted, tmp_path):
    for name in ("a.zip", "b.zip"):
        boosted.save(tmp_path / name)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


@xgboost
def test_a_loaded_explainer_can_be_saved_again_and_is_the_same_file(boosted, tmp_path):
    boosted.save(tmp_path / "a.zip")
    load(tmp_path / "a.zip").save(tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


@skops
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_in_the_order_of_fortran_give_the_same_to_the_last_bit(tmp_path, dtype):
    rng = np.random.default_rng(0)
    x = np.asfortranarray(rng.gamma(2.0, size=(300, 8)) * 10.0 ** rng.integers(-2, 3, 8), dtype=dtype)
    explainer = CounterfactualExplainer(LogisticRegression(max_iter=3000).fit(x, x[:, 0] > np.median(x[:, 0]))).fit(x)
    explainer.save(tmp_path / "a.zip")
    found = load(tmp_path / "a.zip")
    assert found.fitted_.data.flags.f_contiguous == explainer.fitted_.data.flags.f_contiguous
    assert_same(found, explainer, x[:20])


@pytest.mark.parametrize("place", ["index", "column", "cells", "moments"])
def test_a_time_zone_without_a_name_is_refused_at_save(tmp_path, place):
    from dateutil import tz

    when = pd.date_range("2020", periods=60, tz=tz.gettz("Europe/Berlin"))
    x = pd.DataFrame({"n": np.random.default_rng(0).normal(size=60)})
    if place == "index":
        x.index = when
    else:
        cells = [each.to_pydatetime() for each in when] if place == "moments" else list(when)
        x["when"] = when if place == "column" else pd.Series(cells, dtype=object)

    def model(rows):
        score = 1 / (1 + np.exp(-np.asarray(rows["n"], dtype=float)))
        return np.column_stack([1 - score, score])

    explainer = CounterfactualExplainer(model, features=Features(immutable=tuple(x.columns[1:]))).fit(x)
    with pytest.raises(InputError, match=r"time zone tzfile.*use one of zoneinfo"):
        explainer.save(tmp_path / "a.zip", model="reference")
    assert not list(tmp_path.iterdir())


def test_the_model_is_not_asked_about_the_training_rows_again(data, tmp_path):
    asked = []

    def model(x):
        asked.append(len(x))
        return by_first(x)

    explainer = CounterfactualExplainer(model).fit(data[0])
    explainer.save(tmp_path / "a.zip", model="reference")
    asked.clear()
    load(tmp_path / "a.zip", model)
    assert sum(asked) < 30


def test_only_a_fitted_explainer_is_saved(logistic, tmp_path):
    with pytest.raises(NotFittedError, match=r"call explainer.fit"):
        CounterfactualExplainer(logistic).save(tmp_path / "a")


def test_a_model_that_changed_after_fit_is_not_saved(data, tmp_path):
    x, y = data
    model = LogisticRegression().fit(x, y)
    explainer = CounterfactualExplainer(model).fit(x)
    model.fit(x, 1 - y)
    with pytest.raises(ModelError, match=r"changed after explainer.fit"):
        explainer.save(tmp_path / "a")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("name", ["a", "a.zip"])
def test_saving_again_replaces_the_explainer(function, data, tmp_path, name):
    function.save(tmp_path / name, model="reference")
    other = CounterfactualExplainer(by_first, features=Features(immutable=[1])).fit(data[0])
    other.save(tmp_path / name, model="reference")
    assert load(tmp_path / name, by_first).features.immutable == (1,)
    assert len(list(tmp_path.iterdir())) == 1
    if name == "a":
        assert len(list((tmp_path / name).iterdir())) == 3


@pytest.mark.parametrize("name", ["a", "a.zip"])
def test_a_save_that_fails_leaves_the_older_explainer_as_it_was(function, data, tmp_path, name, monkeypatch):
    function.save(tmp_path / name, model="reference")
    before = {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()}
    other = CounterfactualExplainer(by_first, features=Features(immutable=[1])).fit(data[0])
    real, calls = os.replace, []

    def fails_in_the_end(source, target):
        calls.append(target)
        if name == "a.zip" or str(target).endswith("manifest.json"):
            raise OSError(28, "No space left on device")
        real(source, target)

    monkeypatch.setattr(writing.os, "replace", fails_in_the_end)
    with pytest.raises(OSError, match="No space"):
        other.save(tmp_path / name, model="reference")
    assert calls
    assert {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()} == before
    assert load(tmp_path / name, by_first).features.immutable == ()


@pytest.mark.parametrize("name", ["a", "a.zip"])
def test_a_first_save_that_fails_leaves_nothing(function, tmp_path, name, monkeypatch):
    monkeypatch.setattr(writing.os, "fsync", lambda _: (_ for _ in ()).throw(OSError(5, "Input/output error")))
    with pytest.raises(OSError, match="Input/output"):
        function.save(tmp_path / name, model="reference")
    assert not list(tmp_path.iterdir())


def test_what_a_killed_save_left_is_replaced(function, tmp_path):
    function.save(tmp_path / "a", model="reference")
    (tmp_path / "a" / "manifest.json").unlink()
    function.save(tmp_path / "a", model="reference")
    assert load(tmp_path / "a", by_first).fitted_ is not None


@pytest.fixture
def three(data):
    """Explainers that differ in their rows and rules."""
    return [
        CounterfactualExplainer(by_first, features=Features(immutable=[at])).fit(data[0][at * 9 :]) for at in (1, 2, 3)
    ]


def test_two_saves_to_a_folder_that_cannot_be_locked_leave_one_explainer_complete(three, tmp_path, monkeypatch):
    first, second, third = three
    path, real, waiting = tmp_path / "a", writing.put, [second]
    first.save(path, model="reference")

    def put(place):
        if place.name == "manifest.json" and waiting:
            waiting.pop().save(path, model="reference")  # another process is faster
        return real(place)

    monkeypatch.setattr(writing, "put", put)
    monkeypatch.setattr(locks, "fcntl", None)
    third.save(path, model="reference")
    assert load(path, by_first).features.immutable == (3,)


def test_what_a_killed_save_left_is_removed_after_a_day(three, tmp_path):
    path = tmp_path / "a"
    three[0].save(path, model="reference")
    (path / "manifest.json").unlink()
    old, young = path / "explainer-000000000000.json", path / "explainer-000000000001.json"
    for each, age in ((old, 25), (young, 1)):
        each.touch()
        os.utime(each, (time.time() - age * 3600,) * 2)
    three[1].save(path, model="reference")
    assert not old.exists()
    assert young.exists()


def test_cleaning_up_after_a_save_leaves_the_parts_of_another_that_is_under_way(three, tmp_path, monkeypatch):
    first, second, third = three
    path, real, waiting = tmp_path / "a", writing.put, [first]
    second.save(path, model="reference")

    def put(place):
        if place.name == "manifest.json" and waiting:
            waiting.pop()
            second.save(path, model="reference")
            third.save(path, model="reference")
        return real(place)

    monkeypatch.setattr(writing, "put", put)
    monkeypatch.setattr(locks, "fcntl", None)
    first.save(path, model="reference")
    assert load(path, by_first).features.immutable == (1,)


def test_an_explainer_that_is_replaced_while_it_is_read_is_read_again(three, tmp_path, monkeypatch):
    path, real, waiting = tmp_path / "a", reading._checked, [three[1]]
    three[0].save(path, model="reference")

    def checked(*given):
        found = real(*given)
        if waiting:
            waiting.pop().save(path, model="reference")
        return found

    monkeypatch.setattr(reading, "_checked", checked)
    assert load(path, by_first).features.immutable == (2,)


def test_a_part_that_vanishes_again_and_again_is_our_error(function, tmp_path, monkeypatch):
    path, real = tmp_path / "a", reading._checked
    function.save(path, model="reference")
    kept = {each.name: each.read_bytes() for each in path.iterdir()}

    def checked(*given):
        for name, text in kept.items():
            (path / name).write_bytes(text)
        found = real(*given)
        next(path.glob("arrays-*")).unlink()
        return found

    monkeypatch.setattr(reading, "_checked", checked)
    with pytest.raises(FileError, match=r"arrays-.*npz' cannot be read \(No such file"):
        load(path, by_first)


def test_a_folder_of_somebody_else_is_never_touched(function, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"cat")
    with pytest.raises(FileError, match=r"holds 'cat.jpg' and is no saved explainer; nothing was written"):
        function.save(tmp_path / "photos")
    assert [each.name for each in (tmp_path / "photos").iterdir()] == ["cat.jpg"]


def test_files_of_others_beside_an_explainer_are_kept(function, tmp_path):
    function.save(tmp_path / "a", model="reference")
    (tmp_path / "a" / "notes.txt").write_text("mine")
    function.save(tmp_path / "a", model="reference")
    assert (tmp_path / "a" / "notes.txt").read_text() == "mine"
    assert load(tmp_path / "a", by_first).fitted_ is not None


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (lambda path: None, "there is no folder"),
        (lambda path: (path.parent.mkdir(), path.write_text("x")), "is a file"),
        (lambda path: (path.parent.mkdir(), path.symlink_to(path.parent / "b")), "is a symbolic link"),
    ],
)
def test_a_place_that_cannot_be_used_is_named(function, tmp_path, prepare, words):
    path = tmp_path / "folder" / "a"
    prepare(path)
    with pytest.raises(FileError, match=words):
        function.save(path)


def test_permissions_are_those_of_any_new_file(function, tmp_path):
    function.save(tmp_path / "a.zip", model="reference")
    (tmp_path / "plain").touch()
    assert stat.S_IMODE((tmp_path / "a.zip").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


# Models


def test_a_function_is_saved_by_reference_with_a_warning(function, data, tmp_path):
    with pytest.warns(
        UserWarning, match="the model was saved by reference: it is a function.*Pass it to load as model="
    ):
        function.save(tmp_path / "a.zip")
    with pytest.raises(FileError, match=r"'builtins.function', was saved by reference .*: pass model="):
        load(tmp_path / "a.zip")
    assert_same(load(tmp_path / "a.zip", by_first), function, data[0][:3])


def test_model_file_demands_that_it_is_stored(function, tmp_path):
    with pytest.raises(FileError, match="cannot be stored safely: it is a function"):
        function.save(tmp_path / "a.zip", model="file")
    assert not list(tmp_path.iterdir())


def test_another_word_for_model_is_refused(function, tmp_path):
    with pytest.raises(InputError, match="model is 'pickle'; expected one of 'auto', 'file', 'reference'"):
        function.save(tmp_path / "a.zip", model="pickle")


def test_another_model_at_load_is_noticed(function, data, tmp_path):
    function.save(tmp_path / "a.zip", model="reference")
    with pytest.raises(ModelError, match="not the model that the explainer was fitted with: of one row it said"):
        load(tmp_path / "a.zip", lambda x: by_first(x[:, ::-1]))
    with pytest.raises(ModelError, match="its classes are now"):
        load(tmp_path / "a.zip", lambda x: np.full((len(x), 3), 1 / 3))
    with pytest.raises(ModelError, match="raised KeyError"):
        load(tmp_path / "a.zip", lambda x: {}["a"])


@skops
def test_types_of_a_forest_must_be_trusted_by_name(data, tmp_path):
    explainer = CounterfactualExplainer(RandomForestClassifier(5, random_state=0).fit(*data)).fit(data[0])
    saved = explainer.save(tmp_path / "a.zip")
    assert saved.trusted == ("sklearn.tree._tree.Tree",)
    with pytest.raises(FileError, match=r"pass trusted=\['sklearn.tree._tree.Tree'\]"):
        load(tmp_path / "a.zip")
    assert_same(load(tmp_path / "a.zip", trusted=saved.trusted), explainer, data[0][:3])
    assert_same(load(tmp_path / "a.zip", explainer.model), explainer, data[0][:3])


def test_without_skops_a_model_of_scikit_learn_is_saved_by_reference(logistic, data, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    explainer = CounterfactualExplainer(logistic).fit(data[0])
    with pytest.warns(UserWarning, match=r"by reference: .*pip install 'cfproto-plugin\[files\]'"):
        explainer.save(tmp_path / "a.zip")
    assert_same(load(tmp_path / "a.zip", logistic), explainer, data[0][:3])


class Stubborn(LogisticRegression):
    """Its decision is not among what a file keeps of it: the class is another after loading."""

    def __getstate__(self):
        return {**super().__getstate__(), "coef_": -self.coef_}


@skops
def test_a_model_that_its_file_does_not_keep_is_saved_by_reference(data, tmp_path):
    explainer = CounterfactualExplainer(Stubborn().fit(*data)).fit(data[0])
    with pytest.warns(UserWarning, match="by reference: read back from its .skops file it is another model"):
        explainer.save(tmp_path / "a.zip")


@pytest.mark.needs("torch")
def test_a_parameter_of_torch_may_be_called_file(tmp_path):
    import torch
    from cfproto_adapters.files import load_state, save_state

    class Module(torch.nn.Module):
        def __init__(self, value):
            super().__init__()
            self.file = torch.nn.Parameter(torch.full((2, 3), value))
            self.allow_pickle = torch.nn.Parameter(torch.tensor(value))

    save_state(Module(2.0), tmp_path / "a.state")
    found = load_state(tmp_path / "a.state", model=Module(0.0))
    assert torch.equal(found.file, torch.full((2, 3), 2.0))
    assert found.allow_pickle == 2.0


@pytest.mark.needs("torch")
def test_weights_of_torch_go_into_a_copy_of_the_module_that_is_given(tmp_path, data):
    import torch
    from saved_cases import net

    torch.manual_seed(0)
    x = data[0].astype(np.float32)
    model = net([(4, 8), (8, 2)])
    with torch.no_grad():
        model[2].bias += torch.log(model(torch.from_numpy(x))).mean(0).flip(0)
    explainer = CounterfactualExplainer(model).fit(x)
    assert explainer.save(tmp_path / "a.zip").models == {"model": "model.state"}
    with pytest.raises(FileError, match="saved as weights only: pass model="):
        load(tmp_path / "a.zip")
    untrained = net([(4, 8), (8, 2)])
    before = untrained[0].weight.detach().clone()
    assert_same(load(tmp_path / "a.zip", untrained), explainer, x[:3])
    assert torch.equal(untrained[0].weight, before)
    with pytest.raises(FileError, match="size mismatch"):
        load(tmp_path / "a.zip", net([(4, 9), (9, 2)]))


@pytest.mark.slow
@pytest.mark.needs("keras")
def test_a_keras_model_with_code_of_its_own_is_saved_by_reference(tmp_path, data):
    import keras

    x = data[0].astype(np.float32)
    layers = [keras.Input((4,)), keras.layers.Lambda(lambda x: x * 2), keras.layers.Dense(2, "softmax")]
    model = keras.Sequential(layers)
    model.layers[-1].set_weights([np.array([[1, -1]] + 3 * [[0, 0]], np.float32), np.zeros(2, np.float32)])
    explainer = CounterfactualExplainer(model).fit(x)
    with warnings.catch_warnings(record=True) as caught:  # Keras has warnings of its own
        warnings.simplefilter("always")
        explainer.save(tmp_path / "a.zip")
    assert [each for each in caught if "by reference" in str(each.message) and "ambda" in str(each.message)]
    assert_same(load(tmp_path / "a.zip", model), explainer, x[:2])


class Scorecard:
    """A model of a library that nobody has heard of."""

    def __init__(self, points, limit):
        self.points, self.limit = points, limit


class ScorecardAdapter:
    def __init__(self, model):
        self.model = model

    def predict(self, x):
        p = 1 / (1 + np.exp(self.model.limit - x @ self.model.points))
        return np.stack([1 - p, p], axis=1)


def save_card(model, path):
    path.write_text(" ".join(map(repr, [*model.points.tolist(), model.limit])))


def load_card(path, *, model=None, trusted=()):
    *points, limit = map(float, path.read_text().split())
    return Scorecard(np.array(points), limit)


@pytest.mark.parametrize("safe", [True, False])
def test_a_plugin_stores_its_models_in_a_format_of_its_own_if_that_is_safe(data, tmp_path, safe):
    class Plugin:
        @hookimpl
        def cfproto_adapters(self):
            files = (ModelFile((".card",), load_card, save_card, safe=safe),)
            claims = (f"{__name__}:Scorecard",)
            return [AdapterSpec("card", claims=claims, factory=ScorecardAdapter, files=files)]

    register(Plugin(), "cards")
    try:
        explainer = CounterfactualExplainer(Scorecard(np.array([1.0, -2.0, 0.5, 1.0]), 0.25)).fit(data[0])
        if safe:
            assert explainer.save(tmp_path / "a.zip").models == {"model": "model.card"}
            assert_same(load(tmp_path / "a.zip"), explainer, data[0][:3])
        else:
            with pytest.warns(UserWarning, match="by reference: the adapter 'card' has no file format"):
                explainer.save(tmp_path / "b.zip")
            assert_same(load(tmp_path / "b.zip", explainer.model), explainer, data[0][:3])
    finally:
        unregister("cards")
    if safe:
        with pytest.raises(UnknownNameError, match="no adapters named 'card'"):
            load(tmp_path / "a.zip")


def test_an_adapter_with_options_is_handed_over_as_the_model(logistic, data, tmp_path):
    explainer = CounterfactualExplainer(adapt(logistic)).fit(data[0])
    with pytest.warns(UserWarning, match="by reference"):
        explainer.save(tmp_path / "a.zip")
    assert_same(load(tmp_path / "a.zip", adapt(logistic)), explainer, data[0][:3])


def test_an_encoder_is_checked_too(data, tmp_path):
    x = data[0]

    def encoder(rows):
        return np.asarray(rows)[:, :2]

    explainer = CounterfactualExplainer(by_first, encoder=encoder).fit(x)
    explainer.save(tmp_path / "a.zip", model="reference")
    assert_same(load(tmp_path / "a.zip", by_first, encoder=encoder), explainer, x[:3])
    with pytest.raises(FileError, match=r"the encoder of .* was saved by reference .*: pass encoder="):
        load(tmp_path / "a.zip", by_first)
    with pytest.raises(ModelError, match="not the encoder that the explainer was fitted with: it made"):
        load(tmp_path / "a.zip", by_first, encoder=lambda rows: np.asarray(rows)[:, 1:3])
    with pytest.raises(ModelError, match="outputs have the shape"):
        load(tmp_path / "a.zip", by_first, encoder=lambda rows: np.asarray(rows)[:, :3])
    with pytest.raises(FileError, match="was saved without an autoencoder; leave it out"):
        load(tmp_path / "a.zip", by_first, encoder=encoder, autoencoder=encoder)


# Functions and objects


@pytest.fixture
def ruled(tmp_path):
    frame = people(120)[0][["income", "debt"]]
    rules = Features(relations=["debt <= 3*income", enough_income, lambda rows: np.asarray(rows["debt"]) >= 0])
    explainer = CounterfactualExplainer(by_income, features=rules).fit(frame)
    explainer.save(tmp_path / "a.zip", model="reference")
    return explainer, frame


def by_income(rows):
    p = 1 / (1 + np.exp(-(np.asarray(rows["income"]) - np.asarray(rows["debt"]) - 2200) / 500))
    return np.stack([1 - p, p], axis=1)


def test_functions_of_relations_are_handed_over_by_name_or_imported_if_trusted(ruled, tmp_path):
    explainer, frame = ruled
    _, _, third = explainer.features.relations
    unnamed = "test_save_and_load:ruled.<locals>.<lambda>"
    with pytest.raises(FileError, match=r"relation 2 is 'saved_cases:enough_income', which was saved by its name only"):
        load(tmp_path / "a.zip", by_income)
    for handed in (
        {"functions": {"enough_income": enough_income, unnamed: third}},
        {"functions": {unnamed: third}, "trusted": ["saved_cases:enough_income"]},
    ):
        assert_same(load(tmp_path / "a.zip", by_income, **handed), explainer, frame[:3])


def test_a_name_that_is_trusted_and_not_there_is_said_so(ruled, tmp_path, monkeypatch):
    monkeypatch.delattr("saved_cases.enough_income")
    with pytest.raises(FileError, match="cannot be imported"):
        load(tmp_path / "a.zip", by_income, trusted=["saved_cases:enough_income"])


def test_objects_for_prototypes_and_distances_are_handed_over(tmp_path):
    frame = people(120)[0][["income", "debt", "job"]]

    def all_alike(codes, n_categories, context, labels):
        return [1 - np.eye(count) for count in n_categories]

    explainer = CounterfactualExplainer(by_income, prototypes=KDTreePrototypes(k=3), distance=all_alike).fit(frame)
    explainer.save(tmp_path / "a.zip", model="reference")
    with pytest.raises(FileError, match="or pass prototypes="):
        load(tmp_path / "a.zip", by_income)
    with pytest.raises(FileError, match="or pass distance="):
        load(tmp_path / "a.zip", by_income, prototypes=KDTreePrototypes(k=3))
    handed = {"prototypes": KDTreePrototypes(k=3), "distance": all_alike}
    assert_same(load(tmp_path / "a.zip", by_income, **handed), explainer, frame[:3])


def test_an_adapter_that_was_passed_is_handed_over(data, tmp_path):
    class Mine:
        def predict(self, x):
            return by_first(x)

    explainer = CounterfactualExplainer(None, adapter=Mine()).fit(data[0])
    explainer.save(tmp_path / "a.zip")
    with pytest.raises(FileError, match="or pass adapter="):
        load(tmp_path / "a.zip")
    assert_same(load(tmp_path / "a.zip", adapter=Mine()), explainer, data[0][:3])


# Settings, versions, limits


def test_every_setting_comes_back(data, tmp_path):
    rules = Features(
        categorical=[3],
        immutable=[1],
        ranges={0: (-np.inf, 1.5)},
        allowed={3: (0.0, 1.0)},
        step={2: 0.5},
        weights={2: 3.0},
        decimals={0: 2},
        relations="x0 <= 2",
        scale=None,
    )
    search = SearchConfig(theta=1.0, max_changes=3, k=2, noise=0.2, fallback=False)
    x = data[0].copy()
    x[:, 3] = x[:, 3] > 0
    explainer = CounterfactualExplainer(by_first, features=rules, search=search, seed=7, distance="mvdm").fit(x)
    explainer.save(tmp_path / "a.zip", model="reference")
    found = load(tmp_path / "a.zip", by_first)
    assert (found.features, found.search, found.seed, found.distance) == (rules, search, 7, "mvdm")
    assert_same(found, explainer, x[:3])


def test_other_versions_are_named(function, tmp_path):
    function.save(tmp_path / "a", model="reference")
    versions = {**parts_of(tmp_path / "a")[0]["versions"], "numpy": "1.0", "gone-package": "3.2"}
    edited_manifest(tmp_path / "a", tmp_path / "b.zip", versions=versions)
    with pytest.warns(UserWarning, match=rf"numpy 1.0, now {np.__version__}; gone-package 3.2, now not installed"):
        load(tmp_path / "b.zip", by_first)


def test_the_limit_of_size_is_the_callers(function, tmp_path):
    function.save(tmp_path / "a.zip", model="reference")
    with pytest.raises(FileError, match=r"at most 1,000 are read. If you trust it, pass a larger max_bytes"):
        load(tmp_path / "a.zip", by_first, max_bytes=1000)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        *(({"max_bytes": each}, "max_bytes is .* whole number") for each in ("x", None, True, 1.5, 0)),
        *(({"trusted": each}, "trusted is .* expected names") for each in (5, None, [5], [["a"]])),
        *(({"functions": each}, "functions is .* expected a dict") for each in (5, [1], "abc", {1: 2})),
        *(({"path": each}, "path is .* expected text") for each in (5, None, b"a.zip")),
    ],
)
def test_what_load_is_given_is_checked(function, tmp_path, given, words):
    function.save(tmp_path / "a.zip", model="reference")
    with pytest.raises(InputError, match=words):
        load(**{"path": tmp_path / "a.zip", "model": by_first, **given})


@pytest.mark.parametrize("limit", ["bounds.MOST", "strict.MOST_VALUES"])
def test_data_that_could_not_be_read_again_is_not_written(tmp_path, monkeypatch, limit):
    x = pd.DataFrame(np.linspace(-1, 1, 60)[:, None])  # the names of its columns are a range
    explainer = CounterfactualExplainer(by_first).fit(x)
    monkeypatch.setattr(f"cfproto_plugin.files.{limit}", 10)
    with pytest.raises(FileError, match="at most 10"):
        explainer.save(tmp_path / "a.zip", model="reference")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("limit", "words"), [("_MOST_ZIPPED", "save to a folder"), ("MOST_JSON", "fewer rows")])
def test_what_could_not_be_read_again_is_not_written(function, tmp_path, monkeypatch, limit, words):
    monkeypatch.setattr(writing, limit, 100)
    with pytest.raises(FileError, match=words):
        function.save(tmp_path / "a.zip", model="reference")
    assert not list(tmp_path.iterdir())


def test_the_manifest_says_what_is_in_the_file(function, tmp_path):
    function.save(tmp_path / "a", model="reference")
    manifest = json.loads((tmp_path / "a" / "manifest.json").read_text())
    assert (manifest["format"], manifest["schema"]) == ("cfproto-explainer", 1)
    assert {"cfproto-plugin", "numpy", "python", "scipy", "scikit-learn"} <= set(manifest["versions"])
    assert set(manifest["files"]) == {"explainer", "arrays"}


def test_writing_into_the_training_data_after_fit_does_not_reach_the_file(data, tmp_path):
    frame = pd.DataFrame(data[0].copy(), columns=list("abcd"))
    explainer = CounterfactualExplainer(lambda rows: by_first(np.asarray(rows))).fit(frame)
    expected = explainer.fitted_.data.copy()
    frame.iloc[:, :] = 0.0
    explainer.save(tmp_path / "a.zip", model="reference")
    found = load(tmp_path / "a.zip", explainer.model)
    pd.testing.assert_frame_equal(found.fitted_.data, expected)


def test_a_column_named_as_the_format_names_its_own_comes_back(data, tmp_path):
    frame = pd.DataFrame(data[0], columns=["$npy", "$type", "c", "d"])
    rules = Features(ranges={"$npy": (-1, 2)}, immutable=["$type"])
    explainer = CounterfactualExplainer(lambda rows: by_first(np.asarray(rows)), features=rules).fit(frame)
    explainer.save(tmp_path / "a.zip", model="reference")
    found = load(tmp_path / "a.zip", explainer.model)
    assert found.features == rules
    assert_same(found, explainer, frame[:3])


def test_features_of_a_saved_explainer_are_those_of_fit(function, data, tmp_path):
    rules = replace(Features(), immutable=(2,))
    explainer = CounterfactualExplainer(by_first, features=rules).fit(data[0])
    explainer.save(tmp_path / "a.zip", model="reference")
    assert load(tmp_path / "a.zip", by_first).features == rules
