"""Tree ensembles as plain arrays: sums in the order of the trees, comparisons in their dtype, split values."""

from __future__ import annotations

import numpy as np
import pytest

from cfproto_plugin.helpers import tree_probabilities, tree_scores, tree_thresholds, trees
from cfproto_plugin.protocols import Tree, TreeEnsemble


def random_tree(rng, columns, m, depth=6, score=None):
    """A tree of random shape with m values per leaf, or one in the column `score`."""
    nodes = []

    def grow(level):
        place = len(nodes)
        nodes.append(None)
        if level == depth or (level and rng.random() < 0.2):
            value = rng.normal(size=m) if score is None else np.eye(m)[score] * rng.normal()
            nodes[place] = (-1, 0.0, -1, -1, False, value)
        else:
            left, right = grow(level + 1), grow(level + 1)
            nodes[place] = (rng.integers(columns), rng.normal(), left, right, rng.random() < 0.5, np.full(m, 9.0))
        return place

    grow(0)
    return Tree(*(np.array(part) for part in zip(*nodes, strict=True)))


def ensemble(n_trees=12, columns=4, m=3, single=False, **options):
    rng = np.random.default_rng(0)
    grown = tuple(random_tree(rng, columns, m, score=i % m if single else None) for i in range(n_trees))
    settings = {"link": "identity", "equal_left": True, "dtype": "float64"} | options
    return TreeEnsemble(grown, rng.normal(size=m), columns, **settings)


def leaf(tree, row, model):
    node = 0
    while tree.column[node] >= 0:
        value, at = row[tree.column[node]], tree.threshold[node]
        if np.isnan(value) or value == model.missing:
            left = tree.missing_left[node]
        else:
            left = value <= at if model.equal_left else value < at
        node = (tree.left if left else tree.right)[node]
    return node


def scores_one_by_one(model, rows):
    found = []
    for row in rows.astype(model.dtype):
        total = model.base.copy()
        for tree in model.trees:
            total += tree.value[leaf(tree, row, model)]
        found.append(total / model.divisor)
    return np.array(found)


def rows_of(model, n):
    """Random rows, a tenth of their values missing, another tenth at thresholds."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(n, model.n_columns))
    for j, values in enumerate(tree_thresholds(model)):
        chosen = rng.random(n) < 0.1
        rows[chosen, j] = rng.choice(values, size=chosen.sum())
    rows[rng.random(rows.shape) < 0.1] = np.nan
    return rows


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("equal_left", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [0, 1, 2, 300])
def test_scores_are_the_sums_of_the_leaves_bit_for_bit(single, equal_left, dtype, n, monkeypatch):
    monkeypatch.setattr(trees, "_CELLS_PER_CHUNK", 1000)
    model = ensemble(single=single, equal_left=equal_left, dtype=dtype, divisor=7.0)
    rows = rows_of(model, n)
    assert np.array_equal(tree_scores(model, rows), scores_one_by_one(model, rows).reshape(n, 3))


@pytest.mark.parametrize("single", [True, False])
def test_compiled_leaves_give_the_same_bits(single):
    model = ensemble(single=single)
    compiled = [lambda x, tree=tree: np.array([leaf(tree, row, model) for row in x]) for tree in model.trees]
    rows = rows_of(model, 100)
    assert np.array_equal(tree_scores(model, rows, compiled), tree_scores(model, rows))


def test_a_value_that_stands_for_a_missing_one_goes_where_missing_values_go():
    model = ensemble(missing=-7.0)
    rows = rows_of(model, 200)
    assert np.array_equal(tree_scores(model, np.where(np.isnan(rows), -7.0, rows)), tree_scores(model, rows))


def test_links_turn_scores_into_probabilities():
    rows = rows_of(ensemble(), 50)
    p = tree_probabilities(ensemble(link="softmax"), rows)
    e = np.exp(tree_scores(ensemble(), rows))
    np.testing.assert_allclose(p, e / e.sum(axis=1, keepdims=True), rtol=1e-12)
    one = ensemble(m=1, link="logistic")
    p = tree_probabilities(one, rows)
    np.testing.assert_allclose(p[:, 1], 1 / (1 + np.exp(-tree_scores(one, rows)[:, 0])), rtol=1e-12)
    np.testing.assert_array_equal(p[:, 0], 1 - p[:, 1])


def test_thresholds_between_two_float32_numbers_are_compared_exactly():
    at = 0.1  # its float32 is above it
    above, below = np.float32(0.1), np.nextafter(np.float32(0.1), np.float32(0))
    stump = Tree(
        *(np.array(v) for v in ([0, -1, -1], [at, 0, 0], [1, -1, -1], [2, -1, -1], [0, 0, 0])), np.arange(3.0)[:, None]
    )
    for equal_left in (True, False):
        model = TreeEnsemble((stump,), np.zeros(1), 1, "identity", equal_left, "float32")
        assert tree_scores(model, np.array([[below], [above]])).ravel().tolist() == [1, 2]


def test_no_trees_give_the_base():
    model = TreeEnsemble((), np.array([0.25, 0.75]), 3, "identity", equal_left=True, dtype="float64")
    assert tree_scores(model, np.zeros((2, 3))).tolist() == [[0.25, 0.75]] * 2
    assert [len(values) for values in tree_thresholds(model)] == [0, 0, 0]


def test_rows_and_trees_are_not_changed_and_may_be_read_only():
    model = ensemble(missing=-7.0)
    rows = rows_of(model, 5)
    rows[0, 0] = -7.0
    rows.flags.writeable = False
    for part in (array for tree in model.trees for array in tree[:6]):
        part.flags.writeable = False
    tree_scores(model, rows)
