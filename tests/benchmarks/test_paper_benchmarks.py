"""The paper's experiments at toy size: they run, go on where they were stopped, and write what they promise."""

from __future__ import annotations

import csv
import importlib
import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

PAPER = Path(__file__).parents[2] / "benchmarks" / "paper"
NAMES = (
    "adult",
    "adult_iteration",
    "breast_cancer",
    "breast_cancer_grid",
    "breast_cancer_presets",
    "claims",
    "common",
    "independence",
    "paired",
    "protocol",
    "recount",
    "store",
)


@pytest.fixture(autouse=True)
def bench(monkeypatch):
    """The scripts as modules, the way `python benchmarks/paper/x.py` finds them."""
    monkeypatch.syspath_prepend(str(PAPER))
    before = set(sys.modules)
    modules = {name: importlib.import_module(name) for name in NAMES}
    yield type("Bench", (), modules)
    for name in set(sys.modules) - before:
        if str(PAPER) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def small(bench):
    """A Breast Cancer experiment of seconds."""
    return bench.breast_cancer.Size(
        seeds=1, reasons_seeds=1, rows=3, epochs=20, iterations=30, c_steps=2, thetas=(50, 100), ks=(1, 2)
    )


@pytest.fixture
def census(bench):
    """Rows with the columns of Adult, in which school and age decide."""
    import pandas as pd

    rng = np.random.default_rng(0)
    levels = ["Preschool", "HS-grad", "Bachelors", "Doctorate"]
    school, age = rng.integers(0, 4, 400), rng.integers(20, 60, 400)
    frame = pd.DataFrame(
        {
            "age": age,
            "workclass": rng.choice(["Private", "State-gov"], 400),
            "fnlwgt": rng.integers(1, 9, 400),
            "education": np.array(levels)[school],
            "education-num": school + 1,
            "marital-status": rng.choice(["Married", "Single"], 400),
            "occupation": np.where(school + rng.normal(0, 0.7, 400) > 1.5, "Prof-specialty", "Sales"),
            "relationship": "Husband",
            "race": "White",
            "sex": rng.choice(["Female", "Male"], 400),
            "capital-gain": 0,
            "capital-loss": 0,
            "hours-per-week": 30 + 3 * school + rng.integers(0, 8, 400),
            "native-country": "United-States",
        }
    )
    income = pd.Series(np.where(school + (age - 40) / 20 > 1.5, ">50K", "<=50K"))
    return bench.adult.Data.of(frame[:300], income[:300], frame[300:])


def lines(file: Path) -> list[dict[str, str]]:
    with file.open() as opened:
        return list(csv.DictReader(opened))


def test_a_result_is_made_once_and_read_afterwards(bench, tmp_path):
    made = []

    def make():
        made.append(1)
        return {"x": np.arange(3)}

    first = bench.store.Store(tmp_path).get("a/b", {"theta": 1}, make)
    again = bench.store.Store(tmp_path)
    assert again.get("a/b", {"theta": 1}, make)["x"].tolist() == first["x"].tolist() == [0, 1, 2]
    assert len(made) == 1
    assert again.seconds > 0
    again.get("a/b", {"theta": 2}, make)
    assert len(made) == 2


def test_a_run_that_stops_in_the_middle_of_a_result_leaves_none_behind(bench, tmp_path, monkeypatch):
    def stopped():
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", lambda out, **_: (out.write(b"half"), stopped()))
    store = bench.store.Store(tmp_path)
    for make in (stopped, lambda: {"x": 1}):
        with pytest.raises(KeyboardInterrupt):
            store.get("a", {}, make)
    monkeypatch.undo()
    assert bench.store.Store(tmp_path).get("a", {}, lambda: {"x": 2})["x"] == 2


