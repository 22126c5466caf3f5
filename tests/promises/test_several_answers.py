"""n different answers of a row: filled wherever so many exist, the first that of n=1, each one different."""

from __future__ import annotations

from itertools import combinations

import networks
import numpy as np
import pandas as pd
import pytest
from fuzz.tables import NAMES, case_of
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig

WINE, VINEYARD = load_wine(return_X_y=True)
CANCER, DIAGNOSIS = load_breast_cancer(return_X_y=True)
absent = pytest.mark.skipif(
    not NAMES, reason="needs the thirty tables: set CFPROTO_DATA to a folder that holds tables/"
)


@pytest.fixture(scope="module")
def wine():
    return CounterfactualExplainer(RandomForestClassifier(30, random_state=0).fit(WINE, VINEYARD)).fit(WINE)


@pytest.fixture(scope="module")
def cancer():
    model = RandomForestClassifier(20, random_state=0).fit(CANCER[:400], DIAGNOSIS[:400])
    return CounterfactualExplainer(model).fit(CANCER[:400])


def two(p):
    """Probabilities 0.9 and 0.1."""
    p = np.where(p, 0.9, 0.1)
    return np.stack([1 - p, p], axis=1)


def cells(x):
    """(n, A) objects and floats; a missing cell is None."""
    table = np.asarray(x, dtype=object)
    return np.where(pd.isna(table), None, table)


def alike(e, spread):
    """Pairs of answers to one row that change the same columns, by less than a tenth of a standard deviation."""
    before, after, found = cells(e.original), cells(e.counterfactual), []

    def near(a, b, scale):
        return a == b or (isinstance(a, (int, float)) and isinstance(b, (int, float)) and abs(a - b) < 0.0999 * scale)

    for one, other in combinations(np.flatnonzero(e.found), 2):
        same_columns = ((after[one] != before[one]) == (after[other] != before[other])).all()
        if e.row[one] == e.row[other] and same_columns and all(map(near, after[one], after[other], spread)):
            found.append((one, other))
    return found


def deviations(train):
    frame = pd.DataFrame(train)
    return [frame[name].std(ddof=0) if frame[name].dtype.kind in "iuf" else 0.0 for name in frame]


def check(explainer, train, x, n=3, **how):
    """All lines are filled with different answers, and the first are those of n=1."""
    e, one = explainer.explain(x, n=n, **how), explainer.explain(x, **how)
    assert one.found.all()
    assert e.found.all(), e.message[~e.found]
    assert [change[1:] for change in e[::n].changes()] == [change[1:] for change in one.changes()]
    assert e.counterfactual_class[::n].tolist() == one.counterfactual_class.tolist()
    assert not alike(e, deviations(train))
    return e


def test_all_lines_of_a_table_with_three_classes_are_filled_and_the_second_is_of_another_class(wine):
    e = check(wine, WINE, WINE[::12])
    assert np.array_equal(wine.model.predict(e.counterfactual), e.counterfactual_class)
    assert (e.counterfactual_class[1::3] != e.counterfactual_class[::3]).mean() > 0.6
    assert np.nanmean(e.diversity) > 0.6


def test_all_lines_of_a_table_with_two_classes_are_filled_by_changes_in_other_columns(cancer):
    e = check(cancer, CANCER[:400], CANCER[400:410], n=4)
    assert np.array_equal(cancer.model.predict(e.counterfactual), e.counterfactual_class)
    assert (e.diversity > 0).all()
    assert np.mean(e.diversity) > 0.4


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.needs("xgboost")
@absent
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("credit_a", "forest"),
        ("lymph", "xgboost"),
        ("breast_w", "xgboost"),
        ("glass", "xgboost"),
        ("pima_diabetes", "forest"),
        ("car", "xgboost"),
    ],
)
def test_all_lines_of_a_pipeline_on_raw_columns_are_filled(name, model):
    case = case_of(name, model, 15)
    e = check(CounterfactualExplainer(case.owned.model).fit(case.train), case.train, case.x)
    assert np.array_equal(case.owned.labels(e.counterfactual), e.counterfactual_class)
    assert np.nanmean(e.diversity) > 0.5


def test_two_answers_are_the_first_two_of_three(cancer):
    x = CANCER[420:425]
    two_lines, three = cancer.explain(x, n=2), cancer.explain(x, n=3)
    assert np.array_equal(two_lines.counterfactual, three.counterfactual[np.arange(15) % 3 < 2])


