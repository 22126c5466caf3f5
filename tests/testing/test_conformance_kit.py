"""Every check of the conformance kit lets what is good pass and catches what breaks its rule."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import ModuleType, SimpleNamespace

import networks
import numpy as np
import pandas as pd
import pytest

from cfproto_plugin import (
    AdapterSpec,
    CounterfactualExplainer,
    DistanceSpec,
    PrototypeSpec,
    hookimpl,
    register,
    testing,
    unregister,
)
from cfproto_plugin.distances import ABDM, MVDM, Mix
from cfproto_plugin.errors import InputError, ModelError, NoAdapterError
from cfproto_plugin.helpers import softmax, two_columns
from cfproto_plugin.plugins import Adapted, adapted
from cfproto_plugin.protocols import Tree, TreeEnsemble
from cfproto_plugin.prototypes import EncoderPrototypes, KDTreePrototypes
from cfproto_plugin.testing import check_adapter, check_distance, check_provider, check_spec, checks

X = np.random.default_rng(0).normal(size=(9, 4))
W = np.random.default_rng(1).normal(size=(4, 3))


WITH_HOLES = np.where(np.random.default_rng(2).random(X.shape) < 0.3, np.nan, X)


class Good:
    """A softmax regression with its gradient and its labels: no check finds fault with it."""

    classes = np.array(["a", "b", "c"])

    def predict(self, x):
        return softmax(x.reshape(len(x), -1) @ W)

    def vjp(self, x):
        y = self.predict(x)

        def pullback(cotangent):
            inner = cotangent - (cotangent * y).sum(axis=1, keepdims=True)
            return ((y * inner) @ W.T).reshape(x.shape)

        return y, pullback


class Full(Good):
    """All that an adapter may add, and a model that fails on more than five rows."""

    max_rows = 5
    feature_names = ("p", "q", "r", "s")
    accepts_frames = True

    def predict(self, x):
        if len(x) > 5:
            raise ValueError("too many rows")
        return super().predict(np.asarray(x[list(self.feature_names)] if hasattr(x, "columns") else x))

    def quick(self, x):
        return self.predict(x) + 1e-9

    def labels(self, x):
        return (self.predict(x) * [1, 2, 1]).argmax(axis=1)

    def scores(self, x):
        y = self.predict(x) * [1, 2, 1]
        return y / y.sum(axis=1, keepdims=True)


FRAME = pd.DataFrame(X, columns=["p", "q", "r", "s"])


class TakesFramesAlone:
    """Finds its columns by name, and does not say so by accepts_frames."""

    def predict(self, x):
        p = 1 / (1 + np.exp(-np.asarray(x["q"] - x["p"])))
        return np.stack([p, 1 - p], axis=1)


class SortsItsFrames(Good):
    vjp = None

    def predict(self, x):
        return super().predict(np.asarray(x[["s", "r", "q", "p"]] if hasattr(x, "columns") else x))


class QuickIsAnother(Full):
    def quick(self, x):
        return self.predict(x)[:, ::-1]


class QuickHasOneColumn(Full):
    def quick(self, x):
        return self.predict(x)[:, :1]


class WritesIntoTheRowsWhenQuick(Full):
    def quick(self, x):
        y = self.predict(x)
        x[0, 0] = 0.0
        return y


class NamesItsLabels(Full):
    def labels(self, x):
        return self.classes[super().labels(x)]


class CountsLabelsFromOne(Full):
    def labels(self, x):
        return super().labels(x) * 0 + 3


class GivesLabelsAsAColumn(Full):
    def labels(self, x):
        return super().labels(x)[:, None]


class ComparesLabelsWithTheBatch(Full):
    def labels(self, x):
        p = self.predict(x)
        return (p - p.mean(axis=0)).argmax(axis=1)


class ScoresAnotherClass(Full):
    def scores(self, x):
        return np.roll(self.predict(x), 1, axis=1)


class ScoresDoNotSumToOne(Full):
    def scores(self, x):
        return 2 * self.predict(x)


class ScoresOneColumn(Full):
    def scores(self, x):
        return self.predict(x)[:, :1]


class WritesIntoTheRowsWhenScoring(Full):
    def scores(self, x):
        y = self.predict(x)
        x[0, 0] = 0.0
        return y


class TakesFewerRowsThanItSays(Full):
    max_rows = 5

    def predict(self, x):
        return super().predict(x[:4])


class DependsOnTheSizeOfTheBatch(Full):
    def predict(self, x):
        return super().predict(x + (len(x) == 5))


class TakesColumnsByPosition(Full):
    def predict(self, x):
        return super().predict(np.asarray(x))


class GoodEnsemble:
    """x[0] <= 0.5 and x[2] <= 0.25, missing values to the left and to the right."""

    equal_left = True
    missing_left = (1, 0)
    base = 0.1

    def trees(self):
        stumps = tuple(
            Tree(
                np.array([column, -1, -1]),
                np.array([threshold, 0.0, 0.0]),
                np.array([1, -1, -1]),
                np.array([2, -1, -1]),
                np.array([self.missing_left[i], 0, 0]),
                np.array([[0.0], [1.0], [-2.0]]),
            )
            for i, (column, threshold) in enumerate([(0, 0.5), (2, 0.25)])
        )
        return TreeEnsemble(stumps, np.array([self.base]), 4, "logistic", self.equal_left, "float64")

    def predict(self, x):
        x = x.reshape(len(x), -1)
        first = np.where(np.isnan(x[:, 0]) | (x[:, 0] <= 0.5), 1.0, -2.0)
        return two_columns(1 / (1 + np.exp(-(0.1 + first + np.where(x[:, 2] <= 0.25, 1.0, -2.0)))))


class TreesTakeTheOtherSide(GoodEnsemble):
    equal_left = False


class TreesForgetTheBase(GoodEnsemble):
    base = 0.0


class TreesSendMissingValuesAstray(GoodEnsemble):
    missing_left = (0, 0)


class GivesAList(Good):
    def predict(self, x):
        return super().predict(x).tolist()


class DropsARow(Good):
    def predict(self, x):
        return super().predict(x)[:-1]


class GivesNaN(Good):
    def predict(self, x):
        return super().predict(x) * np.nan


class GivesOneColumn(Good):
    def predict(self, x):
        return super().predict(x)[:, :1] * 0 + 1


class GivesNegative(Good):
    def predict(self, x):
        return super().predict(x) * 3 - [1, 1, 0]


class GivesLogits(Good):
    def predict(self, x):
        return np.abs(x @ W)


class GivesWords(Good):
    def predict(self, x):
        return super().predict(x).astype(str)


class MissesALabel(Good):
    classes = np.array(["a", "b"])


class RepeatsALabel(Good):
    classes = np.array(["a", "b", "a"])


class LooksAtTheBatch(Good):
    def predict(self, x):
        return super().predict(x - x.mean(axis=0))


class ThrowsDice(Good):
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def predict(self, x):
        return super().predict(x + 1e-9 * self.rng.normal(size=x.shape))


class WritesIntoTheRows(Good):
    def predict(self, x):
        y = super().predict(x)
        x[0, 0] = 0.0
        return y


class WritesIntoTheRowsInTheGradient(Good):
    def vjp(self, x):
        y, pullback = super().vjp(x)
        x[0, 0] += 1
        return y, pullback


class LooksAtTheDtype(Good):
    def predict(self, x):
        return super().predict(x if x.dtype == np.float32 else x + 0.1)


class HasAWrongGradient(Good):
    def vjp(self, x):
        y, pullback = super().vjp(x)
        return y, lambda cotangent: 1.1 * pullback(cotangent)


class HasAFlatGradient(Good):
    def vjp(self, x):
        y, pullback = super().vjp(x)
        return y, lambda cotangent: pullback(cotangent).sum(axis=1)


class HasNoNumbersInTheGradient(Good):
    def vjp(self, x):
        y, pullback = super().vjp(x)
        return y, lambda cotangent: pullback(cotangent) * np.nan


class HasTextInTheGradient(Good):
    def vjp(self, x):
        y, pullback = super().vjp(x)
        return y, lambda cotangent: pullback(cotangent).astype(str)


class HasAnotherOutputInTheGradient(Good):
    def vjp(self, x):
        y, pullback = super().vjp(x)
        return y[:, ::-1], pullback


# Tree models


class GoodTree:
    """Four leaves, by the first and the last column, in float32 as trees do: x[0] < 0.5, then x[3] < -1 or x[3] < 3."""

    splits = (np.array([0.5]), np.array([]), np.array([]), np.array([-1.0, 3.0]))

    def predict(self, x):
        x = x.reshape(len(x), -1).astype(np.float32)
        left = x[:, 0] < 0.5
        p = np.where(left, np.where(x[:, 3] < -1, 0.1, 0.2), np.where(x[:, 3] < 3, 0.6, 0.9))
        return np.stack([1 - p, p], axis=1)

    def thresholds(self):
        return list(self.splits)


class SplitsTooFewColumns(GoodTree):
    splits = GoodTree.splits[:3]


class SplitsUnsorted(GoodTree):
    splits = (*GoodTree.splits[:3], GoodTree.splits[3][::-1])


class SplitsTwiceAtTheSamePlace(GoodTree):
    splits = tuple(np.repeat(t, 2) for t in GoodTree.splits)


class SplitsElsewhere(GoodTree):
    splits = (np.array([0.6]), *GoodTree.splits[1:])


class ForgetsASplit(GoodTree):
    splits = (*GoodTree.splits[:3], np.array([-1.0]))


class ForgetsAColumn(GoodTree):
    splits = (np.array([]), *GoodTree.splits[1:])


class SwapsTheColumns(GoodTree):
    splits = GoodTree.splits[::-1]


# Models with a training mode and parameters


class Net:
    """A model whose layer drops out, and counts rows, in training mode."""

    def __init__(self):
        self.training = True
        self.layer = SimpleNamespace(training=True)
        self.weight, self.seen = W.copy(), 0

    def __call__(self, x):
        if self.layer.training:
            self.seen += len(x)
        return softmax(x @ self.weight * (0.5 if self.training else 1))


class GoodNetAdapter:
    """In evaluation mode whatever the model is in, and every part gets its own mode back."""

    def __init__(self, model, *, role="classifier", **options):
        self.model, self.role = model, role

    def predict(self, x):
        parts = [self.model, self.model.layer]
        before = [part.training for part in parts]
        for part in parts:
            part.training = False
        y = self.model(x)
        for part, mode in zip(parts, before, strict=True):
            part.training = mode
        return y


class LeavesEvaluationMode(GoodNetAdapter):
    def predict(self, x):
        self.model.training = self.model.layer.training = False
        return self.model(x)


class GivesAllPartsTheModeOfTheModel(GoodNetAdapter):
    def predict(self, x):
        before = self.model.training
        y = LeavesEvaluationMode.predict(self, x)
        self.model.training = self.model.layer.training = before
        return y


class StaysInTrainingMode(GoodNetAdapter):
    def predict(self, x):
        return self.model(x)


class ChangesAWeight(GoodNetAdapter):
    def predict(self, x):
        y = super().predict(x)
        self.model.weight[0, 0] += 1e-12
        return y


class ChangesTheModelWhenMade(GoodNetAdapter):
    def __init__(self, model, **options):
        super().__init__(model, **options)
        model.weight *= 2


class SwitchesTheModelWhenMade(GoodNetAdapter):
    def __init__(self, model, **options):
        super().__init__(model, **options)
        model.training = False


def spec(factory=GoodNetAdapter, *claims):
    return AdapterSpec("net", claims or (f"{__name__}:Net",), factory)


def raising(model, **options):
    raise KeyError("weights")


# Prototype providers

Z, LABELS = np.random.default_rng(2).normal(size=(40, 3)), np.arange(40) % 3


class FitReturnsNothing(KDTreePrototypes):
    def fit(self, z, labels):
        super().fit(z, labels)


class Altered(KDTreePrototypes):
    """Two prototypes of every class, passed through `alter(points, classes, z0, allowed)`."""

    def __init__(self, alter):
        super().__init__(per_class=2)
        self.alter = alter

    def nearest(self, z0, allowed):
        return self.alter(*super().nearest(z0, allowed), z0, allowed)


def altered(alter):
    return partial(Altered, alter)


class WritesIntoThePoints(KDTreePrototypes):
    def fit(self, z, labels):
        z[0] += 1
        return super().fit(z, labels)


class WritesIntoAllowed(KDTreePrototypes):
    def nearest(self, z0, allowed):
        allowed[:, 0] = True
        return super().nearest(z0, allowed)


class ThrowsDiceForPrototypes(KDTreePrototypes):
    def __init__(self):
        super().__init__()
        self.rng = np.random.default_rng(0)

    def fit(self, z, labels):
        return super().fit(z + 1e-9 * self.rng.normal(size=z.shape), labels)


class IgnoresWhatIsAllowed(KDTreePrototypes):
    def nearest(self, z0, allowed):
        return super().nearest(z0, np.ones_like(allowed))


class ForgetsTheLastClass(KDTreePrototypes):
    def fit(self, z, labels):
        return super().fit(z[labels < 2], labels[labels < 2])


def reversed_order(points, classes, z0, allowed):
    return points[:, ::-1], classes[:, ::-1]


def first_class_for_none(points, classes, z0, allowed):
    return points, np.where(classes < 0, 0, classes)


def mean_of_the_batch(points, classes, z0, allowed):
    return points + 1e-3 * z0.mean(axis=0), classes


# Categorical distances

CODES = np.stack([np.arange(60) % 4, np.arange(60) // 3 % 3], axis=1)
TABLE = (CODES, (4, 3), np.arange(60)[:, None] % 5, np.arange(60) % 2)


class GoodDistance:
    """|mean label of a - mean label of b|, 0.5 where there are no rows. Broken ones alter its matrices."""

    def __init__(self, alter=lambda matrix: matrix, **options):
        self.alter = alter

    def __call__(self, codes, n_categories, context, labels):
        return [self.alter(self.matrix(column, n, labels)) for column, n in zip(codes.T, n_categories, strict=True)]

    def matrix(self, column, n, labels):
        mean = np.array([labels[column == a].mean() if (column == a).any() else 0.5 for a in range(n)])
        return np.abs(mean[:, None] - mean) + 0.1 * (1 - np.eye(n))


class GivesTooFewMatrices(GoodDistance):
    def __call__(self, *table):
        return super().__call__(*table)[:1]


class DividesByTheOthers(GoodDistance):
    def matrix(self, column, n, labels):
        with np.errstate(invalid="ignore"):
            return np.zeros((n, n)) / np.float64(n - 1)


class DividesByTheRows(GoodDistance):
    def matrix(self, column, n, labels):
        with np.errstate(invalid="ignore"):
            mean = np.bincount(column, labels, minlength=n) / np.bincount(column, minlength=n)
        return np.abs(mean[:, None] - mean)


class CountsItsRows(GoodDistance):
    def matrix(self, column, n, labels):
        return super().matrix(column, column.max() + 1, labels)


class NeedsNumbers(GoodDistance):
    def __call__(self, codes, n_categories, context, labels):
        context[:, 0]
        return super().__call__(codes, n_categories, context, labels)


class ThrowsDiceForDistances(GoodDistance):
    def __call__(self, *table):
        self.calls = getattr(self, "calls", 0) + 1
        return [matrix * (1 + 1e-12 * self.calls) for matrix in super().__call__(*table)]


class WritesIntoTheCodes(GoodDistance):
    def __call__(self, codes, n_categories, context, labels):
        found = super().__call__(codes, n_categories, context, labels)
        codes[0] = 0
        codes[1] = 1
        return found


def on_frame(make):
    return lambda: (make(), pd.DataFrame(X, columns=Full.feature_names))


def member(base, **members):
    """A class of adapters with other members."""
    return type("Odd", (base,), members)


def with_tree(**arrays):
    """A class of adapters whose first tree has other arrays."""

    def trees(self):
        found = GoodEnsemble.trees(self)
        return replace(found, trees=(found.trees[0]._replace(**arrays), *found.trees[1:]))

    return member(GoodEnsemble, trees=trees)


def on_rows(broken):
    return lambda: (broken(), X.copy())


def on_net(broken):
    def make():
        model = Net()
        return broken(model), X.copy(), model

    return make


def on_points(broken):
    return lambda: (broken(), Z.copy(), LABELS.copy())


def on_table(broken):
    return lambda: (broken(), TABLE[0].copy(), TABLE[1], TABLE[2].copy(), TABLE[3].copy())


def distance(alter):
    return on_table(partial(GoodDistance, alter))


# What is caught: the check, what it is given, and what it says

FINITE = testing.output_is_finite_with_one_item_per_row
ROWS_SUM = testing.rows_are_probabilities_of_at_least_two_classes
CLASSES = testing.classes_are_distinct_and_as_many_as_columns
KINDS = testing.optional_members_are_of_the_right_kind
NAMES = testing.feature_names_are_distinct_and_one_for_each_column
PULLBACK = testing.pullback_agrees_with_random_direction_differences
FRAME_OR_ARRAY = testing.a_frame_and_the_array_of_its_numbers_agree
SORTED = testing.thresholds_are_sorted_for_every_column
CONSTANT = testing.output_is_constant_between_neighbouring_thresholds
QUICK = testing.quick_gives_what_predict_gives
TREES = testing.trees_give_what_predict_gives
LABELS_ARE_COLUMNS = testing.labels_are_columns_of_predict
SCORES = testing.largest_score_is_the_label
MODE = testing.model_training_mode_is_untouched
PARAMETERS = testing.model_parameters_are_untouched
MADE = testing.the_factory_makes_what_it_promises
UNTOUCHED = testing.the_factory_leaves_the_model_untouched
CLAIMS = testing.the_spec_claims_its_own_model
SHAPES = testing.points_and_classes_have_the_promised_shapes
MATRICES = testing.there_is_one_matrix_per_column
LENGTHS = testing.distances_are_finite_and_not_negative

ADAPTERS = [
    (FINITE, on_rows(GivesAList), "returned list, expected a NumPy array"),
    (FINITE, on_rows(GivesWords), "an array of <U32, expected numbers"),
    (FINITE, on_rows(DropsARow), "8 items for 9 rows"),
    (FINITE, on_rows(GivesNaN), "not finite"),
    (ROWS_SUM, on_rows(GivesOneColumn), r"shape \(9, 1\), expected \(n, k\)"),
    (ROWS_SUM, on_rows(GivesNegative), "negative"),
    (ROWS_SUM, on_rows(GivesLogits), "sums to 1"),
    (CLASSES, on_rows(MissesALabel), "has 2 labels.*expected 3 different labels"),
    (CLASSES, on_rows(RepeatsALabel), "has the label 'a' twice"),
    (testing.output_does_not_depend_on_the_batch, on_rows(LooksAtTheBatch), "together and one by one differ"),
    (testing.output_is_deterministic, on_rows(ThrowsDice), "two predictions of the same rows differ"),
    (testing.input_is_not_modified, on_rows(WritesIntoTheRows), "changed in place"),
    (testing.input_is_not_modified, on_rows(WritesIntoTheRowsInTheGradient), "changed in place"),
    (testing.float32_and_float64_agree, on_rows(LooksAtTheDtype), "float32 and float64 rows differ"),
    (PULLBACK, on_rows(HasAWrongGradient), "off finite differences"),
    (PULLBACK, on_rows(HasAFlatGradient), r"of shape \(9,\) for rows of shape \(9, 4\)"),
    (PULLBACK, on_rows(HasAnotherOutputInTheGradient), "vjp and predict give"),
    (SORTED, on_rows(SplitsTooFewColumns), "thresholds of 3 columns for 4 columns"),
    (SORTED, on_rows(SplitsUnsorted), "expected a list of arrays .* of sorted numbers"),
    (SORTED, on_rows(SplitsTwiceAtTheSamePlace), "not sorted and distinct"),
    (
        PULLBACK,
        on_rows(member(Good, vjp=lambda self, x: 5)),
        "vjp of the adapter .* returned 5; expected the output and",
    ),
    (PULLBACK, on_rows(HasNoNumbersInTheGradient), "the pullback returned values that are not finite"),
    (PULLBACK, on_rows(HasTextInTheGradient), "pullback that returned <U"),
    (CLASSES, on_rows(member(Good, classes="abc")), "classes of the adapter .* is 'abc'; expected 3 different labels"),
    (KINDS, lambda: (member(Good, labels=["a", "b", "c"])(),), r"labels is \['a', 'b', 'c'\], expected a method"),
    (KINDS, lambda: (member(Good, trees=())(),), r"trees is \(\), expected a method"),
    (KINDS, lambda: (member(Good, accepts_frames="no")(),), "accepts_frames is 'no', expected True or False"),
    (
        FRAME_OR_ARRAY,
        lambda: (TakesFramesAlone(), FRAME),
        "raises IndexError.*accepts_frames = True",
    ),
    (FRAME_OR_ARRAY, lambda: (SortsItsFrames(), FRAME), "a frame and the array of its numbers differ.*accepts_frames"),
    (NAMES, on_rows(member(Good, feature_names=("p", "q", "q", "s"))), "feature_names are not distinct"),
    (NAMES, on_rows(member(Good, feature_names=("p", "q"))), "2 feature_names for 4 columns"),
    (QUICK, on_rows(member(Good, quick=lambda self, x: self.predict(x).astype(str))), "quick returned an array of <U"),
    (TREES, on_rows(member(Good, trees=lambda self: [1])), "trees of the adapter .* returned list; expected a TreeEns"),
    (TREES, on_rows(with_tree(column=np.array([9, -1, -1]))), "a tree splits column 9, the rows have columns 0 to 3"),
    (TREES, on_rows(with_tree(threshold=np.zeros(1))), "trees that cannot be read"),
    (CONSTANT, on_rows(SplitsElsewhere), "no threshold of column 0 lies between"),
    (CONSTANT, on_rows(ForgetsASplit), "no threshold of column 3 lies between"),
    (CONSTANT, on_rows(ForgetsAColumn), "no threshold of column 0 lies between"),
    (CONSTANT, on_rows(SwapsTheColumns), "no threshold of column"),
    (QUICK, on_rows(QuickIsAnother), "quick and predict give different outputs"),
    (QUICK, on_rows(QuickHasOneColumn), r"quick returned shape \(9, 1\), predict \(9, 3\)"),
    (testing.input_is_not_modified, on_rows(WritesIntoTheRowsWhenQuick), "changed in place"),
    (LABELS_ARE_COLUMNS, on_rows(NamesItsLabels), "expected whole numbers"),
    (LABELS_ARE_COLUMNS, on_rows(CountsLabelsFromOne), "expected columns 0 to 2"),
    (LABELS_ARE_COLUMNS, on_rows(GivesLabelsAsAColumn), r"labels returned shape \(9, 1\)"),
    (testing.labels_do_not_depend_on_the_batch, on_rows(ComparesLabelsWithTheBatch), "one by one differ"),
    (SCORES, on_rows(ScoresAnotherClass), r"the largest score is not that of labels.*first in row 0"),
    (SCORES, on_rows(ScoresDoNotSumToOne), r"a row of scores sums to 1 \+- 1"),
    (SCORES, on_rows(ScoresOneColumn), r"scores returned shape \(9, 1\) for 9 rows, expected \(9, 3\)"),
    (testing.input_is_not_modified, on_rows(WritesIntoTheRowsWhenScoring), "changed in place"),
    (testing.a_batch_of_max_rows_is_predicted, on_rows(TakesFewerRowsThanItSays), "4 items for max_rows=5 rows"),
    (testing.a_batch_of_max_rows_is_predicted, on_rows(DependsOnTheSizeOfTheBatch), "max_rows=5 and alone differ"),
    (testing.columns_of_a_frame_may_come_in_any_order, on_frame(TakesColumnsByPosition), "columns reversed differs"),
    (TREES, on_rows(TreesTakeTheOtherSide), "the trees and predict give different probabilities"),
    (TREES, on_rows(TreesForgetTheBase), "the trees and predict give different probabilities"),
    (TREES, lambda: (TreesSendMissingValuesAstray(), WITH_HOLES), "the trees and predict give different"),
]
MODELS = [
    (MODE, on_net(LeavesEvaluationMode), "left another training mode in Net"),
    (MODE, on_net(GivesAllPartsTheModeOfTheModel), "left another training mode in SimpleNamespace"),
    (testing.output_does_not_depend_on_the_training_mode, on_net(StaysInTrainingMode), "the output in training mode"),
    (PARAMETERS, on_net(ChangesAWeight), "changed the model: weight"),
    (PARAMETERS, on_net(StaysInTrainingMode), "changed the model: seen"),
]
SPECS = [
    (CLAIMS, lambda: (spec(GoodNetAdapter, "acme_lost:Net"), Net()), "nothing imported 'acme_lost'"),
    (CLAIMS, lambda: (spec(GoodNetAdapter, f"{__name__}:Nett"), Net()), f"Nett' is no class.* '{__name__}:Net'"),
    (CLAIMS, lambda: (spec(GoodNetAdapter, f"{__name__}:Good"), Net()), "is no base class of it"),
    (MADE, lambda: (spec(raising), Net()), "failed: KeyError: 'weights'"),
    (MADE, lambda: (spec(lambda model, **options: 3), Net()), "returned 3, which has no method predict"),
    (MADE, lambda: (spec(lambda model, **options: GoodNetAdapter), Net()), "has no method predict"),
    (UNTOUCHED, lambda: (spec(ChangesTheModelWhenMade), Net()), "changed the model: weight"),
    (UNTOUCHED, lambda: (spec(SwitchesTheModelWhenMade), Net()), "took the model out of training mode"),
    (testing.loading_imports_no_framework, lambda: ("cfproto_test_heavy",), "imports cfproto_test_framework, pandas: "),
    (testing.loading_imports_no_framework, lambda: ("cfproto_test_lost",), "No module named 'cfproto_test_lost'"),
]
PROVIDERS = [
    (testing.fit_returns_a_provider, on_points(FitReturnsNothing), "fit returned None, expected the provider"),
    (SHAPES, on_points(altered(lambda p, c, *_: (p[:, 0], c))), r"points have shape \(12, 3\)"),
    (SHAPES, on_points(altered(lambda p, c, *_: (p, c[:, 0]))), r"classes have shape \(12,\), expected \(12, 4\)"),
    (SHAPES, on_points(altered(lambda p, c, *_: (p, c.astype(float)))), "float64, expected whole numbers"),
    (SHAPES, on_points(altered(lambda p, c, *_: (p.tolist(), c))), "two NumPy arrays"),
    (SHAPES, on_points(altered(lambda p, c, *_: (p * np.nan, c))), "not finite"),
    (testing.classes_are_allowed_ones, on_points(IgnoresWhatIsAllowed), r"row 0 got a prototype of class \[0\]"),
    (testing.classes_are_allowed_ones, on_points(altered(lambda p, c, *_: (p, c + 9))), "allowed are"),
    (testing.every_class_with_points_has_a_prototype, on_points(ForgetsTheLastClass), "only class 2 is allowed"),
    (
        testing.rows_without_a_prototype_have_class_minus_one,
        on_points(altered(first_class_for_none)),
        "a row without any prototype has the classes",
    ),
    (
        testing.rows_without_a_prototype_have_class_minus_one,
        on_points(altered(lambda p, c, *_: (p, np.full_like(c, -1)))),
        "a row with prototypes has the classes",
    ),
    (testing.nearest_comes_first, on_points(altered(reversed_order)), "nearer than the one before it"),
    (testing.prototypes_are_deterministic, on_points(ThrowsDiceForPrototypes), "asked twice, the prototypes differ"),
    (testing.points_are_not_modified, on_points(WritesIntoThePoints), "z changed in place"),
    (testing.points_are_not_modified, on_points(WritesIntoAllowed), "allowed changed in place"),
    (testing.prototypes_do_not_depend_on_the_batch, on_points(altered(mean_of_the_batch)), "row 0 asked alone"),
]
DISTANCES = [
    (MATRICES, on_table(GivesTooFewMatrices), "1 matrices for 2 columns"),
    (MATRICES, distance(lambda m: m[:-1]), r"column 0: shape \(3, 4\), expected \(4, 4\)"),
    (MATRICES, distance(lambda m: m.tolist()), "column 0: list, expected a NumPy array"),
    (LENGTHS, distance(lambda m: np.where(m > 0, np.inf, 0)), "not finite"),
    (LENGTHS, distance(lambda m: -m), "negative"),
    (testing.distances_are_symmetric, distance(np.triu), r"column 0: from category 0 to \d it is .*, back it is 0"),
    (testing.a_category_is_at_no_distance_from_itself, distance(lambda m: m + 0.1), "category 0 is at distance 0.1"),
    (testing.a_column_with_one_category_works, on_table(DividesByTheOthers), "column 2: a distance is not finite"),
    (testing.a_category_without_rows_works, on_table(DividesByTheRows), "column 0: a distance is not finite"),
    (testing.a_category_without_rows_works, on_table(CountsItsRows), r"shape \(4, 4\), expected \(5, 5\)"),
    (testing.a_table_without_numbers_works, on_table(NeedsNumbers), "out of bounds"),
    (testing.distances_are_deterministic, on_table(ThrowsDiceForDistances), "asked twice, the distances differ"),
    (testing.the_table_is_not_modified, on_table(WritesIntoTheCodes), "codes changed in place"),
]
CAUGHT = ADAPTERS + MODELS + SPECS + PROVIDERS + DISTANCES
NOT_A_CHECK = {"Check", "checks", "examine"}
CHECKS = {
    name
    for name in testing.__all__
    if name not in NOT_A_CHECK and not name.startswith("check_") and not name.endswith("_checks")
}


@pytest.fixture(autouse=True)
def heavy_plugin(tmp_path_factory, monkeypatch):
    """Two plugins on the path: one that imports pandas and the framework of its model, one that does not."""
    folder = tmp_path_factory.mktemp("plugins")
    hook = """