@pytest.mark.parametrize(
    ("paper", "ours", "bounds", "verdict"),
    [
        (-0.5, -0.5, (-0.6, -0.4), "holds"),
        (-0.5, -0.74, (-0.8, -0.7), "holds"),
        (-0.5, -0.76, (-0.8, -0.7), "stronger"),
        (-0.5, -0.28, (-0.4, -0.1), "weaker"),
        (-0.5, -0.5, (-0.8, 0.2), "not clear"),
        (-0.5, 0.2, (0.1, 0.3), "does not hold"),
        (-0.5, 0.2, (-0.1, 0.5), "not clear"),
        (0.5, 0.5, (0.4, 0.6), "holds"),
        (0.5, 2.0, (1.0, 3.0), "stronger"),
        (-0.5, math.nan, (math.nan, math.nan), "not clear"),
    ],
)
def test_the_verdict_asks_for_the_sign_beyond_the_bounds_and_half_to_twice_the_effect(
    bench, paper, ours, bounds, verdict
):
    assert bench.claims.Claim("time", paper, ours, *bounds, n=9).verdict == verdict


def test_a_direction_without_a_number_is_judged_by_the_sign_beyond_the_bounds(bench):
    claim = bench.claims.Claim
    assert claim("EN", None, 0.4, 0.1, 0.7, 9, 1).verdict == "holds"
    assert claim("EN", None, 9.0, 8.0, 10.0, 9, 1).verdict == "holds"
    assert claim("EN", None, 0.4, -0.1, 0.9, 9, 1).verdict == "not clear"
    assert claim("EN", None, -0.4, -0.6, -0.2, 9, 1).verdict == "does not hold"


def test_a_claim_compares_the_rows_that_both_found(bench):
    ours, base = np.array([3.0, 6.0, np.nan, 9.0]), np.array([2.0, 4.0, 50.0, 6.0])
    found = bench.claims.compared("EN", ours, base, np.arange(4), direction=1)
    assert (found.n, found.ours) == (3, pytest.approx(0.5))
    assert found.lower == pytest.approx(0.5)  # every row has the same ratio
    assert found.verdict == "holds"
    assert bench.claims.table([found]).splitlines()[-1] == "| EN | more | +50 % (+50 % to +50 %) | 3 | holds |"


def test_a_row_explained_with_several_networks_counts_once_for_the_bounds(bench):
    rng = np.random.default_rng(0)
    ours, base = rng.uniform(1, 2, 20), rng.uniform(2, 3, 20)
    one = bench.paired.change(ours, base, np.arange(20))
    five = bench.paired.change(np.tile(ours, 5), np.tile(base, 5), np.tile(np.arange(20), 5))
    assert (five.mean, five.lower, five.upper) == pytest.approx((one.mean, one.lower, one.upper))
    assert (one.n, five.n) == (20, 100)


def test_bounds_of_a_change_cover_the_truth(bench):
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(300):
        size = rng.lognormal(0, 0.5, 30)
        found = bench.paired.change(0.6 * size * rng.lognormal(-0.02, 0.2, 30), size, np.arange(30))
        covered.append(found.lower <= -0.4 <= found.upper)
    assert 0.9 <= np.mean(covered) <= 0.99


def test_changes_without_common_rows_or_of_one_row_are_not_clear(bench):
    none = bench.claims.compared("IM1", np.array([np.nan]), np.array([1.0]), np.arange(1), paper=-0.5)
    one = bench.claims.compared("IM1", np.array([0.5]), np.array([1.0]), np.arange(1), paper=-0.5)
    assert (none.n, none.verdict) == (0, "not clear")
    assert (one.n, one.ours, one.verdict) == (1, -0.5, "not clear")


def test_both_experiments_take_their_protocol_from_one_place(bench):
    text, reference = bench.protocol.TEXT, bench.protocol.REFERENCE
    size = bench.breast_cancer.Size()
    by_name = {method.name: method for method in bench.breast_cancer.methods(size)}
    for loss in "AB":
        one, two = by_name[loss], by_name[f"{loss}, reference"]
        assert (one.search().momentum, one.powers, one.search().c_steps) == (True, text.values_of_c, 1)
        assert (two.search().momentum, two.powers, two.search().c_steps) == (False, 0, reference.values_of_c)
        assert one.search().max_iterations == two.search().max_iterations == text.steps == 1000
    assert by_name["C"].powers == 0
    assert "with momentum" in text.words
    assert "bisection" in reference.words


