"""The scikit-learn adapter: classes as predict gives them, gradients, frames, labels, roles and errors."""

from __future__ import annotations

import functools
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from sklearn import discriminant_analysis, ensemble, linear_model, naive_bayes, neighbors, svm
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.metrics import f1_score, make_scorer
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from cfproto_adapters.sklearn_adapter import cfproto_adapters, sklearn_adapter
from cfproto_plugin.claims import adapt
from cfproto_plugin.errors import InputError, ModelError, NotFittedError
from cfproto_plugin.testing import check_adapter

LogisticRegression = linear_model.LogisticRegression
Forest = ensemble.RandomForestClassifier


@functools.cache
def table(classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Eight standardised columns with two or three classes."""
    x, y = (load_breast_cancer if classes == 2 else load_wine)(return_X_y=True)
    return StandardScaler().fit_transform(x[:, :8]), y


def perturbed(classes: int, n: int = 400) -> np.ndarray:
    rng = np.random.default_rng(1)
    x, _ = table(classes)
    return x[rng.integers(0, len(x), n)] + rng.normal(size=(n, x.shape[1]))


def fitted(model, classes: int):
    return clone(model).fit(*table(classes))


def mlp(**options):
    return MLPClassifier((12, 9), solver="lbfgs", max_iter=30, random_state=0, tol=1.0, **options)


GRADIENT = {
    "logistic": LogisticRegression(),
    "logistic without intercept": LogisticRegression(fit_intercept=False),
    "one vs rest logistic": OneVsRestClassifier(LogisticRegression()),
    "linear svc": LinearSVC(),
    "ridge": linear_model.RidgeClassifier(),
    "perceptron": linear_model.Perceptron(),
    "sgd hinge": linear_model.SGDClassifier(random_state=0),
    "sgd log loss": linear_model.SGDClassifier(loss="log_loss", alpha=0.1, random_state=0),
    "lda": discriminant_analysis.LinearDiscriminantAnalysis(),
    "mlp relu": mlp(),
    "mlp tanh": mlp(activation="tanh"),
    "mlp logistic": mlp(activation="logistic"),
    "mlp identity": mlp(activation="identity"),
    "standard": make_pipeline(StandardScaler(), LogisticRegression()),
    "unscaled parts": make_pipeline(StandardScaler(with_mean=False), RobustScaler(with_scaling=False), mlp()),
    "min max": make_pipeline(MinMaxScaler((-1, 2)), mlp()),
    "max abs, pca": make_pipeline(MaxAbsScaler(), PCA(4, whiten=True), LogisticRegression()),
    "robust, svd": make_pipeline(RobustScaler(), TruncatedSVD(4), "passthrough", LinearSVC()),
    "nested": make_pipeline(make_pipeline(StandardScaler(), PCA(5)), mlp()),
    "search": GridSearchCV(make_pipeline(StandardScaler(), LogisticRegression()), {}, cv=2),
    "frozen": FrozenEstimator(LogisticRegression()),
}
TREES = {
    "forest": Forest(20, random_state=0),
    "forest of few leaves": Forest(20, max_leaf_nodes=5, random_state=0),
    "extra trees": ensemble.ExtraTreesClassifier(20, random_state=0),
    "tree": DecisionTreeClassifier(random_state=0),
    "bagged trees": ensemble.BaggingClassifier(n_estimators=10, random_state=0),
    "forest in a pipeline": make_pipeline("passthrough", Forest(10, random_state=0)),
}
PREDICT_ONLY = {
    "scaled forest": make_pipeline(StandardScaler(), Forest(10, random_state=0)),
    "bagged columns": ensemble.BaggingClassifier(max_features=0.5, n_estimators=10, random_state=0),
    "clipped": make_pipeline(MinMaxScaler(clip=True), LogisticRegression()),
    "polynomial": make_pipeline(PolynomialFeatures(2), StandardScaler(), LogisticRegression(max_iter=500)),
    "sgd modified huber": linear_model.SGDClassifier(loss="modified_huber", random_state=0),
    "gradient boosting": ensemble.GradientBoostingClassifier(n_estimators=10, random_state=0),
    "histogram boosting": ensemble.HistGradientBoostingClassifier(max_iter=10, random_state=0),
    "ada boost": ensemble.AdaBoostClassifier(n_estimators=10, random_state=0),
    "neighbours": neighbors.KNeighborsClassifier(4),
    "weighted neighbours": neighbors.KNeighborsClassifier(4, weights="distance"),
    "nearest centroid": neighbors.NearestCentroid(),
    "naive bayes": naive_bayes.GaussianNB(),
    "qda": discriminant_analysis.QuadraticDiscriminantAnalysis(reg_param=0.1),
    "gaussian process": GaussianProcessClassifier(random_state=0),
    "svc": SVC(),
    "svc of pairs": SVC(decision_function_shape="ovo"),
    "nu svc": svm.NuSVC(nu=0.2),
    "one vs one": OneVsOneClassifier(LinearSVC()),
    "one vs rest svc": OneVsRestClassifier(SVC()),
    "calibrated": CalibratedClassifierCV(LinearSVC(), cv=2),
    "soft voting": ensemble.VotingClassifier(
        [("a", LogisticRegression()), ("b", naive_bayes.GaussianNB())], voting="soft"
    ),
    "stacked svc": ensemble.StackingClassifier([("a", naive_bayes.GaussianNB())], SVC(), cv=2),
    "boosted pipeline": make_pipeline(StandardScaler(), XGBClassifier(n_estimators=5)),
}
EVERY = GRADIENT | TREES | PREDICT_ONLY
cases = pytest.mark.parametrize(("name", "classes"), [(name, k) for name in EVERY for k in (2, 3)])


@functools.cache
def model_of(name: str, classes: int):
    if name == "frozen":
        return FrozenEstimator(fitted(LogisticRegression(), classes))
    return fitted(EVERY[name], classes)


def labels(adapter, x) -> np.ndarray:
    return adapter.classes[adapter.predict(x).argmax(axis=1)]


@cases
def test_every_classifier_conforms(name, classes):
    adapter = sklearn_adapter(model_of(name, classes))
    check_adapter(adapter, perturbed(classes, 12))
    assert hasattr(adapter, "vjp") == (name in GRADIENT)
    assert hasattr(adapter, "thresholds") == (name in TREES)


@cases
def test_the_largest_probability_is_the_class_the_model_predicts(name, classes):
    model, x = model_of(name, classes), perturbed(classes)
    assert np.array_equal(labels(sklearn_adapter(model), x), model.predict(x))


@pytest.mark.parametrize("name", ["one vs rest logistic", "sgd log loss", "sgd hinge", "sgd modified huber", "svc"])
@pytest.mark.parametrize("factor", [30, 1000])
def test_the_class_stays_the_predicted_one_where_probabilities_saturate(name, factor):
    model, x = model_of(name, 3), perturbed(3) * factor
    adapter = sklearn_adapter(model)
    assert np.array_equal(labels(adapter, x), model.predict(x))
    assert np.allclose(adapter.predict(x).sum(axis=1), 1)


@pytest.mark.parametrize(
    "name", [n for n in GRADIENT if n not in {"linear svc", "ridge", "perceptron", "sgd hinge", "robust, svd"}]
)
@pytest.mark.parametrize("classes", [2, 3])
def test_models_computed_here_give_their_own_probabilities(name, classes):
    model, x = model_of(name, classes), perturbed(classes)
    assert np.abs(sklearn_adapter(model).predict(x) - model.predict_proba(x)).max() < 1e-12


@pytest.mark.parametrize("name", ["linear svc", "ridge", "perceptron", "sgd hinge", "robust, svd"])
def test_decisions_become_probabilities_by_the_logistic_function_or_the_softmax(name):
    two, three = model_of(name, 2), model_of(name, 3)
    d = two.decision_function(perturbed(2))
    assert np.allclose(sklearn_adapter(two).predict(perturbed(2))[:, 1], 1 / (1 + np.exp(-d)))
    e = np.exp(three.decision_function(perturbed(3)))
    assert np.allclose(sklearn_adapter(three).predict(perturbed(3)), e / e.sum(axis=1, keepdims=True))


def central_differences(f, x, cotangent, h=1e-7):
    gradient = np.zeros_like(x)
    for i in range(x.shape[1]):
        step = np.zeros(x.shape[1])
        step[i] = h
        gradient[:, i] = (cotangent * (f(x + step) - f(x - step)).reshape(cotangent.shape)).sum(axis=1) / (2 * h)
    return gradient


@pytest.mark.parametrize("name", GRADIENT)
@pytest.mark.parametrize("classes", [2, 3])
def test_gradients_are_exact(name, classes):
    adapter, x = sklearn_adapter(model_of(name, classes)), perturbed(classes, 20)
    y, pullback = adapter.vjp(x)
    cotangent = np.random.default_rng(2).normal(size=y.shape)
    expected = central_differences(adapter.predict, x, cotangent)
    assert np.abs(pullback(cotangent) - expected).max() < 1e-6 * max(1, np.abs(expected).max())
    assert np.abs(expected).max() > 1e-3


def test_single_precision_networks_stay_in_single_precision():
    x, y = table(3)
    single = MLPClassifier((12, 9), max_iter=30, tol=1.0, random_state=0).fit(x.astype(np.float32), y)
    for model, dtype in ((single, np.float32), (model_of("mlp relu", 3), np.float64)):
        adapter = sklearn_adapter(model)
        p, pullback = adapter.vjp(x[:5].astype(np.float32))
        assert p.dtype == adapter.predict(x[:5].astype(np.float32)).dtype == dtype
        assert pullback(np.ones_like(p)).dtype == np.float32
        assert sklearn_adapter(model).vjp(x[:5])[0].dtype == np.float64


@pytest.mark.filterwarnings("ignore:.*probability.*:FutureWarning")
@pytest.mark.parametrize("classes", [2, 3])
def test_svc_with_probabilities_follows_predict_not_predict_proba(classes):
    x, y = table(classes)
    model = SVC(probability=True, C=0.05, gamma=2.0, random_state=0).fit(x, y)
    rows = perturbed(classes, 2000)
    assert (model.classes_[model.predict_proba(rows).argmax(axis=1)] != model.predict(rows)).any()
    assert np.array_equal(labels(sklearn_adapter(model), rows), model.predict(rows))


@pytest.mark.parametrize("options", [{}, {"decision_function_shape": "ovo"}, {"break_ties": True}])
def test_svc_classes_with_equal_votes_are_taken_as_predict_takes_them(options):
    x, y = table(3)
    model = SVC(C=10, gamma=0.5, **options).fit(x[:, :2], y)
    rows = perturbed(3, 2000)[:, :2]
    scores = SVC(C=10, gamma=0.5).fit(x[:, :2], y).decision_function(rows)
    assert (np.rint(scores) == 1).all(axis=1).sum() > 5
    assert np.array_equal(labels(sklearn_adapter(model), rows), model.predict(rows))


NAMES = np.array(["benign", "malign"])
INNER = Forest(10, random_state=0)


@pytest.mark.parametrize(
    "model",
    [
        FixedThresholdClassifier(INNER, threshold=0.3),
        FixedThresholdClassifier(INNER, threshold=0.8, pos_label="benign"),
        FixedThresholdClassifier(INNER, threshold=0.0),
        FixedThresholdClassifier(INNER, threshold=1.0),
        FixedThresholdClassifier(LinearSVC(), threshold=-0.5),
        FixedThresholdClassifier(LinearSVC(), threshold=0.7, pos_label="benign"),
        FixedThresholdClassifier(LogisticRegression(), response_method="decision_function"),
        FixedThresholdClassifier(make_pipeline(StandardScaler(), INNER), threshold=0.1),
        TunedThresholdClassifierCV(INNER, scoring=make_scorer(f1_score, pos_label="benign"), cv=2),
        TunedThresholdClassifierCV(LinearSVC(), scoring="balanced_accuracy", cv=2),
    ],
)
def test_a_threshold_moves_to_one_half(model):
    x, y = table(2)
    model = clone(model).fit(x, NAMES[y])
    adapter = sklearn_adapter(model)
    rows = np.concatenate([x, perturbed(2)])
    check_adapter(adapter, rows[:12])
    assert np.array_equal(labels(adapter, rows), model.predict(rows))


def test_a_score_on_the_threshold_belongs_to_the_positive_class_and_prefit_models_are_accepted():
    x, y = table(2)
    forest = Forest(10, random_state=0).fit(x, y)
    on_it = (forest.predict_proba(perturbed(2))[:, 1] == 0.3).any()
    model = FixedThresholdClassifier(FrozenEstimator(forest), threshold=0.3)
    adapter = sklearn_adapter(model)
    assert on_it
    assert np.array_equal(labels(adapter, perturbed(2)), model.predict(perturbed(2)))
    p = adapter.predict(perturbed(2))[:, 1]
    assert np.array_equal(
        np.argsort(p, kind="stable"), np.argsort(forest.predict_proba(perturbed(2))[:, 1], kind="stable")
    )


class Contrary(ClassifierMixin, BaseEstimator):
    """Somebody else's classifier, whose predict asks for more than one half; probabilities in single precision."""

    def fit(self, x, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, x):
        p = (1 / (1 + np.exp(-np.asarray(x)[:, 0]))).astype(np.float32)
        return np.stack([1 - p, p], axis=1)

    def predict(self, x):
        return self.classes_[(self.predict_proba(x)[:, 1] > 0.7).astype(int)]


def test_a_foreign_classifier_that_disagrees_with_its_probabilities_is_believed_in_predict():
    model = Contrary().fit(*table(2))
    x = np.concatenate([perturbed(2), np.zeros((1, 8))])
    adapter = sklearn_adapter(model)
    check_adapter(adapter, x[:12])
    assert np.array_equal(labels(adapter, x), model.predict(x))


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


COLUMNS = [f"c{i}" for i in range(8)]


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
    with pytest.raises(InputError, match="'c3'"):
        adapter.predict(frame.drop(columns="c3"))
    with pytest.raises(InputError, match="expected 8 columns"):
        adapter.predict(x[:, :5])


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


def test_images_are_flattened_and_gradients_get_their_shape_back():
    x = perturbed(2, 6)
    images = x.reshape(6, 2, 2, 2)
    for name in ("mlp tanh", "forest", "svc"):
        adapter = sklearn_adapter(model_of(name, 2))
        assert np.array_equal(adapter.predict(images), adapter.predict(x))
    adapter = sklearn_adapter(model_of("mlp tanh", 2))
    g = np.ones((6, 2)) * [1, 2]
    assert np.array_equal(adapter.vjp(images)[1](g), adapter.vjp(x)[1](g).reshape(images.shape))


@functools.cache
def autoencoder():
    x, _ = table(2)
    return MLPRegressor(hidden_layer_sizes=(4,), activation="tanh", solver="lbfgs", max_iter=50, tol=1.0, random_state=0).fit(x, x)


ENCODERS = {
    "pca": PCA(3),
    "whitened pca": PCA(3, whiten=True),
    "svd": TruncatedSVD(3),
    "scaler": StandardScaler(),
    "chain": make_pipeline(RobustScaler(), PCA(4), MaxAbsScaler()),
    "best features": SelectKBest(k=3),
    "sparse": OneHotEncoder(handle_unknown="ignore"),
    "frames": make_pipeline(StandardScaler(), PolynomialFeatures(2)).set_output(transform="pandas"),
}


@pytest.mark.parametrize("name", ENCODERS)
def test_encoders_give_what_transform_gives(name):
    model = fitted(ENCODERS[name], 2)
    x = table(2)[0][:20]
    adapter = sklearn_adapter(model, role="transform")
    check_adapter(adapter, x, role="transform", atol=1e-4)
    expected = model.transform(x)
    expected = expected.toarray() if name == "sparse" else np.asarray(expected)
    assert np.abs(adapter.predict(x) - expected).max() < 1e-12
    assert not hasattr(adapter, "classes")
    assert hasattr(adapter, "vjp") == (name not in {"best features", "sparse", "frames"})


@pytest.mark.parametrize("name", ["pca", "whitened pca", "svd", "scaler", "chain", "autoencoder"])
def test_gradients_of_encoders_and_autoencoders_are_exact(name):
    model = autoencoder() if name == "autoencoder" else fitted(ENCODERS[name], 2)
    adapter, x = sklearn_adapter(model, role="transform"), perturbed(2, 10)
    y, pullback = adapter.vjp(x)
    cotangent = np.random.default_rng(2).normal(size=y.shape)
    assert np.abs(pullback(cotangent) - central_differences(adapter.predict, x, cotangent)).max() < 1e-6


def test_autoencoders_return_images_as_images():
    x = perturbed(2, 6)
    images = x.reshape(6, 2, 4)
    adapter = sklearn_adapter(autoencoder(), role="transform")
    assert np.array_equal(adapter.predict(images).reshape(6, 8), adapter.predict(x))
    y, pullback = adapter.vjp(images)
    assert y.shape == pullback(y).shape == images.shape
    other = ensemble.ExtraTreesRegressor(3, random_state=0).fit(x, x)
    assert sklearn_adapter(other, role="transform").predict(images).shape == images.shape


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
        (lambda: fitted(OutputCodeClassifier(LogisticRegression(), random_state=0), 3), "CalibratedClassifierCV"),
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
    with pytest.raises(InputError, match="missing or infinite"):
        sklearn_adapter(model_of("mlp relu", 2)).predict(x)


def test_xgboost_classifiers_go_to_xgboost_and_all_others_to_sklearn():
    x, y = table(2)
    assert adapt(XGBClassifier(n_estimators=2).fit(x, y))[0] == "xgboost"
    assert adapt(model_of("logistic", 2))[0] == adapt(model_of("forest", 2))[0] == "sklearn"
    assert adapt(fitted(PCA(2), 2), role="transform")[0] == "sklearn"
    assert [spec.name for spec in cfproto_adapters()] == ["sklearn"]


def test_loading_the_plugin_imports_neither_sklearn_nor_scipy():
    code = "import sys, cfproto_adapters.sklearn_adapter as a; a.cfproto_adapters(); print({'sklearn', 'scipy'} & set(sys.modules))"
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


def test_a_subclass_of_a_known_model_is_not_taken_for_it():
    class Shifted(LogisticRegression):
        def predict_proba(self, X):
            return super().predict_proba(X)[:, ::-1]

        def predict(self, X):
            return self.classes_[self.predict_proba(X).argmax(axis=1)]

    model = Shifted().fit(*table(2))
    adapter = sklearn_adapter(Pipeline([("m", model)]))
    assert not hasattr(adapter, "vjp")
    assert np.array_equal(adapter.predict(perturbed(2)), model.predict_proba(perturbed(2)))