@pytest.mark.parametrize("explainer", ["wine", "cancer"])
def test_a_batch_gives_the_answers_of_its_rows_alone(explainer, request):
    known, x = request.getfixturevalue(explainer), {"wine": WINE[::30], "cancer": CANCER[430:436]}[explainer]
    together = known.explain(x, n=3)
    for row in range(len(x)):
        alone = known.explain(x[row : row + 1], n=3)
        assert alone.status.tolist() == together.status[together.row == row].tolist()
        lines = together.counterfactual[together.row == row]
        assert np.array_equal(alone.counterfactual, lines, equal_nan=True)


def test_rules_and_settings_hold_on_every_line():
    rules = Features(
        immutable=(0, 1),
        increasing=(2,),
        ranges={3: (200.0, 1500.0)},
        step={21: 0.5},
        relations=(lambda x: x[:, 0] <= x[:, 20],),
    )
    search = SearchConfig(max_changes=4, min_proba=0.6)
    model = RandomForestClassifier(20, random_state=0).fit(CANCER[:400], DIAGNOSIS[:400])
    x = CANCER[400:404]
    e = CounterfactualExplainer(model, features=rules, search=search).fit(CANCER[:400]).explain(x, n=3)
    assert e.found.mean() > 0.9
    before, after, good = np.repeat(x, 3, axis=0), e.counterfactual, e.found
    assert (after[good][:, :2] == before[good][:, :2]).all()
    assert (after[good][:, 2] >= before[good][:, 2]).all()
    assert ((after[good][:, 3] >= 200) & (after[good][:, 3] <= 1500)).all()
    moved = good & (after[:, 21] != before[:, 21])
    assert np.allclose(after[moved][:, 21] % 0.5, 0)
    assert (after[good][:, 0] <= after[good][:, 20]).all()
    assert (e.n_changes[good] <= 4).all()
    assert (
        model.predict_proba(after[good])[np.arange(good.sum()), e.counterfactual_class[good].astype(int)] >= 0.6
    ).all()
    assert not alike(e, deviations(CANCER[:400]))


def test_a_typicality_that_was_asked_for_holds_on_every_line(cancer):
    asked = CounterfactualExplainer(cancer.model, search=SearchConfig(min_typicality=0.3)).fit(CANCER[:400])
    e = asked.explain(CANCER[400:406], n=3)
    assert e.found.sum() >= 12
    known = asked.fitted_
    original = known.guide.floors.typicality(known.space.to_search(e.original), e.original_class)
    assert (e.typicality[e.found] >= np.minimum(0.3, original[e.found]) - 1e-9).all()


def test_every_line_has_the_probability_that_was_asked_for(cancer):
    e = cancer.explain(CANCER[400:404], target={0: (0.55, 0.75)}, n=3)
    assert e.found.all()
    proba = cancer.model.predict_proba(e.counterfactual)[:, 0]
    assert ((proba >= 0.55) & (proba <= 0.75)).all()
    assert not alike(e, deviations(CANCER[:400]))


class Colours:
    """Class 1 for green and blue."""

    accepts_frames = True

    def predict(self, x):
        return two(np.isin(x["colour"].astype(str), ["green", "blue"]))


def test_of_a_row_with_two_possible_answers_the_third_line_says_that_there_is_no_other():
    train = pd.DataFrame({"colour": ["red", "green", "blue", "grey"] * 10, "size": np.arange(40.0)})
    explainer = CounterfactualExplainer(Colours(), features=Features(immutable=("size",))).fit(train)
    e = explainer.explain(train[:1], n=3)
    assert e.found.tolist() == [True, True, False]
    assert set(e.counterfactual["colour"][:2]) == {"green", "blue"}
    assert e.message[2] == "no further counterfactual that differs from the others was found"


def test_where_one_column_decides_the_other_direction_comes_second():
    train = np.random.default_rng(0).uniform(-3, 3, (200, 1))
    e = CounterfactualExplainer(lambda x: two(np.abs(x[:, 0]) > 1)).fit(train).explain([[0.2]], n=4)
    assert e.found.all()
    first, second, *others = e.counterfactual[:, 0]
    assert first > 1
    assert second < -1
    apart = np.abs(np.subtract.outer(e.counterfactual[:, 0], e.counterfactual[:, 0]))[np.triu_indices(4, 1)]
    assert (apart >= 0.0999 * train.std()).all()
    assert len(others) == 2