from cfproto_plugin import AdapterSpec, hookimpl
@hookimpl
def cfproto_adapters():
    return [AdapterSpec("x", ("cfproto_test_framework.nets:Net", "cfproto_test_light:Own"), dict)]
"""
    (folder / "cfproto_test_framework.py").write_text("", encoding="utf-8")
    (folder / "cfproto_test_light.py").write_text(f"print('a plugin that talks')\n{hook}", encoding="utf-8")
    (folder / "cfproto_test_needs_colorsys.py").write_text(f"import colorsys\n{hook}", encoding="utf-8")
    heavy = f"import cfproto_test_framework, pandas\n{hook}"
    (folder / "cfproto_test_heavy.py").write_text(heavy, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)


# The meta-tests


@pytest.mark.parametrize(("check", "make", "message"), CAUGHT, ids=lambda value: getattr(value, "__name__", None))
def test_check_catches_what_breaks_its_rule(check, make, message):
    with pytest.raises((AssertionError, IndexError), match=message):
        check(*make())


def without_example(names):
    return sorted(set(names) - {check.__name__ for check, *_ in CAUGHT})


def test_every_check_has_an_example_that_it_catches():
    assert without_example(CHECKS) == []
    assert without_example([*CHECKS, "rows_are_nice"]) == ["rows_are_nice"]


def test_every_check_that_is_run_is_public_and_the_other_way_round():
    run = [
        *testing.spec_checks(spec(), Net(), X),
        *testing.provider_checks(KDTreePrototypes(), Z, LABELS),
        *testing.distance_checks(GoodDistance(), *TABLE),
    ]
    assert {check.name for check in run} == CHECKS


@pytest.mark.parametrize(("check", "make"), [pair[:2] for pair in ADAPTERS])
def test_check_adapter_catches_every_broken_adapter(check, make):
    with pytest.raises((AssertionError, TypeError, np.exceptions.DTypePromotionError)):
        check_adapter(*make())


@pytest.mark.parametrize(("check", "make"), [pair[:2] for pair in MODELS])
def test_check_adapter_catches_what_happens_to_the_model(check, make):
    adapter, x, model = make()
    with pytest.raises(AssertionError):
        check_adapter(adapter, x, model=model)


@pytest.mark.parametrize("make", [make for check, make, _ in SPECS if make()[1:]])
def test_check_spec_catches_every_broken_spec(make):
    broken, model = make()
    with pytest.raises(AssertionError):
        check_spec(broken, model, X, role="classifier")


@pytest.mark.parametrize("make", [make for _, make, _ in PROVIDERS])
def test_check_provider_catches_every_broken_provider(make):
    with pytest.raises((AssertionError, AttributeError, ValueError, IndexError, TypeError)):
        check_provider(*make())


@pytest.mark.parametrize("make", [make for _, make, _ in DISTANCES])
def test_check_distance_catches_every_broken_distance(make):
    with pytest.raises((AssertionError, AttributeError, IndexError)):
        check_distance(*make())


# What is good passes


def test_good_adapters_pass_everything():
    check_adapter(Good(), X)
    check_adapter(Good(), X.reshape(9, 2, 2))
    check_adapter(Full(), X)
    check_adapter(Full(), pd.DataFrame(X, columns=Full.feature_names))
    check_adapter(GoodEnsemble(), X)
    check_adapter(GoodEnsemble(), WITH_HOLES)
    check_adapter(GoodTree(), X)
    check_adapter(GoodTree(), X.reshape(9, 2, 2).astype(np.float32))
    model = Net()
    check_adapter(GoodNetAdapter(model), X, model=model)
    assert model.training
    assert model.layer.training


class Proxy:
    """Forwards everything to another adapter."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)


