"""The class with the largest probability is the class `model.predict` returns."""

from __future__ import annotations

import numpy as np
import pytest
from cfproto_adapters.sklearn_adapter import sklearn_adapter
from sklearn import neighbors
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    StandardScaler,
)
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC, LinearSVC
from sklearn_models import (
    INNER,
    Forest,
    LogisticRegression,
    labels,
    model_of,
    perturbed,
    table,
)

from cfproto_plugin.testing import check_adapter


@pytest.mark.parametrize("name", ["one vs rest logistic", "sgd log loss", "sgd hinge", "sgd modified huber", "svc"])
@pytest.mark.parametrize("factor", [30, 1000])
def test_the_class_stays_the_predicted_one_where_probabilities_saturate(name, factor):
    model, x = model_of(name, 3), perturbed(3) * factor
    adapter = sklearn_adapter(model)
    assert np.array_equal(labels(adapter, x), model.predict(x))
    assert np.allclose(adapter.predict(x).sum(axis=1), 1)


@pytest.mark.parametrize("name", ["linear svc", "ridge", "perceptron", "sgd hinge", "robust, svd"])
def test_decisions_become_probabilities_by_the_logistic_function_or_the_softmax(name):
    two, three = model_of(name, 2), model_of(name, 3)
    d = two.decision_function(perturbed(2))
    assert np.allclose(sklearn_adapter(two).predict(perturbed(2))[:, 1], 1 / (1 + np.exp(-d)))
    e = np.exp(three.decision_function(perturbed(3)))
    assert np.allclose(sklearn_adapter(three).predict(perturbed(3)), e / e.sum(axis=1, keepdims=True))


@pytest.mark.filterwarnings("ignore:.*probability.*:FutureWarning")
@pytest.mark.parametrize("classes", [2, 3])
def test_svc_with_probabilities_decides_by_predict_and_reports_predict_proba(classes):
    x, y = table(classes)
    model = SVC(probability=True, C=0.05, gamma=2.0, random_state=0).fit(x, y)
    rows = perturbed(classes, 2000)
    assert (model.classes_[model.predict_proba(rows).argmax(axis=1)] != model.predict(rows)).any()
    adapter = sklearn_adapter(model)
    assert np.array_equal(adapter.predict(rows), model.predict_proba(rows))
    assert np.array_equal(labels(adapter, rows), model.predict(rows))
    assert np.array_equal(adapter.scores(rows), sklearn_adapter(SVC(C=0.05, gamma=2.0).fit(x, y)).predict(rows))


def test_svc_probabilities_come_from_the_decisions_whatever_their_shape():
    d = model_of("svc", 2).decision_function(perturbed(2))
    assert np.allclose(sklearn_adapter(model_of("svc", 2)).predict(perturbed(2))[:, 1], 1 / (1 + np.exp(-d)))
    pairs, rest = (sklearn_adapter(model_of(name, 3)).predict(perturbed(3)) for name in ("svc of pairs", "svc"))
    e = np.exp(model_of("svc", 3).decision_function(perturbed(3)))
    assert np.allclose(pairs, e / e.sum(axis=1, keepdims=True))
    assert np.allclose(pairs, rest)


@pytest.mark.parametrize("options", [{}, {"decision_function_shape": "ovo"}, {"break_ties": True}])
def test_svc_classes_with_equal_votes_are_taken_as_predict_takes_them(options):
    x, y = table(3)
    model = SVC(C=10, gamma=0.5, **options).fit(x[:, :2], y)
    rows = perturbed(3, 2000)[:, :2]
    scores = SVC(C=10, gamma=0.5).fit(x[:, :2], y).decision_function(rows)
    assert (np.rint(scores) == 1).all(axis=1).sum() > 5
    assert np.array_equal(labels(sklearn_adapter(model), rows), model.predict(rows))


NAMES = np.array(["benign", "malign"])


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
def test_a_moved_threshold_decides_and_scores_move_it_to_one_half(model):
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
    own, p = forest.predict_proba(perturbed(2)), adapter.scores(perturbed(2))[:, 1]
    assert np.array_equal(adapter.predict(perturbed(2)), own)
    assert np.array_equal(np.argsort(p, kind="stable"), np.argsort(own[:, 1], kind="stable"))


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


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning", "ignore:.*outlier.*:UserWarning")
@pytest.mark.parametrize("model", [LabelSpreading(gamma=50), neighbors.RadiusNeighborsClassifier(1.0, outlier_label=1)])
def test_rows_far_from_all_others_still_have_probabilities(model):
    x, y = table(3)
    model = model.fit(x, y)
    far = np.concatenate([x, x + 100])
    p = sklearn_adapter(model).predict(far)
    assert np.allclose(p.sum(axis=1), 1)
    assert np.array_equal(p.argmax(axis=1), model.predict(far))