def test_training_rows_fill_the_lines_where_nothing_else_has_the_class():
    rng = np.random.default_rng(0)
    train = np.concatenate([rng.uniform(0, 0.4, (60, 3)), rng.uniform(0.6, 1, (5, 3))])

    def model(x):
        return two((np.abs(x[:, None] - train[60:]) < 1e-6).all(axis=2).any(axis=1))

    e = CounterfactualExplainer(model).fit(train).explain(train[:3], n=5)
    assert e.found.all()
    for row in range(3):
        assert len(np.unique(e.counterfactual[e.row == row], axis=0)) == 5


@pytest.mark.parametrize(
    "search",
    [
        SearchConfig(method="fista", c_init=1.0, max_iterations=100),
        SearchConfig.close(),
        SearchConfig.typical(),
    ],
)
def test_lines_are_filled_for_every_method_and_preset(search):
    x = (CANCER - CANCER.mean(axis=0)) / CANCER.std(axis=0)
    model = LogisticRegression().fit(x, DIAGNOSIS)
    explainer = CounterfactualExplainer(model, search=search).fit(x)
    check(explainer, x, x[:4])


@pytest.mark.needs("torch")
def test_with_an_encoder_the_others_are_of_other_classes_or_led_elsewhere(digits):
    explainer = CounterfactualExplainer(
        networks.in_torch(digits.classifier), encoder=networks.in_torch(digits.encoder, softmax=False)
    ).fit(digits.x[:1500])
    x = digits.x[1500:1506]
    e = explainer.explain(x, n=3)
    assert e.found.all()
    assert np.mean([len(set(classes)) for classes in e.counterfactual_class.reshape(6, 3).tolist()]) > 2.5
    assert np.array_equal(explainer.explain(x).counterfactual, e.counterfactual[::3])
    e = explainer.explain(x[explainer.explain(x).original_class != 3], target=3, n=3)
    assert e.found.all()
    answers = e.counterfactual.reshape(-1, 3, 64)
    apart = np.linalg.norm(answers[:, [0, 0, 1]] - answers[:, [1, 2, 2]], axis=2)
    assert np.median(apart) > 0.5, "of a distance from the row of about 1"


def test_lines_of_images_are_filled_by_different_images(digits):
    def model(x):
        return networks.forward(digits.classifier, x.reshape(len(x), -1))

    train = digits.x[:500].reshape(-1, 8, 8)
    e = CounterfactualExplainer(model).fit(train).explain(digits.x[1500:1504].reshape(-1, 8, 8), n=3)
    assert e.found.all()
    answers = e.counterfactual.reshape(4, 3, 64)
    for i, j in combinations(range(3), 2):
        assert (np.abs(answers[:, i] - answers[:, j]).max(axis=1) > 0.02).all()
    assert e.diversity.shape == (12,)


def test_a_row_without_an_answer_says_why_on_every_line():
    train = np.array([[0.0], [1.0], [4.0]])
    explainer = CounterfactualExplainer(lambda x: two(x[:, 0] > 3), features=Features(ranges={0: (0, 2)})).fit(train)
    e = explainer.explain([[0.0]], n=2)
    assert e.status.tolist() == ["not_found", "not_found"]
    assert e.message[0] == e.message[1]
    assert "further" not in e.message[1]


def test_progress_of_several_answers_goes_from_nothing_to_all(cancer):
    seen = []
    cancer.explain(CANCER[400:403], n=3, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert any(abs(fraction - 1 / 3) < 1e-9 for fraction in seen)


@pytest.mark.parametrize("columns", [[0, 12, 9, 6], [6, 9]])
def test_a_change_that_the_class_does_not_need_is_there_to_differ_from_an_earlier_answer(columns):
    model = RandomForestClassifier(10, max_depth=4, random_state=0).fit(WINE, VINEYARD)
    rows, apart = WINE[::10], 0.1 * WINE.std(axis=0)
    explainer = CounterfactualExplainer(model, search=SearchConfig.close(), features=Features(vary=columns)).fit(WINE)
    e = explainer.explain(rows, n=3)
    unneeded = 0
    for line in np.flatnonzero(e.found):
        original, answer = rows[e.row[line]], e.counterfactual[line]
        earlier = e.counterfactual[:line][(e.row[:line] == e.row[line]) & e.found[:line]]
        for column in np.flatnonzero(answer != original):
            without = np.where(np.arange(len(answer)) == column, original, answer)
            if model.predict(without[None])[0] == e.counterfactual_class[line]:
                unneeded += 1
                assert (np.abs(earlier - without) < apart).all(axis=1).any()
    assert unneeded