@pytest.mark.parametrize("make", [Good, Full, GoodEnsemble, GivesLogits, QuickIsAnother, TreesForgetTheBase])
def test_a_proxy_is_checked_like_the_adapter_behind_it(make):
    def results(adapter):
        outcome = []
        for check in testing.examine(adapter, X).checks:
            try:
                check()
            except AssertionError as error:
                outcome.append((check.name, check.skipped, str(error)))
            else:
                outcome.append((check.name, check.skipped, ""))
        return outcome

    assert results(Proxy(make())) == results(make())


def test_good_spec_passes_everything():
    check_spec(spec(), Net(), X)
    check_spec(PrototypeSpec("kdtree", KDTreePrototypes), Z, LABELS, k=2)
    check_spec(DistanceSpec("good", GoodDistance), *TABLE)


def test_plugin_in_place_of_its_spec():
    plugin = SimpleNamespace(cfproto_adapters=lambda: [spec(), AdapterSpec("other", ("acme:Net",), raising)])
    plugin.cfproto_adapters.__name__ = "cfproto_adapters"
    hookimpl(plugin.cfproto_adapters)
    check_spec(plugin, Net(), X)
    with pytest.raises(InputError, match=r"for .*Good: net, other\. Pass a spec"):
        check_spec(plugin, Good(), X)


