"""What the pictures show: labels, marks and numbers, and that nothing breaks them."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from cfproto_plugin import CounterfactualExplainer, Explanation, Features, SearchConfig
from cfproto_plugin.errors import InputError, MissingPackageError
from cfproto_plugin.report.document import _of_changes
from cfproto_plugin.report.sentences import best_reached, why_not_in_words

pytestmark = pytest.mark.needs("matplotlib")

RNG = np.random.default_rng(1)
N = 150
TABLE = pd.DataFrame(
    {
        "income": RNG.integers(1000, 5000, N),
        "$x_1^$": RNG.normal(size=N).round(2),
        "<b>job</b>": RNG.choice(["clerk $^", "nurse", "a very long name of a job that goes on and on and on"], N),
        "constant": np.ones(N),
    }
)
HOSTILE = np.array(["$no_^$ <i>", "yes \\frac{1}"])


class Model:
    """Income, the second column and a nurse's job add up."""

    def __call__(self, rows):
        rows = pd.DataFrame(rows, columns=TABLE.columns)
        score = (rows["income"].astype(float) - 3000) / 400 + rows["$x_1^$"].fillna(0).astype(float)
        p = 1 / (1 + np.exp(-(score + (rows["<b>job</b>"] == "nurse"))))
        return np.column_stack([1 - p, p])


class Adapter:
    """The model with names for its classes."""

    name, classes, accepts_frames = "toy", HOSTILE, True

    def predict(self, rows):
        return Model()(rows)


@pytest.fixture(scope="module")
def explainer():
    search = SearchConfig.close(few_changes=0.0)
    return CounterfactualExplainer(Model(), adapter=Adapter(), search=search).fit(TABLE)


@pytest.fixture(scope="module")
def refused(explainer):
    return explainer.explain(TABLE[Model()(TABLE)[:, 1] < 0.3][:12], progress=False)


@pytest.fixture(scope="module")
def both(explainer):
    """A line that changes a number and the category."""
    row = TABLE[(TABLE["income"] < 1800) & (TABLE["<b>job</b>"] != "nurse") & (TABLE["$x_1^$"] < 0)][:1]
    rules = Features(vary=("income", "<b>job</b>"), allowed={"<b>job</b>": ("nurse",)})
    line = explainer.explain(row, features=rules, progress=False)
    assert [change.feature for change in line.changes()] == ["income", "<b>job</b>"]
    return line


@pytest.fixture(scope="module")
def images():
    data = RNG.random((40, 5, 4))

    def bright(x):
        p = 1 / (1 + np.exp(-40 * (np.asarray(x).mean(axis=(1, 2)) - 0.5)))
        return np.column_stack([1 - p, p])

    return data, bright


def texts(figure):
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def flat(text):
    return " ".join(text.split())


