"""The kinds of models that are drawn, and how somebody who owns one asks it: never through this package."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from sklearn import discriminant_analysis, ensemble, linear_model, naive_bayes, neighbors, svm, tree
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from .functions import FUNCTIONS, in_keras, in_torch

LABELS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "int": lambda y: y,
    "gaps": lambda y: y * 10 - 5,
    "str": lambda y: np.array(["no", "yes", "may be", "ä"])[y],
    "bool": lambda y: y > 0,
}


class Owned(NamedTuple):
    """A trained model, with its owner's ways to ask it: labels (n,), and probabilities (n, k) or None."""

    model: Any
    labels: Callable[[Any], np.ndarray]
    proba: Callable[[Any], np.ndarray] | None


class Kind(NamedTuple):
    """make(x, y, rng) -> Owned.

    takes: "numbers", "raw" frames, or frames of "categories" without strings. near: how far its probabilities depend on
    the batch. named: whether its labels can be anything, or are 0, 1, ... frames: whether its owner can give it a
    DataFrame of numbers.
    """

    make: Callable[[Any, np.ndarray, np.random.Generator], Owned]
    takes: str = "numbers"
    classes: int | None = None
    named: bool = True
    near: float = 1e-6
    needs: tuple[str, ...] = ()
    frames: bool = True


def owned(model: Any) -> Owned:
    """A fitted model of scikit-learn's kind, asked about copies: it may work in place."""
    proba = (lambda rows: model.predict_proba(rows.copy())) if hasattr(model, "predict_proba") else None
    return Owned(model, lambda rows: model.predict(rows.copy()), proba)


def sk(make: Callable[[], Any], **options: Any) -> Kind:
    return Kind(lambda x, y, _rng: owned(make().fit(x.copy(), y)), **options)


class OwnPredict(linear_model.LogisticRegression):
    """A subclass that decides for itself: the last class from a third on."""

    def predict(self, X):
        proba = self.predict_proba(X)
        return np.where(proba[:, -1] >= 0.3, self.classes_[-1], self.classes_[proba[:, :-1].argmax(axis=1)])


def xgb(**options: Any) -> Any:
    import xgboost

    return xgboost.XGBClassifier(n_estimators=12, max_depth=3, n_jobs=1, **options)


def _own_xgb(x, y, _rng):
    import xgboost

    class OwnXGB(xgboost.XGBClassifier):
        def predict(self, X, **_options):
            proba = self.predict_proba(X)
            return np.where(proba[:, -1] >= 0.2, proba.shape[1] - 1, proba[:, :-1].argmax(axis=1))

    return owned(OwnXGB(n_estimators=12, max_depth=3, n_jobs=1).fit(x, y))


def _booster(x, y, _rng):
    import xgboost

    k = int(y.max()) + 1
    options = {"objective": "multi:softprob", "num_class": k, "max_depth": 3, "nthread": 1}
    model = xgboost.train(options, xgboost.DMatrix(x, label=y), 8)
    proba = lambda rows: model.predict(xgboost.DMatrix(rows))  # noqa: E731
    return Owned(model, lambda rows: proba(rows).argmax(axis=1), proba)


def _stringy(frame):
    return make_column_selector(dtype_exclude="number")(frame)


def encoded(model: Any, encoder: Any = None) -> Any:
    """Imputer for numbers, imputer and one-hot for the rest, then a model."""
    encoder = encoder or OneHotEncoder(handle_unknown="ignore")
    columns = make_column_transformer(
        (SimpleImputer(), make_column_selector(dtype_include="number")),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), encoder), _stringy),
    )
    return make_pipeline(columns, model)


def plain_encoded(model: Any) -> Any:
    """No imputer: None and NaN are categories of their own, and an unknown category is refused."""
    columns = make_column_transformer((OneHotEncoder(), _stringy), remainder=SimpleImputer())
    return make_pipeline(columns, model)


def forest(trees: int) -> Any:
    return ensemble.RandomForestClassifier(trees, max_depth=6, random_state=0)


def logistic() -> Any:
    return linear_model.LogisticRegression(max_iter=200)


def scaled(model: Any, **options: Any) -> Any:
    return make_pipeline(StandardScaler(**options), model)


def two_of(voting: str) -> Any:
    return ensemble.VotingClassifier(
        [("a", scaled(logistic())), ("b", naive_bayes.GaussianNB()), ("c", tree.DecisionTreeClassifier(max_depth=3))],
        voting=voting,
    )


def mlp() -> BaseEstimator:
    return scaled(MLPClassifier((8,), solver="lbfgs", max_iter=60, random_state=0, tol=1.0))