@pytest.mark.parametrize("provider", [KDTreePrototypes(), KDTreePrototypes(k=3, per_class=8)])
def test_built_in_prototypes_pass(provider):
    check_provider(provider, Z, LABELS)
    check_provider(provider, np.random.default_rng(0).normal(size=(40, 3, 2)).astype(np.float32), LABELS)


@pytest.mark.parametrize("options", [{}, {"k": 5}, {"k": 5, "k_type": "point"}])
def test_built_in_encoder_prototypes_pass_in_the_space_of_the_encoder(options):
    encoder = SimpleNamespace(predict=lambda x: np.stack([x[:, :2], x[:, :2] ** 2], axis=1))
    check_provider(EncoderPrototypes(encoder=encoder, **options), Z, LABELS)
    check_spec(PrototypeSpec("encoder", EncoderPrototypes), Z, LABELS, encoder=encoder)


@pytest.mark.parametrize("distance", [GoodDistance(), ABDM(), MVDM(), Mix()])
def test_built_in_distances_pass(distance):
    check_distance(distance, *TABLE)


@pytest.mark.parametrize(
    "kind", ["forest", "linear", "XGBClassifier", "Booster", "torch", pytest.param("keras", marks=pytest.mark.slow)]
)
def test_models_of_the_built_in_adapters_pass_with_their_plugin(kind, cancer):
    x, y = cancer
    x = ((x - x.mean(axis=0)) / x.std(axis=0)).astype(np.float32)
    found = testing.examine(built_in(kind, x, y), x[:20])
    for check in found.checks:
        check()
    done = {check.name for check in found.checks if not check.skipped}
    assert {"the_spec_claims_its_own_model", "loading_imports_no_framework", "model_parameters_are_untouched"} <= done
    assert ("output_is_constant_between_neighbouring_thresholds" in done) == (
        kind in {"forest", "XGBClassifier", "Booster"}
    )
    assert ("pullback_agrees_with_random_direction_differences" in done) == (kind in {"linear", "torch", "keras"})
    assert ("model_training_mode_is_untouched" in done) == (kind == "torch")


