"""Answers about images that are brought nearer as far as second opinions agree."""

from __future__ import annotations

import networks
import numpy as np
import pytest

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.search.opinion import Opinion
from cfproto_plugin.search.refine.agree import _SURE

ROWS = slice(1500, 1530)


def of_images(layers, *, softmax=True):
    torch = networks.needed("torch")
    return torch.nn.Sequential(torch.nn.Flatten(), networks.in_torch(layers, softmax=softmax)).eval()


def images(digits):
    return digits.x.reshape(-1, 8, 8)


def fitted(digits, search=None, **settings):
    encoder = of_images(digits.encoder, softmax=False)
    made = CounterfactualExplainer(of_images(digits.classifier), encoder=encoder, search=search, **settings)
    return made.fit(images(digits)[:1500])


@pytest.fixture(scope="module")
def explainer(digits):
    return fitted(digits)


@pytest.fixture(scope="module")
def without(digits):
    return fitted(digits, SearchConfig(opinions=0))


def sure(explainer, e):
    """The probabilities (opinions, n) that the small networks give the classes of answers."""
    rows, at = e.counterfactual.reshape(len(e), -1), np.arange(len(e))
    return np.stack([o.vjp(rows)[0][at, e.counterfactual_class.astype(int)] for o in explainer.fitted_.guide.opinions])


def test_answers_are_nearer_and_all_networks_are_sure_of_their_class(digits, explainer, without):
    x = images(digits)[ROWS]
    e, plain = explainer.explain(x), without.explain(x)
    assert e.status.tolist() == plain.status.tolist()
    moved = np.array([not np.isnan(how.polished_from) for how in e.how])
    assert moved.mean() > 0.3
    assert (e.objective[moved] < [how.polished_from for how in e.how[moved]]).all()
    assert np.array_equal(e.counterfactual[~moved], plain.counterfactual[~moved])
    assert e.distance.mean() < plain.distance.mean()
    assert sure(explainer, e)[:, moved].min() > _SURE - 1e-4
    assert sure(explainer, e).mean() > sure(explainer, plain).mean()
    wished = np.array(e.meta["confidence"])[e.counterfactual_class.astype(int)]
    assert (e.counterfactual_proba.max(axis=1) >= wished)[moved].all()
    again = networks.forward(digits.classifier, e.counterfactual.reshape(len(x), -1)).argmax(axis=1)
    assert np.array_equal(again, e.counterfactual_class)
    assert "then improved" in e.message[moved][0]


def test_a_classifier_that_had_no_part_agrees_more_often(digits, explainer, without):
    from sklearn.neighbors import KNeighborsClassifier

    judge = KNeighborsClassifier(5).fit(digits.x[:1500], digits.y[:1500])
    e, plain = (one.explain(images(digits)[1500:1580]) for one in (explainer, without))
    agree = [
        (judge.predict(one.counterfactual.reshape(80, -1)) == one.counterfactual_class).mean() for one in (e, plain)
    ]
    assert agree[0] > agree[1]


def test_a_row_alone_gets_the_answer_that_it_has_in_a_batch(digits, explainer):
    x = images(digits)[1500:1508]
    together, alone = explainer.explain(x), [explainer.explain(row) for row in x]
    assert together.counterfactual_class.tolist() == [e.counterfactual_class[0] for e in alone]
    np.testing.assert_allclose(together.objective, [e.objective[0] for e in alone], rtol=1e-3)


def test_rules_and_targets_hold(digits, explainer):
    fixed = tuple(range(8, 16))
    rules = Features(immutable=fixed, ranges=dict.fromkeys(range(16, 64), (-0.5, 0.4)))
    x = images(digits)[1500:1510]
    e = explainer.explain(x, target=[3, 8], features=rules)
    good = e.found & (e.original_class != e.counterfactual_class)
    assert good.sum() >= 5
    assert np.isin(e.counterfactual_class[good], (3, 8)).all()
    flat, before = (rows[good].reshape(good.sum(), -1) for rows in (e.counterfactual, e.original))
    assert np.array_equal(flat[:, fixed], before[:, fixed])
    assert (flat[:, 16:] <= np.maximum(0.4, before[:, 16:])).all()


def test_several_answers_differ_and_a_time_budget_is_kept(digits, explainer):
    several = explainer.explain(images(digits)[1500:1501], n=3)
    assert len({row.tobytes() for row in several.counterfactual}) == 3
    assert "time budget" in explainer.explain(images(digits)[1500:1540], time_budget=1e-6).message[-1]


def test_a_loaded_explainer_has_the_networks_and_learns_none(digits, explainer, tmp_path, monkeypatch):
    explainer.save(tmp_path / "a.zip")
    monkeypatch.setattr(Opinion, "learn", lambda *_: pytest.fail("learnt again"))
    model, encoder = (
        of_images(layers, softmax=s) for layers, s in ((digits.classifier, True), (digits.encoder, False))
    )
    loaded = CounterfactualExplainer.load(tmp_path / "a.zip", model, encoder=encoder)
    for one, other in zip(explainer.fitted_.guide.opinions, loaded.fitted_.guide.opinions, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    x = images(digits)[1500:1504]
    assert np.array_equal(loaded.explain(x).counterfactual, explainer.explain(x).counterfactual)


def test_fit_says_how_long_the_networks_took_and_meta_how_many_there_are(digits, caplog):
    caplog.set_level("INFO")
    found = fitted(digits, SearchConfig(opinions=1))
    assert "1 second opinions learnt in" in caplog.text
    assert len(found.fitted_.guide.opinions) == found.explain(images(digits)[1500]).meta["config"]["opinions"] == 1