def test_the_committed_verdicts_follow_from_the_committed_rows(bench):
    places = bench.common.Places()
    for name, heading, section in bench.recount.SECTIONS:
        page = (places.docs / f"paper-{name.replace('_', '-')}.md").read_text()
        parts = section(places.results / f"{name}_rows.csv")
        assert bench.recount.replaced(page, heading, parts) == page, f"run benchmarks/paper/recount.py: {name}"


def test_a_section_of_a_page_is_replaced_and_nothing_else(bench):
    page = "# Title\n\n## One\n\nold\n\n## Two\n\nkept\n"
    assert bench.recount.replaced(page, "One", ["new"]) == page.replace("old", "new")
    assert bench.recount.replaced(page, "Two", ["new"]) == page.replace("kept", "new")


def test_abdm_breaks_down_under_independence_and_mvdm_does_not(bench, tmp_path):
    places, size = bench.common.Places.under(tmp_path), bench.independence.Size(draws=3, rows=1000, shares=(0.0, 1.0))
    bench.independence.main(places, size)
    found = {
        (x["distance"], float(x["share"]), x["metric"]): float(x["mean"])
        for x in lines(places.results / "independence.csv")
    }
    assert found["MVDM", 0.0, "order"] > 0.8 > found["ABDM", 0.0, "order"]
    assert found["MVDM", 0.0, "over_chance"] > 3
    assert found["ABDM", 0.0, "over_chance"] < 1.5
    assert found["ABDM", 1.0, "over_chance"] > 3
    assert "n = 3 draws" in (places.docs / "paper-independence.md").read_text()
    assert (places.docs / "pictures" / "paper-independence.png").stat().st_size > 5000


@pytest.mark.slow
def test_breast_cancer_goes_on_where_it_was_stopped(bench, small, tmp_path, monkeypatch):
    experiment = bench.breast_cancer
    methods = experiment.methods(small)[1:4]
    monkeypatch.setattr(experiment, "methods", lambda _: methods)
    monkeypatch.setattr(experiment, "reasons", lambda _: [])
    small = replace(small, seeds=2)
    work = experiment.run(bench.store.Store(tmp_path), small, progress=False)
    early = [next(work) for _ in range(2)]
    work.close()
    searched, real = [], experiment.search
    monkeypatch.setattr(experiment, "search", lambda *args: searched.append(args[2].name) or real(*args))
    late = list(experiment.run(bench.store.Store(tmp_path), small, progress=False))
    assert searched == ["path", "B", "C", "path"]
    for (seed, name, values), (seed_again, name_again, again) in zip(early, late, strict=False):
        assert (seed, name) == (seed_again, name_again)
        np.testing.assert_array_equal(values["im1"], again["im1"])
    searched.clear()
    list(experiment.run(bench.store.Store(tmp_path), small, progress=False))
    assert searched == []


@pytest.mark.slow
def test_breast_cancer_writes_rows_a_summary_pictures_and_a_page(bench, small, tmp_path):
    places = bench.common.Places.under(tmp_path)
    bench.breast_cancer.main(places, small, progress=False)
    rows, summary = lines(places.results / "breast_cancer_rows.csv"), lines(places.results / "breast_cancer.csv")
    methods = {"A", "B", "C", "path", "path + polish", "B theta=50", "B k=2", "C, no momentum", "A, reference"}
    assert methods <= {row["method"] for row in rows}
    assert sum(row["method"] == "B" for row in rows) == 3
    im1 = [float(row["im1"]) for row in rows if row["method"] == "path"]
    record = next(line for line in summary if (line["name"], line["metric"]) == ("path", "im1"))
    assert float(record["mean"]) == pytest.approx(np.mean(im1), rel=1e-4)
    page = (places.docs / "paper-breast-cancer.md").read_text()
    for text in ("## Table 2", "2752", "as the reference runs", "holds", "pictures/paper-bcw-theta.png", "numpy"):
        assert text in page
    for name in ("losses", "theta", "k", "attributes"):
        assert (places.docs / "pictures" / f"paper-bcw-{name}.png").stat().st_size > 5000