def built_in(kind, x, y):
    if kind in {"forest", "linear"}:
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.linear_model import LogisticRegression

        return (RandomForestClassifier(20, random_state=0) if kind == "forest" else LogisticRegression()).fit(x, y)
    if kind in {"XGBClassifier", "Booster"}:
        from xgboost import XGBClassifier

        model = XGBClassifier(n_estimators=20).fit(x, y)
        return model if kind == "XGBClassifier" else model.get_booster()
    layers = networks.trained(x, y, (30, 8, 2), epochs=2)
    if kind == "keras":
        return networks.in_keras(layers)
    import torch

    return torch.nn.Sequential(torch.nn.BatchNorm1d(30), torch.nn.Dropout(0.5), networks.in_torch(layers)).train()


# What each part finds


@pytest.mark.needs("torch")
def test_a_torch_adapter_that_forgets_evaluation_mode_is_caught():
    import torch

    model = torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 3), torch.nn.Softmax(dim=1)).eval()

    class Careless:
        def predict(self, x):
            return model(torch.from_numpy(x.astype(np.float32))).detach().numpy()

    class CarelessWithGradients(Careless):
        def vjp(self, x):
            y = model(leaf := torch.from_numpy(x.astype(np.float32)).requires_grad_())

            def pullback(cotangent):
                y.backward(torch.from_numpy(cotangent.astype(np.float32)))
                return leaf.grad.numpy()

            return y.detach().numpy(), pullback

    with pytest.raises(AssertionError, match="changed the model: gradient of parameter 0, gradient of parameter 1"):
        testing.model_parameters_are_untouched(CarelessWithGradients(), X, model)
    with pytest.raises(AssertionError, match=r"changed the model: 0\.running_mean, 0\.running_var"):
        testing.model_parameters_are_untouched(Careless(), X, model)
    with pytest.raises(AssertionError, match="the output in training mode"):
        testing.output_does_not_depend_on_the_training_mode(Careless(), X, model)
    assert not any(module.training for module in model.modules())


