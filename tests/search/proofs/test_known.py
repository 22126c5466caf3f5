"""What the model itself says beside a proof: rows that contradict a wrong program, and changes that are not needed."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.search.proofs import program

X = np.random.default_rng(0).normal(size=(200, 3))
FOREST = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, X[:, 0] + X[:, 1] > 0)


def tool(rules=None, **search):
    config = SearchConfig.close(certify="optimal", **search)
    return CounterfactualExplainer(FOREST, features=Features(decimals=None, **(rules or {})), search=config).fit(X)


def demanding(require):
    return lambda self, condition: require(self, condition._replace(least=condition.least + self.ensemble.divisor))


def refusing(_solve):
    return lambda *_args, **_more: program.Outcome(np.inf, None, solved=True, infeasible=True)


@pytest.mark.parametrize(("method", "wrong"), [("require", demanding), ("solve", refusing)])
@pytest.mark.parametrize("rules", [{}, {"immutable": [2]}, {"relations": ("x0 <= x1 + 3",)}])
def test_a_training_row_of_the_target_contradicts_a_wrong_certificate(monkeypatch, method, wrong, rules):
    explainer = tool(rules)
    before = explainer.certificate(X[:4])
    assert before.exact.all()
    monkeypatch.setattr(program.Program, method, wrong(getattr(program.Program, method)))
    found = explainer.certificate(X[:4])
    assert (found.lower_bound == 0).all()
    assert not found.exact.any()
    assert all("do not agree" in message for message in found.message)


def test_no_certificate_is_above_the_cost_of_a_training_row_of_the_target(monkeypatch):
    explainer, solve = tool(), program.Program.solve

    def dear(self, *args, **more):
        outcome = solve(self, *args, **more)
        return outcome._replace(bound=outcome.bound * 1e3, picked=None)

    monkeypatch.setattr(program.Program, "solve", dear)
    found = explainer.certificate(X[:4])
    assert (found.lower_bound == 0).all()


def test_a_row_without_an_answer_is_not_infeasible_if_a_training_row_keeps_the_rules(monkeypatch):
    explainer = tool(fallback=False)
    monkeypatch.setattr(program.Program, "solve", refusing(None))
    monkeypatch.setattr("cfproto_plugin.search.solve._search", lambda *_args: iter(()))
    e = explainer.explain(X[:4])
    assert not e.found.any()
    assert not (e.status == "infeasible").any()


def test_an_answer_of_a_proof_has_no_change_that_can_be_left_out_and_says_what_each_is_for(monkeypatch):
    table = program.Program.table

    def noisy(self, outcome):
        point = table(self, outcome)
        point[2] = np.nextafter(point[2], np.inf)
        return point

    monkeypatch.setattr(program.Program, "table", noisy)
    e = tool({"weights": {2: 0.01}}, polish=False).explain(X[:8])
    by_proof = np.array([how.method == "proof" for how in e.how])
    assert by_proof.any()
    changed = e.original != e.counterfactual
    for line in np.flatnonzero(by_proof):
        for column in np.flatnonzero(changed[line]):
            back = e.counterfactual[line].copy()
            back[column] = e.original[line, column]
            assert FOREST.predict(back[None])[0] == e.original_class[line]
    assert (e.needed_for[by_proof][changed[by_proof]] == "class").all()
    assert (e.gap[by_proof] == 0).all()


@pytest.mark.parametrize("rules", [{}, {"ranges": {1: (-50, 50)}}, {"integer": [1]}])
def test_training_rows_far_away_in_a_column_without_splits_contradict_nothing(rules):
    target = X[:, 0] > 0
    rows = np.column_stack([X[:, 0], np.where(target, 40.0, -40.0)])
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(rows * [1, 0], target)
    search = SearchConfig.close(certify="optimal")
    explainer = CounterfactualExplainer(model, features=Features(decimals=None, **rules), search=search).fit(rows)
    assert explainer.certificate(rows[:20]).exact.all()
