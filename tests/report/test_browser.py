"""The report in a real browser: it runs, asks for nothing from outside, and shows what the model said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from browser import MISSING, chromium, render_widget
from hostile_texts import HOSTILE
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cfproto_plugin import CounterfactualExplainer, Explanation, SearchConfig
from cfproto_plugin.report.cohorts.wording import typical_change

pytestmark = [pytest.mark.slow, pytest.mark.needs("playwright")]
ROWS = 45


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        if found is None:
            pytest.skip(MISSING)
        yield found


@pytest.fixture(scope="module")
def wine():
    x, y = load_wine(return_X_y=True, as_frame=True)
    names = np.array(["Barolo", "Grignolino", "Barbera"])[y]
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(x, names), x


@pytest.fixture(scope="module")
def answers(wine):
    model, x = wine
    return CounterfactualExplainer(model).fit(x).explain(x[::4][:ROWS])


class Opened:
    """A report in a page that notes what goes wrong."""

    def __init__(self, browser, path, **options):
        self.page, self.trouble, self.requests = browser.new_page(**options), [], []
        self.page.on("console", lambda message: self.trouble.append(message.text))
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.trouble.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    def rows(self):
        """The numbers of the rows whose cards are shown."""
        return [int(at) for at in self.page.locator(".card").evaluate_all("cards => cards.map(c => c.dataset.row)")]

    def card(self, row):
        return self.page.locator(f".card[data-row='{row}']")

    def text(self, selector):
        return self.page.locator(selector).inner_text()

    def loaded_from_outside(self):
        return [url for url in self.requests[1:] if not url.startswith("data:")]


@pytest.fixture
def opened(browser, tmp_path):
    made = []

    def open_(explanation, *, options=None, **arguments):
        path = explanation.to_html(tmp_path / f"report{len(made)}.html", **arguments)
        made.append(Opened(browser, path, **(options or {})))
        return made[-1]

    yield open_
    for each in made:
        each.page.close()


def percent(proba):
    whole = round(100 * proba)
    return {0: "<1 %", 100: ">99 %"}.get(whole, f"{whole} %") if 0 < proba < 1 else f"{whole} %"


def mixed(e, at, names):
    """The original of a line with these columns of its counterfactual."""
    row = e.original.iloc[[at]].copy()
    for name in names:
        row[name] = e.counterfactual[name].iloc[at]
    return row


def line_with(e, low, high):
    return int(np.flatnonzero((e.n_changes >= low) & (e.n_changes <= high))[0])


def test_it_opens_without_errors_and_asks_for_nothing_from_outside(opened, answers):
    report = opened(answers, title="Wines")
    assert report.page.title() == "Wines"
    assert report.text("h1") == "Wines"
    assert report.text("#count") == "45 rows."
    assert report.rows() == list(range(20))
    assert report.trouble == []
    assert report.loaded_from_outside() == []


def test_pages_are_turned_and_the_last_one_ends(opened, answers):
    report = opened(answers)
    seen = report.rows()
    while report.page.locator("#next").is_enabled():
        report.page.click("#next")
        seen += report.rows()
    assert seen == list(range(ROWS))
    assert report.text("#page") == "Page 3 of 3"
    report.page.click("#previous")
    assert report.rows() == list(range(20, 40))
    assert report.trouble == []


def test_search_finds_the_lines_that_hold_every_word(opened, answers):
    report = opened(answers)
    report.page.fill("#search", "row 17")
    assert 17 in report.rows()
    assert len(report.rows()) < 20
    value = str(answers.counterfactual.iloc[3][answers.changes_frame().query("row == 3").feature.iloc[0]])
    report.page.fill("#search", f"{value} {answers.counterfactual_class[3].upper()}")
    assert 3 in report.rows()
    report.page.fill("#search", "nothing like this")
    assert report.rows() == []
    assert report.text("#count") == "0 of 45 rows."
    assert "Nothing matches" in report.text("#none")
    report.page.click("#reset")
    assert report.text("#count") == "45 rows."


def test_filters_by_class_status_and_feature(opened, answers):
    none = replace(
        answers,
        status=np.where(np.arange(ROWS) == 7, "not_found", answers.status),
        counterfactual_class=np.where(np.arange(ROWS) == 7, None, answers.counterfactual_class),
    )
    report = opened(none)
    changes = none.changes_frame()

    def count():
        return int(report.text("#count").split()[0])

    report.page.select_option("#status", label="not found")
    assert report.rows() == [7]
    report.page.click("#reset")
    before, after = none.original_class[0], none.counterfactual_class[0]
    report.page.select_option("#from", label=before)
    assert count() == (none.original_class == before).sum()
    report.page.select_option("#to", label=after)
    assert count() == ((none.original_class == before) & (none.counterfactual_class == after)).sum()
    report.page.click("#reset")
    report.page.select_option("#feature", label="proline")
    assert count() == changes[changes.feature == "proline"].row.nunique()
    assert report.trouble == []


@pytest.mark.parametrize("by", ["row", "distance", "changes", "probability"])
def test_lines_are_sorted_both_ways_and_those_without_an_answer_come_last(opened, answers, by):
    e = answers[:20]
    without = np.arange(20) == 4
    e = replace(
        e,
        status=np.where(without, "not_found", e.status),
        counterfactual_class=np.where(without, None, e.counterfactual_class),
        distance=np.where(without, np.nan, e.distance),
    )
    keys = {"row": e.row, "distance": e.distance, "changes": e.n_changes, "probability": e.new_class_proba[1]}
    keys = np.where(without & (by != "row"), np.inf, keys[by].round(6))
    report = opened(e)
    report.page.select_option("#sort", by)
    assert report.rows() == np.argsort(keys, kind="stable").tolist()
    report.page.click("#order")
    assert report.rows() == np.argsort(np.where(np.isinf(keys), np.inf, -keys), kind="stable").tolist()


def test_switching_changes_off_shows_what_the_model_says_without_them(opened, answers, wine):
    model, _ = wine
    at = line_with(answers, 2, 8)
    report = opened(answers)
    report.page.fill("#search", f"row {at}")
    card, features = report.card(at), [change.feature for change in answers[at].changes()]
    new = answers.counterfactual_class[at]
    for off in range(len(features)):
        card.get_by_label(f"change {features[off]}").uncheck()
        kept = mixed(answers, at, features[off + 1 :])
        proba = model.predict_proba(kept)[0, list(model.classes_).index(new)]
        said = card.locator("output").inner_text()
        assert said.endswith(f"The probability of {new} is {percent(proba)}.")
        assert model.predict(kept)[0] in said
        assert percent(proba) in card.locator(".proba").inner_text()
    assert said.startswith("Without any change")
    card.get_by_role("button", name="All changes").click()
    assert card.locator("output").inner_text().startswith(f"With all changes the model says {new}.")
    assert card.locator("input:checked").count() == len(features)
    card.get_by_role("button", name="No change").click()
    assert card.locator("input:checked").count() == 0
    assert card.locator("tr.off").count() == len(features)
    assert report.trouble == []


def test_of_more_than_eight_changes_single_ones_are_undone(opened, wine):
    model, x = wine
    e = CounterfactualExplainer(model, search=SearchConfig.close(few_changes=0.0)).fit(x).explain(x[:6])
    at = line_with(e, 9, 13)
    report = opened(e)
    card, new = report.card(at), e.counterfactual_class[at]
    features = [change.feature for change in e[at].changes()]
    for name in features:
        card.get_by_label(f"undo the change of {name}", exact=True).check()
        proba = model.predict_proba(mixed(e, at, set(features) - {name}))[0, list(model.classes_).index(new)]
        assert card.locator("output").inner_text().startswith(f"With {len(features) - 1} of {len(features)} changes")
        assert card.locator("output").inner_text().endswith(f"The probability of {new} is {percent(proba)}.")
        assert card.locator("tr.off").count() == 1
    card.get_by_role("button", name="No change").click()
    assert card.locator("input:checked").count() == 0
    assert report.trouble == []


def test_lines_without_predictions_say_so_and_have_no_switches(opened, answers):
    report = opened(answers, what_if=2)
    with_switches = [row for row in report.rows() if report.card(row).locator("input").count()]
    assert with_switches == report.rows()[:2]
    assert "first 2 rows only" in report.card(report.rows()[2]).inner_text()
    for e, arguments in ((answers, {"what_if": False}), (Explanation.from_json(answers.to_json()), {})):
        report = opened(e, **arguments)
        assert report.page.locator(".card input").count() == 0
        assert "no predictions of single changes" in report.text(".guide")
        assert report.trouble == []


def test_the_cohort_names_the_typical_change_that_the_summary_names(opened, answers):
    report = opened(answers)
    rows = report.page.locator(".cohort tbody tr")
    texts = dict(zip(rows.locator("th").all_inner_texts(), rows.locator("td.dim").all_inner_texts(), strict=True))
    expected = {record.feature: typical_change(record) for record in answers.summary().select()}
    for name, text in texts.items():
        assert text.replace("−", "-").replace("→", "->") == expected[name]  # noqa: RUF001 a minus sign


def test_the_cohort_has_the_order_of_the_summary_however_the_lines_are_sorted(opened, answers):
    few = answers[:12]
    expected = [record.feature for record in few.summary().select()]
    assert len({record.changed for record in few.summary().select()}) < len(expected)  # some change as often
    report = opened(few)
    for by in ("row", "distance", "probability"):
        report.page.select_option("#sort", by)
        for _ in range(2):
            report.page.click("#order")
            assert report.page.locator(".cohort tbody th").all_inner_texts() == expected[:12]


def test_the_cohort_says_how_many_changes_the_class_does_not_need(opened, answers):
    report, changes = opened(answers), answers.changes_frame()
    spare = changes[~changes["needed_for"].isin(["class", ""])].groupby("feature").size()
    assert spare.any()
    for each in report.page.locator(".cohort tbody tr").all():
        name, _, count, *_ = each.locator("th, td").all_inner_texts()
        every = (changes["feature"] == name).sum()
        expected = {0: "", every: "none needed for the class"}
        said = expected.get(spare.get(name, 0), f"{spare.get(name, 0)} not needed for the class")
        assert " ".join(count.split("\n")[1:]) == said


def test_the_cohort_counts_the_lines_that_are_shown_and_narrows_them(opened, answers):
    report = opened(answers)
    changes = answers.changes_frame()
    counts = changes.groupby("feature").row.nunique()
    heads = report.page.locator(".cohort tbody tr")
    for each in heads.all():
        name, _, count, ways, _ = each.locator("th, td").all_inner_texts()
        own = changes[changes.feature == name]
        assert int(count.split()[0]) == counts[name]
        higher, lower = (own.after > own.before).sum(), (own.after < own.before).sum()
        said = {part.split()[1]: int(part.split()[0]) for part in ways.split(", ")}
        assert (said.get("higher", 0), said.get("lower", 0)) == (higher, lower)
    report.page.get_by_role("button", name="proline", exact=True).click()
    assert int(report.text("#count").split()[0]) == counts["proline"]
    assert report.page.get_by_role("button", name="proline", exact=True).get_attribute("aria-pressed") == "true"
    report.page.get_by_role("button", name="proline", exact=True).click()
    assert report.text("#count") == "45 rows."
    before, after = answers.original_class[0], answers.counterfactual_class[0]
    report.page.locator("#cohort").get_by_role("button", name=f"{before} → {after}").click()
    pair = (answers.original_class == before) & (answers.counterfactual_class == after)
    assert int(report.text("#count").split()[0]) == pair.sum()
    report.page.get_by_role("button", name="all classes").click()
    assert report.text("#count") == "45 rows."


def focused(page):
    return page.evaluate("() => document.activeElement.id || document.activeElement.getAttribute('aria-label')")


def test_everything_can_be_done_with_the_keyboard_and_the_focus_is_seen(opened, answers):
    report = opened(answers[:3])
    page, keyboard = report.page, report.page.keyboard
    keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.textContent") == "Skip to the rows"
    keyboard.press("Enter")
    keyboard.press("Tab")
    assert focused(page) == "search"
    assert page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle") == "solid"
    keyboard.type("row 2")
    reached = []
    for _ in range(8):
        keyboard.press("Tab")
        reached.append(focused(page))
        if reached[-1] == "sort":
            keyboard.press("ArrowDown")
    order = ["from", "to", "status", "feature", "sort", "order", "reset"]
    assert reached[:7] == order
    assert page.locator("#sort").input_value() == "distance"
    assert reached[7].startswith("change ")
    keyboard.press("Space")
    assert not page.evaluate("() => document.activeElement.checked")
    assert "of" in page.locator("output").first.inner_text()
    assert report.trouble == []


def test_every_control_has_a_name(opened, answers):
    report = opened(answers[:3])
    nameless = report.page.evaluate(
        """() => [...document.querySelectorAll('input, select, button')].filter(
          (e) => !(e.getAttribute('aria-label') || e.labels?.[0]?.innerText || e.innerText)).map((e) => e.outerHTML)"""
    )
    assert nameless == []


def test_hostile_names_and_values_stay_text_and_run_nothing(opened):
    n = len(HOSTILE)
    names, cells = pd.Index(HOSTILE, dtype=object), [[[f"{text}{end}" for text in HOSTILE]] * n for end in "ab"]
    before, after = (pd.DataFrame(rows, index=names, columns=names, dtype=object) for rows in cells)
    e = Explanation(
        original=before,
        counterfactual=after,
        status=np.full(n, "found", dtype=object),
        message=np.array(HOSTILE, dtype=object),
        original_class=np.array(HOSTILE, dtype=object),
        counterfactual_class=np.array(HOSTILE[1:] + HOSTILE[:1], dtype=object),
        prototype_class=np.array(HOSTILE, dtype=object),
        original_proba=np.full((n, n), 1 / n),
        counterfactual_proba=np.full((n, n), 1 / n),
        classes=np.array(HOSTILE, dtype=object),
        n_steps=np.zeros(n, dtype=int),
        seconds=np.zeros(n),
        row=np.arange(n),
        feature_names=tuple(HOSTILE),
        meta={text: text for text in HOSTILE} | {"adapter": HOSTILE[0]},
    )
    assert n <= 20  # all on one page
    report = opened(e, title=HOSTILE[0])
    page = report.page
    assert len(report.rows()) == n
    assert page.evaluate("() => window.hacked") is None
    assert (report.trouble, report.loaded_from_outside()) == ([], [])
    assert report.page.locator("script, img, iframe, svg, b b, a").count() == 3  # data, our script and the skip link
    shown = report.card(0).locator("tbody th").evaluate_all("cells => cells.map(c => c.textContent)")
    assert sorted(shown) == sorted(HOSTILE)
    assert page.locator("h1").evaluate("e => e.textContent") == HOSTILE[0]
    for name in ("from", "to", "feature"):
        for option in page.locator(f"#{name} option").all()[1:]:
            page.select_option(f"#{name}", value=option.get_attribute("value"))
            assert report.text("#count") != f"0 of {n} rows."
            page.select_option(f"#{name}", index=0)
    for text in HOSTILE:
        page.fill("#search", text)
    for button in page.locator("#cohort button").all():
        button.click()
        page.click("#reset")
    assert page.evaluate("() => window.hacked") is None
    assert (report.trouble, report.loaded_from_outside()) == ([], [])


def test_the_policy_of_the_page_lets_no_other_script_run_and_nothing_load(opened, answers):
    report = opened(answers[:2])
    report.page.evaluate(
        """() => {
          const script = document.createElement('script');
          script.textContent = 'window.hacked = 1';
          const image = document.createElement('img');
          image.src = 'https://example.org/a.png';
          const link = document.createElement('div');
          link.innerHTML = '<img src=x onerror="window.hacked = 2">';
          document.body.append(script, image, link);
        }"""
    )
    report.page.wait_for_timeout(200)
    assert report.page.evaluate("() => window.hacked") is None
    assert len(report.trouble) >= 2
    assert all("Content Security Policy" in text for text in report.trouble)


def test_thousands_of_lines_stay_usable_a_page_at_a_time(opened, answers):
    report = opened(answers[np.tile(np.arange(ROWS), 120)], what_if=0)
    assert report.text("#count").split()[0] == "5,400"
    assert report.page.locator(".card").count() == 20
    report.page.fill("#search", "proline")
    assert report.page.locator(".card").count() == 20
    assert report.trouble == []


def test_it_can_be_read_without_scripts(browser, answers, tmp_path):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(answers.to_html(tmp_path / "plain.html").as_uri())
    assert answers.sentence(30) in page.locator("noscript li").nth(30).inner_text()
    assert not page.locator("#filters").is_visible()
    context.close()


def test_all_lines_are_printed_without_the_controls(opened, answers):
    report = opened(answers)
    report.page.emulate_media(media="print")
    report.page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    assert len(report.rows()) == ROWS
    assert not report.page.locator("#filters").is_visible()
    report.page.evaluate("() => window.dispatchEvent(new Event('afterprint'))")
    assert len(report.rows()) == 20


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_the_page_in_either_scheme_and_nothing_is_cut_on_a_phone(opened, answers, scheme):
    report = opened(answers[:3], options={"color_scheme": scheme, "viewport": {"width": 360, "height": 740}})
    style = "() => { const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]; }"
    text, page = (sum(map(int, c[4:-1].split(","))) for c in report.page.evaluate(style))
    assert abs(text - page) > 500
    assert report.page.evaluate("() => document.documentElement.scrollWidth") <= 360


@pytest.fixture
def rendered(browser):
    made = []

    def render(widget):
        page = browser.new_page()
        made.append((page, trouble := []))
        page.on("console", lambda message: trouble.append(message.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        render_widget(page, widget)
        return page

    yield render
    for page, trouble in made:
        page.close()
        assert trouble == []


@pytest.mark.needs("anywidget")
def test_moving_a_slider_of_the_widget_asks_the_model_again(rendered, answers, wine):
    model, _ = wine
    at = line_with(answers, 1, 8)
    changed = [change.feature for change in answers[at].changes()]
    new = answers.counterfactual_class[at]
    page = rendered(answers.what_if(at, features=["ash"]))
    said, figure = page.locator("output:not([aria-busy])"), page.locator(".cfw-figure")
    assert f"The model says {new}. Of the row as it is, it says {answers.original_class[at]}." in said.inner_text()
    assert sorted(page.locator(".cfw-changed .cfw-name").all_inner_texts()) == sorted(changed)
    page.get_by_role("button", name="As it is").click()
    assert said.inner_text() == f"The model says {answers.original_class[at]}, as of the row as it is."
    assert page.locator(".cfw-changed").count() == 0

    def expected(**values):
        row = answers.original.iloc[[at]].assign(**values)
        return percent(model.predict_proba(row)[0, list(model.classes_).index(new)])

    page.get_by_label("ash, exact value", exact=True).fill("3.1")
    page.keyboard.press("Tab")
    said.wait_for()
    assert figure.inner_text().endswith(f"→ {expected(ash=3.1)}")
    page.get_by_role("slider", name=changed[0], exact=True).focus()
    for _ in range(30):
        page.keyboard.press("ArrowRight")
    said.wait_for()
    moved = float(page.get_by_label(f"{changed[0]}, exact value", exact=True).input_value())
    assert moved != answers.original[changed[0]].iloc[at]
    assert figure.inner_text().endswith(f"→ {expected(ash=3.1, **{changed[0]: moved})}")


@pytest.mark.needs("anywidget")
def test_hostile_names_and_values_stay_text_in_the_widget(rendered):
    rng = np.random.default_rng(0)
    texts = [text for text in HOSTILE if "\ud800" not in text]
    frame = pd.DataFrame({text: rng.choice(texts[at : at + 2] or texts[:2], 80) for at, text in enumerate(texts)})

    def says(rows):
        p = np.where(rows.iloc[:, 0] == texts[0], 0.2, 0.8)
        return np.column_stack([1 - p, p])

    page = rendered(CounterfactualExplainer(says).fit(frame).explain(frame[:1]).what_if(features="all"))
    shown = page.locator(".cfw-name").evaluate_all("names => names.map(name => name.textContent)")
    assert sorted(shown) == sorted(texts)
    for select in page.locator("select").all():
        select.select_option(index=0)
    page.locator("output:not([aria-busy])").wait_for()
    assert page.locator("#widget script, #widget img, #widget svg").count() == 0
    assert page.evaluate("() => window.hacked") is None