def test_a_missing_split_of_a_real_forest_is_caught(forest, cancer):
    adapter = adapted(forest).adapter
    splits = Adapted.of(adapter, "forest").thresholds
    testing.output_is_constant_between_neighbouring_thresholds(adapter, cancer[0][:50])
    every_third = [np.delete(values, slice(None, None, 3)) for values in splits]
    broken = SimpleNamespace(predict=adapter.predict, thresholds=lambda: every_third)
    with pytest.raises(AssertionError, match="no threshold of column"):
        testing.output_is_constant_between_neighbouring_thresholds(broken, cancer[0][:50])


def test_a_column_of_categories_needs_no_thresholds():
    codes = np.arange(9.0)[:, None] % 3
    tree = SimpleNamespace(predict=lambda x: np.rint(x) == 1, thresholds=lambda: [np.array([])])
    testing.output_is_constant_between_neighbouring_thresholds(tree, codes)
    with pytest.raises(AssertionError, match="no threshold of column 0"):
        testing.output_is_constant_between_neighbouring_thresholds(
            SimpleNamespace(predict=lambda x: x > 1, thresholds=lambda: [np.array([])]), codes + 0.5
        )


def test_loading_looks_at_the_frameworks_given_and_those_of_the_claims():
    testing.loading_imports_no_framework("cfproto_test_light")
    testing.loading_imports_no_framework(ModuleType("cfproto_adapters.torch_adapter"))
    with pytest.raises(AssertionError, match="imports colorsys: import frameworks inside the functions"):
        testing.loading_imports_no_framework("cfproto_test_needs_colorsys", ["colorsys"])


