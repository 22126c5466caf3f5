"""The scikit-learn adapter: conformance, labels, frames, errors, threads."""

from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from cfproto_adapters.sklearn_adapter import cfproto_adapters, sklearn_adapter
from sklearn import ensemble, linear_model, neighbors
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.multiclass import OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    OneHotEncoder,
    StandardScaler,
)
from sklearn.svm import SVC
from sklearn_models import (
    COLUMNS,
    GRADIENT,
    INNER,
    SPLITTING,
    Forest,
    LogisticRegression,
    cases,
    fitted,
    labels,
    mlp,
    model_of,
    perturbed,
    table,
    thresholds,
)
from xgboost import XGBClassifier

from cfproto_plugin.errors import InputError, ModelError, NotFittedError
from cfproto_plugin.plugins import adapted
from cfproto_plugin.testing import check_adapter


@cases
def test_every_classifier_conforms(name, classes):
    adapter = sklearn_adapter(model_of(name, classes))
    check_adapter(adapter, perturbed(classes, 12))
    assert hasattr(adapter, "vjp") == (name in GRADIENT)
    assert (thresholds(adapter) is not None) == (name in SPLITTING)


@cases
def test_predict_is_the_answer_of_the_model_itself_and_quick_is_as_near_as_rounding(name, classes):
    model, x = model_of(name, classes), perturbed(classes)
    adapter = sklearn_adapter(model)
    plain = hasattr(model, "predict_proba") and "svc" not in name
    for rows in (x, x.astype(np.float32)):
        rows.flags.writeable = False
        found = adapter.predict(rows)
        if plain:
            same = (found == model.predict_proba(rows)).all(axis=1)
            assert same[model.predict_proba(rows).argmax(axis=1) == found.argmax(axis=1)].all()
        if adapter.quick is not None:
            assert np.abs(adapter.quick(rows) - found).max() < (1e-10 if rows.dtype == np.float64 else 1e-5)
    assert (adapter.quick is not None) == (name in GRADIENT | SPLITTING or name in {"clipped", "polynomial"})


@cases
def test_the_largest_probability_is_the_class_the_model_predicts(name, classes):
    model, x = model_of(name, classes), perturbed(classes)
    assert np.array_equal(labels(sklearn_adapter(model), x), model.predict(x))


@pytest.mark.parametrize(
    "names", [["a", "b", "c"], [3, 1, 7], [0.0, 1.0, -2.0], np.array(["x", "y", "z"], dtype=object)]
)
@pytest.mark.parametrize("model", [LogisticRegression(), INNER, SVC(), neighbors.NearestCentroid()])
def test_labels_of_any_type_are_kept(model, names):
    x, y = table(3)
    model = clone(model).fit(x, np.asarray(names)[y])
    adapter = sklearn_adapter(model)
    assert adapter.classes.tolist() == sorted(names)
    assert np.array_equal(labels(adapter, x), model.predict(x))


def test_boolean_labels_are_kept():
    x, y = table(2)
    assert sklearn_adapter(LogisticRegression().fit(x, y == 1)).classes.tolist() == [False, True]


@pytest.mark.parametrize("model", [LogisticRegression(), INNER, SVC(), make_pipeline(StandardScaler(), INNER), mlp()])
def test_models_fitted_with_names_take_frames_and_arrays(model):
    x, y = table(3)
    frame = pd.DataFrame(x, columns=COLUMNS)
    adapter = sklearn_adapter(clone(model).fit(frame, y))
    assert adapter.accepts_frames
    assert np.array_equal(adapter.predict(frame[:50]), adapter.predict(x[:50]))
    if hasattr(adapter, "vjp"):
        ones = np.ones((50, 3)) * [1, 2, 3]
        assert np.array_equal(adapter.vjp(frame[:50])[1](ones), adapter.vjp(x[:50])[1](ones))


@pytest.mark.parametrize("model", [LogisticRegression(), INNER, SVC(), make_pipeline(StandardScaler(), INNER)])
def test_models_fitted_without_names_take_frames_as_arrays(model):
    x, _ = table(3)
    adapter = sklearn_adapter(fitted(model, 3))
    assert not adapter.accepts_frames
    assert np.array_equal(adapter.predict(pd.DataFrame(x, columns=COLUMNS)), adapter.predict(x))


def test_columns_are_found_by_name_and_missing_ones_reported():
    x, y = table(2)
    frame = pd.DataFrame(x, columns=COLUMNS)
    adapter = sklearn_adapter(LogisticRegression().fit(frame, y))
    assert np.allclose(adapter.predict(frame[COLUMNS[::-1]]), adapter.predict(x), rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match=r"missing:\n- c3"):
        adapter.predict(frame.drop(columns="c3"))
    with pytest.raises(InputError, match="'c3'"):
        adapter.quick(frame.drop(columns="c3"))
    with pytest.raises(InputError, match="rows of 5 columns"):
        adapter.predict(x[:, :5])
    with pytest.raises(InputError, match="expected 8 columns"):
        adapter.quick(x[:, :5])


def test_a_pipeline_of_raw_columns_predicts_frames():
    x, y = table(2)
    frame = pd.DataFrame({"size": x[:, 0], "colour": np.where(x[:, 1] > 0, "red", "blue")})
    steps = ColumnTransformer(
        [("n", StandardScaler(), ["size"]), ("c", OneHotEncoder(), ["colour"])], sparse_threshold=1.0
    )
    for last in (INNER, LogisticRegression(), SVC()):
        model = make_pipeline(steps, clone(last)).fit(frame, y)
        adapter = sklearn_adapter(model)
        assert adapter.accepts_frames
        assert np.array_equal(labels(adapter, frame), model.predict(frame))


