from __future__ import annotations

import logging

import networks
import numpy as np
import pytest
from scipy.spatial import KDTree

from cfproto_plugin import CounterfactualExplainer, SearchConfig, adapt
from cfproto_plugin.errors import ConfigError
from cfproto_plugin.plugins import own_copy
from cfproto_plugin.prototypes import EncoderPrototypes, KDTreePrototypes
from cfproto_plugin.prototypes.brute import BruteForce

RNG = np.random.default_rng(5)
Z, LABELS, Z0 = RNG.normal(size=(60, 4)), RNG.integers(0, 3, 60), RNG.normal(size=(8, 4))
ALLOWED = np.arange(3) != RNG.integers(0, 3, 8)[:, None]


class Doubling:
    """An encoder that doubles, shaped (n, 2, 2)."""

    def predict(self, x):
        return (2 * x).reshape(-1, 2, 2)


@pytest.mark.parametrize("k", [1, 2, 7])
def test_kdtree_prototype_is_the_kth_nearest_item_of_the_closest_class(k):
    points, classes = KDTreePrototypes(k=k, per_class=3).fit(Z, LABELS).nearest(Z0, ALLOWED)
    for i, z0 in enumerate(Z0):
        kth = {}
        for label in np.flatnonzero(ALLOWED[i]):
            items = Z[label == LABELS]
            kth[label] = items[np.argsort(np.linalg.norm(items - z0, axis=1))[k - 1]]
        winner = min(kth, key=lambda label: np.linalg.norm(kth[label] - z0))
        assert classes[i, 0] == winner
        assert np.array_equal(points[i, 0], kth[winner])
        assert (np.diff(np.linalg.norm(points[i] - z0, axis=1)) >= 0).all()
        assert not set(classes[i]) - set(np.flatnonzero(ALLOWED[i]))


def drawn(kind):
    """Points (1500, 20) and rows (30, 20) near and among them."""
    rng = np.random.default_rng(7)
    points = rng.normal(size=(1500, 20))
    if kind == "integers":
        points = rng.integers(0, 3, (1500, 20)).astype(float)
    if kind == "twice":
        points[750:] = points[:750]
    if kind == "far from zero":
        points += 1e6
    if kind == "an outlier":
        points[17] = 1e25
    rows = np.concatenate([points[:10], points[500:520] + 0.1 * rng.normal(size=(20, 20))])
    return (points.astype(np.float32), rows.astype(np.float32)) if kind == "32 bits" else (points, rows)


@pytest.mark.parametrize("kind", ["normal", "integers", "twice", "far from zero", "an outlier", "32 bits"])
def test_brute_force_finds_the_nearest_exactly_and_of_equals_the_first(kind):
    points, rows = drawn(kind)
    distance, index = BruteForce(points).query(rows, [1, 2, 3, 9])
    for row, d, at in zip(rows, distance, index, strict=True):
        exact = np.sqrt(np.square(points - row).sum(axis=1, dtype=np.float64))
        order = np.argsort(exact, kind="stable")[[0, 1, 2, 8]]
        assert at.tolist() == order.tolist()
        np.testing.assert_allclose(d, exact[order], rtol=1e-12)


def test_wide_tables_have_the_prototypes_that_trees_find():
    points, rows = drawn("normal")
    labels = np.arange(len(points)) % 3 % 2  # the second class is too small to be searched otherwise than by a tree
    allowed = np.arange(2) == (np.arange(len(rows)) % 2)[:, None]
    wide = KDTreePrototypes(per_class=4).fit(points, labels)
    assert [type(tree) for tree in wide.trees_] == [BruteForce, KDTree]
    found, classes = wide.nearest(rows, allowed)
    wide.trees_ = [KDTree(part) for part in wide.points_]
    assert np.array_equal(found, wide.nearest(rows, allowed)[0])
    assert np.array_equal(classes, wide.nearest(rows, allowed)[1])


def test_a_class_is_searched_only_for_rows_that_allow_it(monkeypatch):
    asked = []
    provider = KDTreePrototypes().fit(Z, LABELS)
    for tree in provider.trees_:

        def query(z, k, tree=tree):
            asked.append(len(z))
            return KDTree.query(tree, z, k=k)

        monkeypatch.setattr(tree, "query", query)
    provider.nearest(Z0, ALLOWED)
    assert sum(asked) == ALLOWED.sum() < ALLOWED.size