@pytest.mark.slow
def test_the_presets_are_compared_with_loss_a_row_by_row(bench, small, tmp_path):
    places = bench.common.Places.under(tmp_path)
    bench.breast_cancer_presets.main(places, replace(small, epochs=60, iterations=100, c_steps=5), progress=False)
    result = json.loads((places.results / "breast_cancer_presets.json").read_text())
    assert set(result["rows"]) == {"A", "typical", "default"}
    for name in ("typical", "default"):
        gap = result["differences"][name]["elastic_net"]
        ours, of_a = (np.array(result["rows"][key]["elastic_net"], dtype=float) for key in (name, "A"))
        assert gap["n"] == np.isfinite(ours - of_a).sum()
        assert gap["mean"] == pytest.approx(np.nanmean(ours - of_a), rel=1e-3)
    assert "| IM1 | typical | " in (places.docs / "paper-breast-cancer-presets.md").read_text()


@pytest.mark.slow
def test_the_grid_has_a_line_for_every_combination_and_searches_loss_a_once_for_all_theta_and_k(
    bench, tmp_path, monkeypatch
):
    grid, places = bench.breast_cancer_grid, bench.common.Places.under(tmp_path)
    size = grid.Size(
        seeds=1, rows=3, epochs=20, starts=("keras",), betas=(0.001,), steps=(20,), thetas=(50, 100), ks=(1, 2)
    )
    searched, real = [], grid.search
    monkeypatch.setattr(grid, "search", lambda *args: searched.append(args[2].loss) or real(*args))
    grid.main(places, size, progress=False)
    table = lines(places.results / "breast_cancer_grid.csv")
    assert len(table) == 4 * 4
    assert (searched.count("A"), searched.count("B")) == (4, 16)
    assert "of 16 cells" in (places.docs / "paper-breast-cancer-grid.md").read_text()
    assert (places.docs / "pictures" / "paper-bcw-grid.png").stat().st_size > 5000


@pytest.mark.slow
def test_the_grid_goes_on_from_the_cells_on_record_and_leaves_those_of_another_size(bench, tmp_path, monkeypatch):
    grid, places = bench.breast_cancer_grid, bench.common.Places.under(tmp_path)
    size = grid.Size(
        seeds=1, rows=3, epochs=20, starts=("keras",), betas=(0.001,), steps=(20,), thetas=(50,), ks=(1, 2)
    )
    file = places.results / "breast_cancer_grid.csv"
    searched, real = [], grid.search

    def search(*args):
        if len(searched) == 5:
            raise KeyboardInterrupt
        searched.append(args[2].loss)
        return real(*args)

    monkeypatch.setattr(grid, "search", search)
    with pytest.raises(KeyboardInterrupt):
        grid.main(places, size, progress=False)
    assert searched == ["A", "B", "B", "A", "B"]
    first = file.read_text()
    assert len(lines(file)) == 3
    monkeypatch.setattr(grid, "search", lambda *args: searched.append(args[2].loss) or real(*args))
    again = replace(places, cache=tmp_path / "elsewhere")  # a clone has the results, not what was searched
    grid.main(again, size, progress=False)
    assert file.read_text().startswith(first)
    assert len(lines(file)) == 8
    assert searched[5:] == ["A", "B", *"ABB" * 2]
    assert not grid.recorded(file, replace(size, seeds=2))
    kept = grid.recorded(file, size)
    assert [cell in kept for cell in size.cells()] == [True] * 8


def test_a_paired_difference_is_of_the_rows_that_have_both(bench):
    ours, other = np.array([1.0, 2.0, np.nan, 4.0]), np.array([2.0, 3.0, 1.0, 5.5])
    gap = bench.paired.paired(ours, other)
    assert (gap.n, gap.ours, gap.mean) == (3, pytest.approx(7 / 3), pytest.approx(-7 / 6))
    assert gap.upper - gap.mean == pytest.approx(4.303 * np.std([1, 1, 1.5], ddof=1) / math.sqrt(3), rel=1e-3)
    assert gap.is_less
    assert not bench.paired.paired(other, ours).is_less


def test_the_letters_are_those_of_the_breast_cancer_experiment(bench, small):
    a, b, c = (method.search() for method in bench.breast_cancer.methods(small)[:3])
    assert (a.c_init, a.theta) == (1, 0)
    assert (b.c_init, b.theta) == (1, 100)
    assert (c.c_init, c.theta) == (0, 100)
    assert {a.beta, b.beta, c.beta} == {0.1}
    assert {a.gamma, b.gamma, c.gamma} == {0}