def test_frames_are_checked_as_frames():
    class ByName:
        accepts_frames = True

        def predict(self, x):
            p = x["a"].to_numpy() / 10
            return np.stack([p, 1 - p], axis=1)

    frame = pd.DataFrame({"a": range(5), "b": list("uvwxy")})
    check_adapter(ByName(), frame)

    class Writes(ByName):
        def predict(self, x):
            y = super().predict(x)
            x.loc[0, "b"] = "z"
            return y

    with pytest.raises(AssertionError, match="changed in place"):
        check_adapter(Writes(), frame)


def test_a_frame_of_numbers_is_tried_as_an_array_unless_the_adapter_gets_frames():
    def skipped(adapter, rows):
        found = testing.adapter_checks(adapter, rows)
        return next(check.skipped for check in found if check.name == FRAME_OR_ARRAY.__name__)

    assert skipped(TakesFramesAlone(), FRAME) == ""
    assert skipped(Full(), FRAME) == "the adapter has accepts_frames: it gets DataFrames"
    assert skipped(Good(), X) == "the rows are an array"
    texts = FRAME.assign(t="u")
    assert skipped(TakesFramesAlone(), texts) == "column 't' holds no numbers: the adapter gets DataFrames"


def test_the_error_of_fit_says_that_the_adapter_was_given_an_array():
    with pytest.raises(ModelError, match=r"was given the array of its numbers.*write accepts_frames = True in the"):
        CounterfactualExplainer(TakesFramesAlone()).fit(FRAME)
    CounterfactualExplainer(member(TakesFramesAlone, accepts_frames=True)()).fit(FRAME)
    with pytest.raises(ModelError, match="Try it on a few of these rows yourself") as raised:
        CounterfactualExplainer(TakesFramesAlone()).fit(X)
    assert "accepts_frames" not in str(raised.value)