@pytest.mark.parametrize(("k", "k_type"), [(1, "mean"), (5, "mean"), (None, "mean"), (5, "point")])
def test_encoder_prototype_is_the_mean_of_the_k_nearest_encodings(k, k_type):
    provider = EncoderPrototypes(k=k, k_type=k_type, encoder=Doubling()).fit(Z, LABELS)
    points, classes = provider.nearest(Z0, ALLOWED)
    assert points.shape[2:] == (2, 2)
    for i, z0 in enumerate(2 * Z0):
        prototypes = {}
        for label in np.flatnonzero(ALLOWED[i]):
            items = 2 * Z[label == LABELS]
            near = items[np.argsort(np.linalg.norm(items - z0, axis=1))][:k]
            prototypes[label] = near.mean(axis=0) if k_type == "mean" else near[-1]
        order = sorted(prototypes, key=lambda label: np.linalg.norm(prototypes[label] - z0))
        assert classes[i].tolist() == order
        assert np.allclose(points[i].reshape(-1, 4), [prototypes[label] for label in order])


@pytest.mark.parametrize("provider", [KDTreePrototypes(k=9), EncoderPrototypes(k=9, encoder=Doubling())])
def test_class_with_fewer_items_than_k_uses_what_it_has(provider):
    labels = np.array([0] * 57 + [1, 1, 2])
    points, classes = provider.fit(Z, labels).nearest(Z0[:1], np.array([[False, True, True]]))
    assert sorted(classes[0]) == [1, 2]
    assert np.isfinite(points).all()


def test_row_without_an_allowed_class_has_class_minus_one():
    _, classes = KDTreePrototypes().fit(Z, LABELS).nearest(Z0[:2], np.array([[False] * 3, [True] * 3]))
    assert (classes[0] == -1).all()
    assert (classes[1] >= 0).all()


def test_images_keep_their_shape():
    points, _ = KDTreePrototypes(per_class=2).fit(Z.reshape(60, 2, 2), LABELS).nearest(Z0.reshape(8, 2, 2), ALLOWED)
    assert points.shape == (8, 4, 2, 2)


def test_encoder_provider_without_encoder_is_an_error():
    with pytest.raises(ConfigError, match="pass encoder="):
        CounterfactualExplainer(lambda x: x, prototypes="encoder").fit(Z)


def test_class_the_model_never_predicts_is_left_out_and_said_so(caplog):
    layers = [(RNG.normal(size=(4, 3)), np.array([0.0, 0.0, -99.0]))]
    with caplog.at_level(logging.WARNING):
        explainer = CounterfactualExplainer(lambda x: networks.forward(layers, x)).fit(Z)
    assert "predicts 2 for no training row" in caplog.text
    e = explainer.explain(Z[:3])
    assert e.meta["classes_without_prototype"] == [2]
    assert set(e.counterfactual_class) <= {0, 1}
    e = explainer.explain(Z[:3], target=2)
    assert set(e.status) == {"not_found"}
    assert "for no training row" in e.message[0]


def test_a_provider_may_be_an_instance():
    layers = [(RNG.normal(size=(4, 3)), np.zeros(3))]
    provider = KDTreePrototypes(k=3)
    explainer = CounterfactualExplainer(
        lambda x: networks.forward(layers, x), prototypes=provider, search=SearchConfig()
    ).fit(Z)
    assert explainer.fitted_.guide.provider.k == 3
    assert explainer.fitted_.guide.provider is not provider
    assert not hasattr(provider, "trees_"), "the user's own stays as it is"
    assert set(explainer.explain(Z0).status) == {"found"}


def test_a_provider_that_was_passed_in_is_left_as_it_was_and_serves_two_explainers():
    layers = [(RNG.normal(size=(4, 3)), np.zeros(3))]
    provider = KDTreePrototypes(k=3)

    def fitted(rows):
        return CounterfactualExplainer(lambda x: networks.forward(layers, x), prototypes=provider).fit(rows)

    first = fitted(Z)
    before = first.explain(Z0)
    fitted(Z[::2] + 1)
    assert vars(provider) == {"k": 3, "per_class": 1}
    np.testing.assert_array_equal(first.explain(Z0).counterfactual, before.counterfactual)


def test_a_provider_that_was_passed_in_shares_its_encoder():
    encoder = adapt(lambda x: x[:, :2], role="transform")
    provider = EncoderPrototypes(encoder=encoder)
    assert own_copy(provider).space.adapter is encoder
    assert own_copy(provider) is not provider
