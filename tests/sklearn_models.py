"""Fitted models of scikit-learn for the tests of its adapter, by name."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from sklearn import discriminant_analysis, ensemble, linear_model, naive_bayes, neighbors, svm
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from cfproto_plugin.plugins import Adapted

LogisticRegression = linear_model.LogisticRegression


Forest = ensemble.RandomForestClassifier


INNER = Forest(10, random_state=0)


COLUMNS = [f"c{i}" for i in range(8)]


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


SPLITTING = TREES | {  # every model that knows its thresholds
    "scaled forest": make_pipeline(StandardScaler(), Forest(10, random_state=0)),
    "gradient boosting": ensemble.GradientBoostingClassifier(n_estimators=10, random_state=0),
    "histogram boosting": ensemble.HistGradientBoostingClassifier(max_iter=10, random_state=0),
    "ada boost": ensemble.AdaBoostClassifier(n_estimators=10, random_state=0),
}


PREDICT_ONLY = {
    "bagged columns": ensemble.BaggingClassifier(max_features=0.5, n_estimators=10, random_state=0),
    "clipped": make_pipeline(MinMaxScaler(clip=True), LogisticRegression()),
    "polynomial": make_pipeline(PolynomialFeatures(2), StandardScaler(), LogisticRegression(max_iter=500)),
    "sgd modified huber": linear_model.SGDClassifier(loss="modified_huber", random_state=0),
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


EVERY = GRADIENT | SPLITTING | PREDICT_ONLY


cases = pytest.mark.parametrize(("name", "classes"), [(name, k) for name in EVERY for k in (2, 3)])


@functools.cache
def model_of(name: str, classes: int):
    if name == "frozen":
        return FrozenEstimator(fitted(LogisticRegression(), classes))
    return fitted(EVERY[name], classes)


def labels(adapter, x) -> np.ndarray:
    """The classes that the adapter says the model decides for, which scores must lead to."""
    if adapter.labels is None:
        return adapter.classes[adapter.predict(x).argmax(axis=1)]
    decided = adapter.labels(x)
    assert np.array_equal(adapter.scores(x).argmax(axis=1), decided)
    return adapter.classes[decided]


def thresholds(adapter) -> list[np.ndarray] | None:
    return Adapted.of(adapter, "sklearn").thresholds


def central_differences(f, x, cotangent, h=1e-7):
    gradient = np.zeros_like(x)
    for i in range(x.shape[1]):
        step = np.zeros(x.shape[1])
        step[i] = h
        gradient[:, i] = (cotangent * (f(x + step) - f(x - step)).reshape(cotangent.shape)).sum(axis=1) / (2 * h)
    return gradient