def drawn(figure):
    """Draw; all of it must lie inside the figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    box, (width, height) = figure.get_tightbbox(canvas.get_renderer()), figure.get_size_inches()
    assert box.x0 > -0.05, box
    assert box.y0 > -0.05, box
    assert box.x1 < width + 0.05, (box, width)
    assert box.y1 < height + 0.05, (box, height)
    return figure


def title(figure):
    return flat(figure.get_suptitle())


def test_the_picture_that_fits_is_chosen(explainer, refused, both, images):
    assert "values changed" in title(both.plot())
    assert "have a counterfactual" in title(refused.plot())
    several = explainer.explain(refused.original[:1], n=3, progress=False)
    assert "ways to" in title(several.plot())
    data, bright = images
    e = CounterfactualExplainer(bright).fit(data).explain(data[:2], progress=False)
    assert "Images" in title(e.plot())
    assert "categories of" in title(both.plot(column="<b>job</b>"))
    assert "smallest for <b>job</b>: " in title(refused.plot(by="<b>job</b>"))


def test_a_change_plot_shows_before_and_after_over_the_new_class(explainer, both):
    figure = drawn(both.plot())
    lanes = figure.axes[0]
    names = [label.get_text() for label in lanes.get_yticklabels()]
    changes = {change.feature: change for change in both.changes()}
    assert set(names) == set(changes) == {"income", "<b>job</b>"}
    y = names.index("income")
    cells = np.sort(TABLE["income"][Model()(TABLE)[:, 1] > 0.5].to_numpy(dtype=float))
    low, tenth, median, ninetieth, high = np.quantile(cells, [0.01, 0.1, 0.5, 0.9, 0.99])
    before, after = changes["income"].before, changes["income"].after
    begin, room = min(low, before), max(high, before, after) - min(low, before)
    (bar,) = (patch for patch in lanes.patches if abs(patch.get_y() + patch.get_height() / 2 - y) < 0.01)
    assert bar.get_x() == pytest.approx((tenth - begin) / room)
    assert bar.get_width() == pytest.approx((ninetieth - tenth) / room)
    marks = {line.get_marker(): line.get_xdata()[0] for line in lanes.lines if list(line.get_ydata()) == [y]}
    assert marks["o"] == pytest.approx((before - begin) / room)
    assert marks[">"] == pytest.approx((after - begin) / room)
    strokes = [line.get_xdata()[0] for line in lanes.lines if list(line.get_ydata()) == [y - 0.25, y + 0.25]]
    assert strokes == [pytest.approx((median - begin) / room)]
    said = " ".join(texts(figure))
    assert f"{before} → {after}" in said
    assert f"{tenth:.4g} to {ninetieth:.4g}" in said


def test_a_category_is_a_bar_in_parts_of_the_shares_of_the_new_class(both):
    lanes = both.plot().axes[0]
    y = [label.get_text() for label in lanes.get_yticklabels()].index("<b>job</b>")
    parts = sorted((p.get_x(), p.get_width()) for p in lanes.patches if abs(p.get_y() + p.get_height() / 2 - y) < 0.01)
    shares = TABLE["<b>job</b>"][Model()(TABLE)[:, 1] > 0.5].value_counts(normalize=True)
    assert [width for _, width in parts] == pytest.approx(shares.tolist())
    assert [line.get_marker() for line in lanes.lines if list(line.get_ydata()) == [y]] == ["o", "s"]


def test_the_title_says_classes_and_probabilities(both):
    before, after = (round(100 * float(proba[0])) for proba in both.new_class_proba)
    said = title(both.plot())
    assert f"Row {both.row[0]}: with {both.n_changes[0]} of 4 values changed" in said
    assert f"say “{HOSTILE[1]}” ({before} % → {after} %) instead of “{HOSTILE[0]}”" in said


def every_kind(explainer, refused, both):
    several = explainer.explain(refused.original[:1], n=3, progress=False)
    yield both.plot()
    yield refused.plot(by="<b>job</b>")
    yield several.plot()
    yield both.plot("path")
    yield both.plot("embedding")
    yield Explanation.from_json(both.to_json()).plot()


def test_names_with_dollars_backslashes_and_tags_stay_text(explainer, refused, both):
    from matplotlib.text import Text

    for figure in every_kind(explainer, refused, both):
        drawn(figure)
        named = [text for text in figure.findobj(Text) if "$" in text.get_text() or "\\" in text.get_text()]
        assert named
        assert not any(text.get_parse_math() or text.get_usetex() for text in named)
    assert "$x_1^$" in texts(refused.plot())
    assert "clerk $^" in texts(both.plot("embedding"))


def test_a_style_of_the_user_does_not_make_text_unreadable_or_turn_it_into_tex(both):
    from matplotlib import rcParams, style

    before = {name: value for name, value in rcParams.items() if name != "backend"}  # settled when it is looked at
    with style.context(["dark_background", {"text.usetex": True}]):
        figure = both.plot()
        assert figure.get_facecolor() == (1, 1, 1, 1)
        assert "white" not in {text.get_color() for text in figure.axes[0].get_yticklabels()}
        drawn(figure)
    assert {name: value for name, value in rcParams.items() if name != "backend"} == before


def test_no_window_and_nothing_global_is_needed(tmp_path):
    program = """