def test_transform_need_not_give_probabilities():
    class Encoder:
        def predict(self, x):
            return x.reshape(len(x), 2, 2) * 2

    check_adapter(Encoder(), X, role="transform")
    with pytest.raises(AssertionError, match="expected \\(n, k\\)"):
        check_adapter(Encoder(), X)


def test_tolerance_can_be_chosen():
    class Sloppy(Good):
        def predict(self, x):
            return super().predict(x + 1e-3 * len(x))

    with pytest.raises(AssertionError, match="together and one by one differ"):
        testing.output_does_not_depend_on_the_batch(Sloppy(), X)
    testing.output_does_not_depend_on_the_batch(Sloppy(), X, atol=0.1)


# The list for a parametrized test


@pytest.fixture
def installed():
    """The spec of Net, registered as a plugin."""

    class Plugin:
        @hookimpl
        def cfproto_adapters(self):
            return [spec()]

    register(Plugin(), "net plugin")
    yield
    unregister("net plugin")


def test_checks_of_a_model_are_those_of_its_plugin_and_its_adapter(installed):
    found = checks(Net(), X)
    names = [str(check) for check in found]
    assert names[0] == "the spec claims its own model"
    assert "model training mode is untouched" in names
    assert "pullback agrees with random direction differences" not in names
    for check in found:
        check()
    what = testing.examine(Net(), X).what
    assert what == f"adapter 'net' of plugin net plugin (registered at run time) for {__name__}.Net"


def test_skipped_checks_say_why_and_do_nothing():
    found = {check.name: check for check in testing.adapter_checks(GivesNaN(), X, role="transform")}
    skipped = found["rows_are_probabilities_of_at_least_two_classes"]
    assert skipped.skipped == "its role is transform"
    skipped()
    assert found["thresholds_are_sorted_for_every_column"].skipped == "the adapter has no thresholds()"
    assert found["model_parameters_are_untouched"].skipped == "the model was not given"
    with pytest.raises(AssertionError, match="not finite"):
        found["output_is_finite_with_one_item_per_row"]()


@pytest.mark.parametrize(
    ("subject", "first"),
    [
        ((Good(), X), "output is finite with one item per row"),
        ((lambda x: np.full((len(x), 2), 0.5), X), "output is finite with one item per row"),
        ((KDTreePrototypes(), Z, LABELS), "fit returns a provider"),
        ((ABDM(), *TABLE), "there is one matrix per column"),
        ((spec(), Net(), X), "the spec claims its own model"),
        ((PrototypeSpec("kdtree", KDTreePrototypes), Z, LABELS), "the factory makes what it promises"),
    ],
)
def test_checks_are_chosen_by_what_is_given(subject, first):
    found = checks(*subject)
    assert str(found[0]) == first
    for check in found:
        check()


@pytest.mark.parametrize(
    ("subject", "error", "message"),
    [
        ((Good(), X[:2]), InputError, r"at least 3 rows, got ndarray of shape \(2, 4\)"),
        ((Good(), X.tolist()), InputError, "an array or DataFrame of at least 3 rows, got list"),
        ((object(), X), NoAdapterError, "no adapter claims builtins.object"),
        ((Good(), X, X, X), InputError, r"came with 3 items; expected one of\n  model, rows"),
        ((spec(), X), InputError, "AdapterSpec 'net' came with 1 items; expected model, rows"),
        ((KDTreePrototypes(), Z, LABELS + 0.5), InputError, "labels are float64 of shape"),
        ((KDTreePrototypes(), Z, LABELS * 0), InputError, "labels hold 1 class"),
        ((ABDM(), CODES, (4,), *TABLE[2:]), InputError, r"codes have shape \(60, 2\); expected \(n, 1\)"),
        ((ABDM(), CODES, (4, 3), TABLE[2][:9], TABLE[3]), InputError, r"context has shape \(9, 1\)"),
    ],
)
def test_what_cannot_be_checked_is_said(subject, error, message):
    with pytest.raises(error, match=message):
        checks(*subject)