XGB = ("xgboost",)
KINDS: dict[str, Kind] = {
    "logistic": sk(lambda: scaled(logistic())),
    "logistic unscaled": sk(lambda: linear_model.LogisticRegression(max_iter=5, solver="liblinear"), classes=2),
    "sgd": sk(lambda: scaled(linear_model.SGDClassifier(random_state=0))),
    "ridge": sk(linear_model.RidgeClassifier),
    "linear svc": sk(lambda: scaled(svm.LinearSVC())),
    "svc": sk(lambda: scaled(svm.SVC())),
    "svc with probabilities": sk(lambda: scaled(svm.SVC(probability=True, random_state=0))),
    "knn, even k": sk(lambda: scaled(neighbors.KNeighborsClassifier(4))),
    "naive bayes": sk(naive_bayes.GaussianNB),
    "mlp": sk(mlp),
    "tree": sk(lambda: tree.DecisionTreeClassifier(max_depth=5, random_state=0)),
    "even forest": sk(lambda: forest(10)),
    "odd forest": sk(lambda: forest(15)),
    "deep even forest": sk(lambda: ensemble.RandomForestClassifier(6, random_state=0)),
    "extra trees": sk(lambda: ensemble.ExtraTreesClassifier(10, max_depth=6, random_state=0)),
    "ada boost": sk(lambda: ensemble.AdaBoostClassifier(n_estimators=8, random_state=0)),
    "gradient boosting": sk(lambda: ensemble.GradientBoostingClassifier(n_estimators=8, random_state=0)),
    "histogram boosting": sk(lambda: ensemble.HistGradientBoostingClassifier(max_iter=8, random_state=0)),
    "bagging": sk(lambda: ensemble.BaggingClassifier(n_estimators=6, random_state=0)),
    "hard voting": sk(lambda: two_of("hard")),
    "soft voting": sk(lambda: two_of("soft")),
    "stacking": sk(lambda: ensemble.StackingClassifier([("a", naive_bayes.GaussianNB())], logistic(), cv=2)),
    "calibrated": sk(lambda: CalibratedClassifierCV(scaled(svm.LinearSVC()), cv=2)),
    "fixed threshold": sk(lambda: FixedThresholdClassifier(scaled(logistic()), threshold=0.8), classes=2),
    "tuned threshold": sk(lambda: TunedThresholdClassifierCV(scaled(logistic()), cv=2), classes=2),
    "one vs rest": sk(lambda: OneVsRestClassifier(scaled(logistic()))),
    "in-place pipeline": sk(lambda: scaled(logistic(), copy=False)),
    "lda": sk(discriminant_analysis.LinearDiscriminantAnalysis),
    "qda": sk(lambda: discriminant_analysis.QuadraticDiscriminantAnalysis(reg_param=0.2)),
    "own predict": sk(lambda: scaled(OwnPredict(max_iter=200))),
    "one-hot forest": sk(lambda: encoded(forest(10)), takes="raw"),
    "one-hot logistic": sk(lambda: encoded(scaled(logistic(), with_mean=False)), takes="raw"),
    "ordinal boosting": sk(
        lambda: encoded(
            ensemble.HistGradientBoostingClassifier(max_iter=8, random_state=0),
            OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        ),
        takes="raw",
    ),
    "one-hot without imputer": sk(lambda: plain_encoded(forest(9)), takes="raw"),
    "xgboost": sk(xgb, named=False, needs=XGB),
    "xgboost dart": sk(lambda: xgb(booster="dart"), named=False, needs=XGB),
    "xgboost own predict": Kind(_own_xgb, named=False, needs=XGB),
    "xgboost categories": sk(lambda: xgb(enable_categorical=True), takes="categories", named=False, needs=XGB),
    "xgboost booster": Kind(_booster, named=False, needs=XGB, frames=False),
    "one-hot xgboost": sk(lambda: encoded(xgb()), takes="raw", named=False, needs=XGB),
}
for _name, (_make, _takes) in FUNCTIONS.items():
    KINDS[_name] = Kind(lambda *a, m=_make: Owned(*m(*a)), takes=_takes, named=False)
for _name in ("logits", "softmax", "one sigmoid", "dropout in training mode", "float64"):
    KINDS[f"torch {_name}"] = Kind(
        lambda *a, n=_name: Owned(*in_torch(n, *a)), classes=2 if "one" in _name else None, named=False,
        near=1e-4, needs=("torch",), frames=False,
    )  # fmt: skip
for _name in ("softmax", "one sigmoid"):
    KINDS[f"keras {_name}"] = Kind(
        lambda *a, n=_name: Owned(*in_keras(n, *a)), classes=2 if "one" in _name else None, named=False,
        near=1e-4, needs=("keras",), frames=False,
    )  # fmt: skip


def available() -> list[str]:
    """The kinds whose packages are installed."""
    return [name for name, kind in KINDS.items() if all(find_spec(package) for package in kind.needs)]