import sys
import numpy as np
import cfproto_plugin
from cfproto_plugin import CounterfactualExplainer
assert "matplotlib" not in sys.modules
x = np.random.default_rng(0).normal(size=(60, 3))
model = lambda r: np.column_stack([1 / (1 + np.exp(r.sum(axis=1))), 1 / (1 + np.exp(-r.sum(axis=1)))])
e = CounterfactualExplainer(model).fit(x).explain(x[:4], progress=False)
e.plot().savefig("a.png"); e[0].plot().savefig("b.svg"); e[0].plot("path").savefig("c.pdf")
assert "matplotlib.pyplot" not in sys.modules
"""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert ran.returncode == 0, ran.stderr


def test_pictures_are_drawn_in_threads(refused):
    def size(line):
        data = io.BytesIO()
        line.plot().savefig(data, format="png")
        return len(data.getvalue())

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(size, refused[:4])) == [size(line) for line in refused[:4]]


def test_without_matplotlib_the_error_names_the_extra(both, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'cfproto-plugin\[plots\]'"):
        both.plot()


def test_a_notebook_gets_a_png_and_a_subfigure_can_be_drawn_in(both):
    from matplotlib.figure import Figure

    assert both.plot()._repr_png_().startswith(b"\x89PNG")
    whole = Figure(figsize=(24, 5), layout="constrained")
    left, right = whole.subfigures(1, 2)
    assert both.plot(figure=left) is left
    both.plot("path", figure=right)
    drawn(whole)
    with pytest.raises(InputError, match="figure is 3; expected a matplotlib Figure"):
        both.plot(figure=3)


def test_bars_of_a_cohort_are_the_shares_of_the_summary_with_hatches_by_direction(refused):
    summary, figure = refused.summary(), drawn(refused.plot())
    bars = figure.axes[0]
    names = [label.get_text() for label in bars.get_yticklabels()]
    assert names == [record.feature for record in summary.select()]
    for y, record in enumerate(summary.select()):
        found = {
            patch.get_hatch() or "": patch.get_width()
            for patch in bars.patches
            if abs(patch.get_y() + patch.get_height() / 2 - y) < 0.01
        }
        assert found[""] == pytest.approx(100 * record.raised / record.answers)
        assert found["////"] == pytest.approx(-100 * record.lowered / record.answers)
        assert found["...."] == pytest.approx(100 * record.other / record.answers)


def test_dots_of_the_groups_are_their_median_distances(refused):
    summary = refused.summary(by=["a"] * 10 + ["b"] * 2)
    dots = summary.plot().axes[2]
    found = {int(line.get_ydata()[0]): line for line in dots.lines if line.get_marker() in {"o", "D", ">"}}
    groups = [record for record in summary.groups if record.group != "class"]  # all have the same one: all rows again
    for y, record in enumerate(groups):
        beyond = record.distance > dots.get_xlim()[1]  # a group of few rows
        assert (found[y].get_marker() == ">") == beyond
        assert found[y].get_xdata()[0] == pytest.approx(dots.get_xlim()[1] if beyond else record.distance)
    names = [label.get_text() for label in dots.get_yticklabels()]
    assert names == ["all rows", "group: a", "group: b"]
    assert texts(summary.plot()).count("12, 0 % without") == 1


def test_a_small_group_far_beyond_the_others_is_an_arrow_with_its_number(refused):
    summary = refused.summary(by=["a"] * 11 + ["b"])
    far = replace(summary.groups[-1], distance=1e6, distance_high=1e6)
    dots = drawn(replace(summary, groups=(*summary.groups[:-1], far)).plot()).axes[2]
    assert dots.get_xlim()[1] < 1e3
    assert [line.get_ydata()[0] for line in dots.lines if line.get_marker() == ">"] == [2]
    assert "1e+06" in [text.get_text() for text in dots.texts]


def test_a_comparison_shows_every_answer_and_what_it_changes(explainer, refused):
    several = explainer.explain(refused.original[:1], n=3, progress=False)
    figure = drawn(several.plot())
    table = figure.axes[0]
    heads = [label.get_text() for label in table.get_xticklabels()]
    assert heads[0] == "as it is"
    assert heads[1].startswith("answer 1\n")
    cells = {tuple(text.get_position()): text.get_text() for text in table.texts}
    names = [label.get_text() for label in table.get_yticklabels()]
    for number, line in enumerate(several, start=1):
        changed = {change.feature: change for change in line.changes()}
        for y, name in enumerate(names):
            text = cells[number, y]
            assert (text == "·") == (name not in changed)
            if name == "income" and name in changed:
                assert text == f"{'▲' if changed[name].after > changed[name].before else '▼'} {changed[name].after}"
    assert len(table.patches) == several.n_changes.sum()
    marks = "".join(text.get_text() for text in table.texts)
    caption = " ".join(" ".join(texts(figure)).split())
    for mark, meaning in {"▲": "a number rises", "▼": "a number falls", "·": "A dot", "*": "* not needed"}.items():
        assert (meaning in caption) == (mark in marks)


@pytest.mark.parametrize(
    ("reach", "least", "ticks"),
    [
        (5, 0, [5]),
        (12, 0, [5, 10]),
        (30, 0, [10, 20, 30]),
        (100, 0, [25, 50, 75, 100]),
        (100, 30, [50, 100]),
        (45, 20, [25]),
        (20, 18, [20]),
    ],
)
def test_each_side_of_the_bars_of_a_cohort_has_tick_labels(reach, least, ticks):
    from cfproto_plugin.report.plots.cohort import _ticks

    assert _ticks(reach, least) == ticks


def touching(figure):
    """Pairs of tick labels of one axis that touch each other."""
    renderer, found = drawn(figure).canvas.get_renderer(), []
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        labels = zip(axis.get_ticklabels(), axis.get_ticklocs(), strict=True)
        shown = [label for label, at in labels if label.get_text() and low <= at <= high]
        boxes = [(label.get_text(), label.get_window_extent(renderer)) for label in shown]
        found += [(a, b) for (a, p), (b, q) in combinations(boxes, 2) if p.padded(1.5).overlaps(q)]
    return found


@pytest.mark.parametrize(("falling", "rising"), [(0, 97), (4, 97), (49, 100), (80, 49), (100, 100), (7, 12)])
def test_tick_labels_of_a_cohort_do_not_touch(refused, falling, rising):
    summary = refused.summary(by=[f"a value with a long name, number {i % 3}" for i in range(12)])
    one = replace(summary.select()[0], answers=100, other=0)
    features = [
        replace(one, feature=f"measure {i} with a name that is far too long for any picture", raised=up, lowered=down)
        for i, (up, down) in enumerate([(rising, 0), (0, falling)] * 15)
    ]
    figure = replace(summary, features=tuple(features)).plot()
    assert touching(figure) == []
    names = [label.get_text() for at in (0, 2) for label in figure.axes[at].get_yticklabels()]
    assert len(set(names)) == 20 + 4  # columns, all rows and three groups, whose values stay apart


def test_the_title_of_a_cohort_names_columns_that_change_as_often_in_the_order_of_the_report(refused):
    summary = refused.summary()
    one = replace(summary.select()[0], answers=12, changed=6, share=0.5)

    def said(*counts):
        features = (replace(one, feature=f"c{i}", changed=n) for i, n in enumerate(counts))
        return flat(title(replace(summary, features=tuple(features)).plot())).partition("; ")[2]

    assert said(6, 5).startswith("“c0” changes most often, in 50 % of the answers.")
    assert said(6, 6, 5).startswith("“c0” and “c1” change most often, in 50 % of the answers each.")
    assert said(6, 6, 6, 6, 6).startswith("“c0” and 4 other columns change most often, in 50 % of the answers each.")
    tied = replace(refused, counterfactual=refused.original.assign(**{"$x_1^$": 9.0, "income": 9000}))
    tile = next(name for name, _ in _of_changes(tied) if name.startswith("of answers change"))
    names = re.findall("“(.*?)”", tile)
    assert len(names) == 2
    assert names == re.findall("“(.*?)”", flat(title(tied.summary().plot())))


def test_a_cohort_says_how_many_changes_the_class_needs(refused):
    summary = refused.summary()
    assert "class needs it in" not in texts(summary.plot())  # all of them
    some = replace(summary.features[0], needed=7, for_typicality=3, for_stability=1)
    figure = drawn(replace(summary, features=(some, *summary.features[1:])).plot())
    assert {"class needs it in", "7 of 11"} <= set(texts(figure))
    assert "in the other 2 the model gives the new class without that change too" in flat(" ".join(texts(figure)))


def test_of_columns_that_one_answer_each_changes_the_larger_change_comes_first():
    from cfproto_plugin.answers import Change
    from cfproto_plugin.report.plots.comparison import _ordered

    small, large, category = Change(0, "a", 1.0, 1.1), Change(0, "b", 1.0, 9.0), Change(0, "c", "x", "y")
    both = Change(0, "d", 1.0, 1.1)
    answers = [{"a": small, "d": both}, {"c": category, "d": both}, {"b": large}]
    scales = {"a": 1.0, "b": 1.0, "c": np.nan, "d": 1.0}
    for order in (answers, answers[::-1]):
        assert _ordered(order, ["a", "b", "c", "d"], scales) == ["d", "b", "c", "a"]


def test_columns_of_a_comparison_come_by_how_many_answers_change_them_and_then_by_how_much(explainer, refused):
    from cfproto_plugin.report.ranking import scales_of, size_of

    several = explainer.explain(refused.original[:1], n=4, progress=False)
    names = [label.get_text() for label in several.plot().axes[0].get_yticklabels()]
    changes = [change for line in several for change in line.changes()]

    def place(name):
        sizes = [abs(size_of(c, scales_of(several))) or 1 for c in changes if c.feature == name]
        return -len(sizes), -max(sizes)

    assert len(names) > 1
    assert names == sorted(names, key=place)
    backwards = several[np.arange(len(several))[::-1]]
    assert [label.get_text() for label in backwards.plot().axes[0].get_yticklabels()] == names


def test_a_path_shows_the_probabilities_that_the_model_gives_and_the_answer(both, explainer):
    figure = drawn(both.plot("path"))
    axes = figure.axes[0]
    curves = {line.get_label(): line for line in axes.lines}
    curve = curves[f"probability of “{HOSTILE[1]}”"]
    assert curve.get_ydata()[0] == pytest.approx(both.original_proba[0, 1])
    assert curve.get_ydata()[-1] > 0.5
    path = both._source.toward_prototype(both.original, 1, 65)
    along, said = np.diff(curve.get_xdata()), curve.get_ydata()
    assert along.max() >= 1, "a category counts as one"
    assert said[np.flatnonzero(np.append(along, 1))] == pytest.approx(Model()(path.rows)[:, 1])
    assert not np.diff(said)[along >= 1].any(), "nothing lies between two categories"
    star = curves["the answer"]
    assert star.get_ydata()[0] == pytest.approx(both.counterfactual_proba[0, 1])
    scales = dict(zip(both.column_names, both.deviations, strict=True))
    far = sum(1 if c.feature == "<b>job</b>" else abs(c.after - c.before) / scales[c.feature] for c in both.changes())
    assert star.get_xdata()[0] == pytest.approx(far)
    assert any(text.get_text().endswith(f"% “{HOSTILE[1]}”") for text in axes.texts)


def test_an_embedding_shows_the_numbers_of_the_search_and_the_row(both):
    figure = drawn(both.plot("embedding"))
    axes = figure.axes[0]
    found = both._source.categories("<b>job</b>")
    names = [label.get_text() for label in axes.get_yticklabels()]
    order = np.argsort(-found.places)
    assert names[0][:5] == str(list(found.levels)[order[0]])[:5]
    dots = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o" and line.get_markersize() == 7]
    assert dots == pytest.approx(found.places[order].tolist())
    assert found.counts.sum() == N
    change = next(change for change in both.changes() if change.feature == "<b>job</b>")
    marks = {text.get_text(): text.xy[1] for text in axes.texts}
    assert list(found.levels).index(change.before) == order[int(marks["this row"])]
    assert list(found.levels).index(change.after) == order[int(marks["its counterfactual"])]


def test_images_show_original_counterfactual_difference_and_reconstruction(images):
    data, bright = images
    e = CounterfactualExplainer(bright, autoencoder=lambda x: np.asarray(x) * 0 + 0.25).fit(data)
    e = e.explain(data[:2], progress=False)
    assert e.found.all()
    figure = drawn(e.plot())
    pictures = [axes.images[0].get_array() for axes in figure.axes if axes.images]
    assert len(pictures) == 8
    low = min(e.original.min(), e.counterfactual.min())
    high = max(e.original.max(), e.counterfactual.max())
    assert np.allclose(pictures[0], (e.original[0] - low) / (high - low))
    assert np.allclose(pictures[1], (e.counterfactual[0] - low) / (high - low))
    assert np.allclose(pictures[2], e.counterfactual[0] - e.original[0])
    assert np.allclose(pictures[3], np.clip((0.25 - low) / (high - low), 0, 1))
    assert {"reconstruction", "same"} <= set(texts(figure))


def test_vectors_are_images_of_the_shape_that_is_given(images):
    data, bright = images
    vectors = data.reshape(40, 20)
    e = CounterfactualExplainer(lambda x: bright(np.asarray(x).reshape(-1, 5, 4))).fit(vectors).explain(vectors[:1])
    figure = drawn(e.plot(shape=(5, 4)))
    assert np.allclose(figure.axes[2].images[0].get_array(), (e.counterfactual - e.original).reshape(5, 4))
    with pytest.raises(InputError, match=r"shape is \(3, 3\); expected that of an image of 20 values"):
        e.plot(shape=(3, 3))
    with pytest.raises(InputError, match="pass shape="):
        e.plot("images")


def test_forty_changes_with_long_names_leave_the_layout_whole():
    x = RNG.normal(size=(120, 42))
    frame = pd.DataFrame(
        x, columns=[f"measure {j} with a name that is far too long for any picture" for j in range(42)]
    )

    def model(rows):
        p = 1 / (1 + np.exp(-np.asarray(rows, dtype=float).sum(axis=1)))
        return np.column_stack([1 - p, p])

    search = SearchConfig(few_changes=0.0, theta=5.0, min_typicality=0.0, min_stability=0.0)
    explainer = CounterfactualExplainer(model, search=search).fit(frame)
    e = explainer.explain(frame[:3], n=2, progress=False)
    line = e[int(e.n_changes.argmax())]
    assert line.n_changes[0] > 30
    figure = drawn(line.plot())
    assert len(figure.axes[0].get_yticklabels()) == 20
    assert f"{line.n_changes[0] - 20} more changes not shown" in flat(" ".join(texts(figure)))
    drawn(e.plot("cohort"))
    drawn(e[e.row == 0].plot())
    drawn(Explanation.from_json(line.to_json()).plot())


def test_missing_values_and_columns_that_never_vary_are_drawn():
    rows = TABLE.astype({"$x_1^$": float}).copy()
    rows.loc[::3, "$x_1^$"] = np.nan
    rows.loc[::4, "<b>job</b>"] = None
    features = Features(relations="`$x_1^$` >= 1.5")  # a missing value does not fulfil it
    explainer = CounterfactualExplainer(Model(), features=features).fit(rows)
    e = explainer.explain(rows[:12], progress=False)
    line = next(line for line in e if any(pd.isna(change.before) for change in line.changes()))
    figure = drawn(line.plot())
    assert any(text.startswith("missing → ") for text in texts(figure))
    marks = [mark for mark in figure.axes[0].lines if mark.get_marker() == "o" and mark.get_xdata()[0] < 0]
    assert marks, "a missing value stands to the left of the lane"
    drawn(e.plot(by="<b>job</b>"))
    drawn(line.plot("path"))


def test_a_column_that_never_varies_in_the_new_class_has_a_lane():
    from cfproto_plugin.explanation import Change
    from cfproto_plugin.report.plots.lanes import number_lane

    lane = number_lane(Change(0, "x", 1.0, 3.0), [3.0] * 20)
    assert (lane.before, lane.after, lane.typical) == (0, 1, "3")
    assert lane.quantiles == (1, 1, 1, 1, 1)
    same = number_lane(Change(0, "x", float("nan"), 3.0), [3.0] * 20)
    assert same.after == 0.5
    assert np.isnan(same.before)
    assert number_lane(Change(0, "x", 1.0, 3.0), []).typical == "no known value"


def test_a_row_without_an_answer_is_a_picture_that_says_why(explainer, refused):
    e = explainer.explain(refused.original[:2], features=Features(vary=("constant",)), progress=False)
    assert not e.found.any()
    figure = drawn(e[0].plot())
    assert title(figure) == "Row 0: the model says “$no_^$ <i>” and no counterfactual can exist"
    said = flat(" ".join(texts(figure)))
    assert "Infeasible: no row that the rules admit" in said
    assert flat(str(e.message[0]).partition("; ")[0]) in said
    assert [bar.get_width() for bar in figure.axes[0].patches] == pytest.approx(sorted(e.original_proba[0])[::-1])
    assert title(e.plot()) == "0 of 2 rows have a counterfactual."
    assert "the rules leave no way" in title(e[0].plot("path"))


def test_the_picture_of_a_row_that_was_searched_in_vain_shows_how_near_the_search_came(explainer):
    row = TABLE[(TABLE["income"] < 1500) & (TABLE["<b>job</b>"] != "nurse")][:1]
    e = explainer.explain(row, features=Features(vary=("$x_1^$",)), progress=False)
    assert e.status.tolist() == ["not_found"]
    best = float(re.search(r"a probability of ([.\de-]+)", e.message[0])[1])
    for figure in (drawn(e.plot()), drawn(explainer.explain(row, n=2, features=Features(vary=("$x_1^$",))).plot())):
        (mark,) = [line for line in figure.axes[0].lines if line.get_marker() == ">"]
        assert mark.get_xdata()[0] == best
        assert "no counterfactual was found" in title(figure)
        assert "That does not prove that there is none" in flat(" ".join(texts(figure)))


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"reached": 0.25}, ("a", 0.25)),
        ({"reached": 0.51, "least": 0.1}, ("a", 0.51)),
        ({"reached": 0.25, "blocked": ["x < y"], "only_of_class": True}, ("a", 0.25)),
        ({"reached": 0.25, "blocked": ["x < y"], "only_of_class": True, "min_proba": 0.8}, ("a", 0.25)),
        ({}, None),
        ({"blocked": ["x < y"]}, None),
    ],
)
def test_the_best_that_was_reached_is_read_from_the_message(given, found):
    known = {"absent": False, "min_proba": None, "fallback": True}
    assert best_reached(why_not_in_words(["a"], **(known | given))) == found


def test_an_explanation_from_a_file_draws_what_it_can_and_says_what_it_cannot(both, explainer):
    read = Explanation.from_json(both.to_json())
    figure = drawn(read.plot())
    assert "standard deviations" in figure.axes[0].get_xlabel()
    ends = {line.get_marker(): line for line in figure.axes[0].lines if line.get_marker() in {">", "s"}}
    assert set(ends) == {">", "s"}
    for kind in ("path", "embedding"):
        with pytest.raises(InputError, match="with_explainer"):
            read.plot(kind)
    rules = Features(vary=("income", "<b>job</b>"), allowed={"<b>job</b>": ("nurse",)})
    again = read.with_explainer(explainer, features=rules)
    assert len(again.plot().axes) == 3


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kind": "change"}, "kind is 'change'. Did you mean 'changes'"),
        ({"kind": "changes"}, r"kind='changes' is for one line, and there are 12: e\[0\].plot\('changes'\)"),
        ({"kind": "path"}, "kind='path' is for one line"),
        ({"kind": "comparison"}, r"there are 12 rows: e\[e.row == 0\]"),
        ({"kind": "images"}, "pass shape="),
        ({"shape": (2, 2)}, "shape= is for rows of pixels, all numbers, and these hold other values"),
        *(
            ({"shape": shape}, "shape is .*; expected that of an image of 4 values")
            for shape in ((2.0, 2.0), ("2", "2"), (-2, -2), (2, None), (True, 4), ((1, 2), 2), 4, "22", np.array(4))
        ),
        ({"kind": "cohort", "column": "income"}, "column is 'income', and is for kind='embedding'"),
        ({"kind": "cohort", "by": "jop"}, "by is 'jop', which is no column"),
        ({"column": "income"}, "column is 'income', which has no categories; expected one of '<b>job</b>'"),
        ({"column": "incme"}, "Did you mean 'income'"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_what_can(refused, given, said):
    with pytest.raises(InputError, match=said):
        refused.plot(**given)


def test_an_explanation_without_lines_cannot_be_drawn(refused):
    with pytest.raises(InputError, match="has no line"):
        refused[:0].plot()


def test_the_text_missing_and_a_missing_value_are_two_categories():
    cells = np.array(["missing", None, "x"], dtype=object)[np.arange(150) % 3]
    frame = pd.DataFrame({"t": pd.Series(cells, dtype=object), "u": RNG.normal(size=150)})

    def model(rows):
        q = np.where(rows.t == "missing", 0.9, 0.2)
        return np.column_stack([1 - q, q])

    e = CounterfactualExplainer(model, features=Features(immutable=["u"])).fit(frame).explain(frame[1:3])
    assert e.sentence(0).startswith("Had t been 'missing' instead of missing,")
    assert any("missing 0 %, 'missing' 100 %" in text for text in texts(e[0].plot("changes")))
    figure = drawn(e[0].plot("embedding", column="t"))
    marks = {text.get_text(): text.xy[1] for text in figure.axes[0].texts if hasattr(text, "xy")}
    assert marks["this row"] != marks["its counterfactual"]
    assert [step.value for action in e.actions(1) for step in action.steps] == ["missing"]


def test_typical_dates_are_days_of_the_time_zone_of_the_column():
    days = pd.Timestamp("2020-05-10", tz="Asia/Tokyo") + pd.to_timedelta(np.arange(80) % 2 * 10, unit="D")
    frame = pd.DataFrame({"day": days, "u": RNG.normal(size=80)})

    def model(rows):
        q = np.where(rows.day > pd.Timestamp("2020-05-15", tz="Asia/Tokyo"), 0.9, 0.2)
        return np.column_stack([1 - q, q])

    e = CounterfactualExplainer(model).fit(frame).explain(frame[1:2])
    assert "2020-05-10" in texts(e.plot("changes"))


def test_half_of_a_surrogate_pair_is_drawn_as_a_question_mark():
    name = "\ud800bad"
    frame = pd.DataFrame(RNG.normal(size=(80, 2)), columns=pd.Index(["ok", name], dtype=object))
    frame["job"] = pd.Series(["nurse\udfff", "clerk"] * 40, dtype=object)

    def model(rows):
        q = 1 / (1 + np.exp(-3 * rows[name].to_numpy(float) - (rows.job == "clerk")))
        return np.column_stack([1 - q, q])

    e = CounterfactualExplainer(model).fit(frame).explain(frame[:3])
    for figure in (e[0].plot(), e.plot(), e[0].plot("embedding"), e[0].plot("path"), e[0].plot("comparison")):
        for kind in ("png", "svg", "pdf"):
            figure.savefig(io.BytesIO(), format=kind)
    assert any("?bad" in text for text in texts(e[0].plot()))


def test_a_table_without_categories_has_no_embedding(images):
    x = RNG.normal(size=(50, 2))

    def model(rows):
        p = 1 / (1 + np.exp(-np.asarray(rows)[:, 0]))
        return np.column_stack([1 - p, p])

    e = CounterfactualExplainer(model).fit(x).explain(x[:1], progress=False)
    with pytest.raises(InputError, match="no column has categories"):
        e.plot("embedding")


def test_rows_that_cannot_be_read_are_counted_and_do_not_spoil_the_picture(explainer, refused):
    rows = refused.original.astype({"income": object}).copy()
    rows.iloc[0, 0] = "a lot"
    e = explainer.explain(rows, progress=False)
    assert e.status[0] == "error"
    assert title(drawn(e[0].plot())) == "Row 0: not explained"
    assert "a lot" in flat(" ".join(texts(e[0].plot())))
    assert title(e.plot()).startswith("11 of 12 rows have a counterfactual")
    assert "class: not explained" in texts(e.plot())
    assert "was not explained" in title(e[0].plot("path"))
    actions = e.actions(k=1)
    assert actions.rows == 11
    assert 0 not in actions[0].rows


def test_a_way_that_the_rules_end_is_not_said_to_lead_to_the_class():
    x = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 3)), columns=["a", "b", "c"])
    y = (x["a"] + x["b"] > 0).astype(int)
    x["b"] += 2 * y
    explainer = CounterfactualExplainer(LogisticRegression().fit(x, y), features=Features(vary=("a",))).fit(x)
    e = explainer.explain(x[y == 0].sort_values("b").iloc[:1], target=1)
    assert not e.found[0]
    figure = drawn(e[0].plot("path"))
    assert "towards a typical “1”, as far as the rules allow" in flat(title(figure))
    assert "The rules end the way before its prototype" in flat(" ".join(texts(figure)))