def test_every_feature_has_one_of_ten_attributes(bench):
    attributes = bench.breast_cancer.Data.load(2).attributes
    assert len(attributes) == 30
    assert len(set(attributes)) == 10
    assert attributes[0] == attributes[10] == attributes[20] == "radius"


@pytest.mark.slow
def test_adult_goes_on_where_it_was_stopped_and_writes_its_page(bench, census, tmp_path, monkeypatch):
    places, size = bench.common.Places.under(tmp_path), bench.adult.Size(seeds=1, rows=8, epochs=20)
    work = bench.adult.run(bench.store.Store(places.cache / "adult"), census, size, progress=False)
    next(work)
    work.close()
    searched, real = [], bench.adult.search
    monkeypatch.setattr(bench.adult, "search", lambda *args: searched.append(args[2:4]) or real(*args))
    bench.adult.main(places, size, census, progress=False)
    assert searched == [("abdm", 1), ("mvdm", 0), ("mvdm", 1), ("frequency", 0), ("frequency", 1)]
    table = lines(places.results / "adult.csv")
    assert [line["n"] for line in table] == ["8"] * 6
    assert all(0 < float(line["found"]) <= 1 for line in table)
    page = (places.docs / "paper-adult.md").read_text()
    assert "| education | " in page
    assert "Kendall" in page
    assert (places.docs / "pictures" / "paper-adult-education.png").stat().st_size > 5000


@pytest.mark.slow
def test_the_papers_iteration_on_adult_is_shown_beside_the_products_answers(bench, census, tmp_path):
    places = bench.common.Places.under(tmp_path)
    size = bench.adult_iteration.Size(rows=4, iterations=20, c_steps=3, epochs=20)
    bench.adult_iteration.main(places, size, census, progress=False)
    page = (places.docs / "paper-adult-iteration.md").read_text()
    for name in ("A, differences of 0.001", "B, differences of 0.5", "C", "default", "typical"):
        assert f"\n| {name} | " in page
    found = {(x["name"], x["metric"]): float(x["mean"]) for x in lines(places.results / "adult_iteration.csv")}
    assert found["default", "validity"] == 1


@pytest.mark.slow
def test_the_papers_iteration_on_adult_goes_on_from_the_losses_on_record(bench, census, tmp_path, monkeypatch):
    script, places = bench.adult_iteration, bench.common.Places.under(tmp_path)
    size = script.Size(rows=4, iterations=20, c_steps=3, epochs=20)
    monkeypatch.setattr(script, "Size", lambda: size)
    script.main(places, size, census, progress=False)
    rows, page = places.results / "adult_iteration_rows.csv", places.docs / "paper-adult-iteration.md"
    first = lines(rows), page.read_text().rpartition("\n\n")[0]
    searched, real = [], script.searched
    monkeypatch.setattr(script, "searched", lambda *args: searched.append(args[2]) or real(*args))
    script.main(replace(places, cache=tmp_path / "elsewhere"), size, census, progress=False)
    assert searched == list(script.NEEDED.values())
    again = lines(rows)
    for one, other in zip(first[0], again, strict=True):
        one.pop("seconds"), other.pop("seconds")
        assert one == other
    assert page.read_text().rpartition("\n\n")[0] == first[1]
    searched.clear()
    script.main(replace(places, cache=tmp_path / "third"), size, census, fresh=True, progress=False)
    assert len(searched) == len(script.settings(size))


def test_frequency_knows_only_how_often_a_category_occurs(bench):
    codes = np.array([[0], [0], [1], [2]])
    (distances,) = bench.adult.Frequency()(codes, [3], np.zeros((4, 0)), np.zeros(4))
    assert distances.tolist() == [[0, 0.25, 0.25], [0.25, 0, 0], [0.25, 0, 0]]


def test_kept_settings_are_readable(bench, tmp_path):
    bench.store.Store(tmp_path).get("a", {"theta": 1, "file": Path("x")}, lambda: {"x": 1})
    with np.load(tmp_path / "a.npz") as kept:
        assert json.loads(str(kept["__about__"]))["settings"] == {"theta": 1, "file": "x"}