class TwoColumns(TransformerMixin, BaseEstimator):
    """A user's own step that picks columns by name and keeps no attributes."""

    def fit(self, x, y=None):
        return self

    def transform(self, x):
        return x[["c1", "c0"]].to_numpy()


def test_own_steps_get_the_frame_as_it_is():
    x, y = table(2)
    frame = pd.DataFrame(x, columns=COLUMNS)
    model = make_pipeline(TwoColumns(), LogisticRegression()).fit(frame, y)
    adapter = sklearn_adapter(model)
    assert adapter.accepts_frames
    assert np.abs(adapter.predict(frame) - model.predict_proba(frame)).max() < 1e-12


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        make_pipeline(StandardScaler(), Forest()),
        GridSearchCV(SVC(), {}),
        FixedThresholdClassifier(SVC()),
    ],
)
def test_unfitted_models_ask_for_fit(model):
    with pytest.raises(NotFittedError, match=r"is not fitted: call its fit\(X, y\)"):
        sklearn_adapter(model)
    with pytest.raises(NotFittedError):
        sklearn_adapter(PCA(2), role="transform")


def two_outputs(model):
    x, y = table(2)
    return model.fit(x, np.stack([y, 1 - y], axis=1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fitted(linear_model.LinearRegression(), 2), "LinearRegression is a regressor"),
        (
            lambda: make_pipeline(StandardScaler(), linear_model.Ridge()),
            r"Pipeline\(StandardScaler, Ridge\) is a regressor",
        ),
        (lambda: fitted(PCA(2), 2), "PCA is not a classifier"),
        (lambda: fitted(GaussianMixture(2), 2), "GaussianMixture is not a classifier"),
        (lambda: two_outputs(MultiOutputClassifier(LogisticRegression())), "several outputs"),
        (lambda: two_outputs(Forest(3)), "several outputs"),
        (lambda: two_outputs(linear_model.RidgeClassifier()), "several outputs"),
        (lambda: two_outputs(make_pipeline(StandardScaler(), mlp())), "several outputs"),
        (lambda: two_outputs(OneVsRestClassifier(LogisticRegression())), "several outputs"),
        (lambda: Forest(3).fit(table(2)[0], np.zeros(len(table(2)[0]))), "only the class"),
        (lambda: fitted(OutputCodeClassifier(LogisticRegression(), random_state=0), 3), "OneVsRestClassifier"),
        (lambda: fitted(ensemble.VotingClassifier([("a", LogisticRegression())]), 2), "voting='soft'"),
    ],
)
def test_what_is_no_classifier_of_one_label_is_refused_by_name(make, message):
    with pytest.raises(ModelError, match=message):
        sklearn_adapter(make())


def test_a_classifier_is_no_encoder():
    with pytest.raises(ModelError, match="has no transform method"):
        sklearn_adapter(model_of("logistic", 2), role="transform")


def test_missing_values_are_refused_where_the_model_refuses_them():
    x = perturbed(2, 3)
    x[1, 2] = np.nan
    adapter = sklearn_adapter(model_of("mlp relu", 2))
    with pytest.raises(ValueError, match="contains NaN"):
        adapter.predict(x)
    with pytest.raises(InputError, match="missing or infinite"):
        adapter.quick(x)


def test_xgboost_classifiers_go_to_xgboost_and_all_others_to_sklearn():
    x, y = table(2)
    assert adapted(XGBClassifier(n_estimators=2).fit(x, y)).name == "xgboost"
    assert adapted(model_of("logistic", 2)).name == adapted(model_of("forest", 2)).name == "sklearn"
    assert adapted(fitted(PCA(2), 2), role="transform").name == "sklearn"
    assert [spec.name for spec in cfproto_adapters()] == ["sklearn"]


def test_loading_the_plugin_imports_neither_sklearn_nor_scipy():
    code = (
        "import sys, cfproto_adapters.sklearn_adapter as plugin; plugin.cfproto_adapters(); "
        "print({'sklearn', 'scipy'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


@pytest.mark.parametrize("name", ["mlp relu", "forest", "scaled forest", "svc", "gradient boosting"])
def test_adapters_survive_threads_and_pickling(name):
    adapter, x = sklearn_adapter(model_of(name, 3)), perturbed(3)
    expected = adapter.predict(x)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: adapter.predict(x), range(40)))
    assert all(np.array_equal(result, expected) for result in results)
    assert np.array_equal(pickle.loads(pickle.dumps(adapter)).predict(x), expected)  # noqa: S301


def test_gradients_are_the_same_from_four_threads():
    adapter, x = sklearn_adapter(model_of("mlp relu", 3)), perturbed(3)
    g = np.random.default_rng(0).normal(size=(len(x), 3))
    expected = adapter.vjp(x)[1](g)
    with ThreadPoolExecutor(4) as pool:
        assert all(np.array_equal(got, expected) for got in pool.map(lambda _: adapter.vjp(x)[1](g), range(40)))


def test_a_subclass_of_a_known_model_is_not_taken_for_it_whatever_its_name():
    class Reversed(LogisticRegression):
        def predict_proba(self, X):
            return super().predict_proba(X)[:, ::-1]

        def predict(self, X):
            return self.classes_[self.predict_proba(X).argmax(axis=1)]

    Reversed.__name__ = "LogisticRegression"
    model = Reversed().fit(*table(2))
    adapter = sklearn_adapter(Pipeline([("m", model)]))
    assert not hasattr(adapter, "vjp")
    assert np.array_equal(adapter.predict(perturbed(2)), model.predict_proba(perturbed(2)))
