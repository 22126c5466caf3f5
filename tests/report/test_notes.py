"""What a sentence and the notes below an answer say of its changes, its quality and how it was found."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from test_report import explanation

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.cli.show import as_lines
from cfproto_plugin.report import as_html, as_text
from cfproto_plugin.report.document import report_html
from cfproto_plugin.report.notes import alike, message_in_words, quality
from cfproto_plugin.report.purposes import names_by_purpose
from cfproto_plugin.report.ranking import ranked
from cfproto_plugin.search.how import How

RNG = np.random.default_rng(0)
MESSAGE = "class yes reached on the way to an example of it, then improved"
WEAKER = "A weaker answer: the search found none, so this one was made from a training row of that class."
NO_FURTHER = "A weaker answer: the search found no further one, so this one was made from a training row of that class."
FURTHER = "; the search found no further one"
MISSED = "; the best that was found has stability 0.4, not 0.9"


def answer(needed, *, message=MESSAGE, status="found", how=None, **fields):
    """One row whose grade, age, score and job change, needed for these."""
    before = pd.DataFrame({"grade": [0], "age": [18], "score": [0.25], "job": ["home"]})
    after = pd.DataFrame({"grade": [10], "age": [16], "score": [0.5], "job": ["teacher"]})
    made = explanation(before, after, names=tuple(before.columns), message=message, meta={"config": {"noise": 0.1}})
    return replace(
        made,
        status=np.array([status], dtype=object),
        deviations=np.array([3.0, 1.0, 1.0, np.nan]),
        needed_for=np.array([needed]),
        stability=np.array([0.94]),
        typicality=np.array([0.3]),
        how=np.array([how or How("path", theta=1.0, polished_from=9.0)], dtype=object),
        **fields,
    )


def test_a_sentence_says_first_what_the_class_needs_then_the_rest_with_its_values():
    e = answer(["class", "typicality", "typicality", "stability"])
    assert e.sentence() == (
        "Had grade been 10 instead of 0, the model would have said yes. Also changed, to be typical of the class: age "
        "16 instead of 18 and score 0.5 instead of 0.25. Also changed, so that the class mostly holds if values are "
        "hit only roughly: job teacher instead of home. Without these changes the model says yes too; with all changes "
        "its probability is 75 %."
    )


def test_where_a_wish_is_missed_the_sentence_and_the_picture_claim_no_more_than_the_answer_has():
    e = answer(["class", "typicality", "typicality", "stability"], message=MESSAGE + MISSED)
    assert "Also changed, to be typical of the class: age" in e.sentence()
    assert "Also changed, so that the class holds more often if values are hit only roughly: job" in e.sentence()
    assert "job so that the class holds more often if values" in names_by_purpose(e)
    missed = "; the best that was found has typicality 0.04, not 0.1 and probability 0.6, not 0.7; no proof"
    e = answer(["class", "typicality", "probability", "stability"], message=MESSAGE + missed)
    assert "Also changed, to be more typical of the class: age" in e.sentence()
    assert "Also changed, to come closer to the probability asked for: score" in e.sentence()
    assert "so that the class mostly holds if values are hit only roughly: job" in e.sentence()


def test_one_change_that_the_class_does_not_need_is_this_change():
    e = answer(["class", "class", "class", "rule"])
    assert "Also changed, to keep the rules: job teacher instead of home. Without this change the model" in e.sentence()


def test_a_row_of_the_class_already_says_why_it_changes_at_all():
    e = answer(["probability"] * 4, original_class=np.array(["yes"], dtype=object))
    assert e.sentence().startswith("The model says yes already. Changed, to reach the probability asked for: grade 10 ")
    assert e.sentence().endswith(". The probability becomes 75 % instead of 10 %.")


def test_what_the_class_needs_comes_first_in_sentence_table_and_page():
    e = answer(["typicality", "class", "class", "typicality"])
    order = [change.feature for change in ranked(e)]
    assert order == ["age", "score", "grade", "job"]
    table = [line.split()[0] for line in as_text(e, 100).splitlines() if "->" in line][1:]
    page, said = as_html(e), e.sentence()
    assert table == order
    assert order == sorted(order, key=lambda name: said.index(f"{name} "))
    assert order == sorted(order, key=lambda name: page.index(f"<td>{name}</td>"))


def test_quality_says_in_plain_words_what_was_tried_and_which_changed_columns_it_hardly_moves():
    assert quality(answer(["class"] * 4)) == (
        "The model still says yes after 94 % of small random changes of the answer's numbers (of about 0.1 standard "
        "deviations each); these hardly move grade, age and job: whole numbers are rounded and categories stay. The "
        "answer is at least as typical of yes as 30 % of its training rows."
    )


def test_whole_numbers_that_the_noise_does_move_are_not_named():
    e = replace(answer(["class"] * 4), deviations=np.array([30.0, 1.0, 1.0, np.nan]))
    assert "these hardly move age and job:" in quality(e)


def test_answers_that_change_the_same_columns_are_said_to_differ_only_in_the_values():
    rows = pd.DataFrame(RNG.normal(size=(200, 2)), columns=["x", "y"])
    model = LogisticRegression().fit(rows, rows["x"] > 0)
    explainer = CounterfactualExplainer(model, search=SearchConfig.close()).fit(rows)
    row = rows[rows["x"] < -1][:1]
    same = explainer.explain(row, n=2, features=Features(vary=("x",)), progress=False)
    assert (same.diversity == 0).all()
    said = "All answers to row 0 change the same columns and differ only in the values."
    for text in (as_text(same, 80), as_html(same), same.to_html(), "\n".join(as_lines(same))):
        assert said in " ".join(text.split())
    for other in (same[0], explainer.explain(row, n=1, progress=False)):
        assert not alike(other)
    differ = replace(same, counterfactual=same.counterfactual.assign(y=[0.0, float(row["y"].iloc[0])]))
    assert not alike(differ)


@pytest.mark.parametrize(
    ("status", "how", "message", "said"),
    [
        ("found", None, MESSAGE, ""),
        ("found", None, MESSAGE + MISSED, "The best that was found has stability 0.4, not 0.9."),
        ("found", How("fista"), "class a; b reached by gradient descent", ""),
        (
            "fallback",
            How("fallback"),
            "class yes reached on the way to a training row of that class" + MISSED,
            f"{WEAKER} The best that was found has stability 0.4, not 0.9.",
        ),
        (
            "fallback",
            How("fallback"),
            "class yes reached on the way to a training row of that class, then improved" + FURTHER + MISSED,
            f"{NO_FURTHER} The best that was found has stability 0.4, not 0.9.",
        ),
        (
            "fallback",
            How("fallback"),
            "class yes reached on the way to a training row of that class" + FURTHER,
            NO_FURTHER,
        ),
        (
            "fallback",
            How("nearest"),
            "the nearest training row of class yes: the time budget left no search",
            "A weaker answer: the time ran out before a search, so this is the nearest training row of that class.",
        ),
    ],
)
def test_a_message_is_shown_where_it_tells_something(status, how, message, said):
    e = answer(["class"] * 4, status=status, how=how, message=message)
    assert message_in_words(e) == said
    assert "reached" not in as_text(e, 100) + as_html(e)
    assert said in " ".join(as_text(e, 100).split())


def test_the_printed_table_of_several_rows_marks_changes_that_the_class_does_not_need():
    e = answer(["class", "typicality", "class", "stability"])
    for width in (80, 160):
        text = " ".join(as_text(e[[0, 0]], width).split())
        assert text.count("grade 0 -> 10, score 0.25 -> 0.5, age 18 -> 16 *, ") == 2
        assert text.endswith(
            "* not needed for the class, but for how typical, stable or sure the answer is, or for a rule or the like."
        )
    assert "*" not in as_text(answer(["class"] * 4)[[0, 0]], 160)


def test_a_fallback_beside_answers_of_the_search_says_that_the_search_found_no_further_one():
    x = np.random.default_rng(0).normal(size=(200, 3)).round(2)
    forest = RandomForestClassifier(10, max_depth=3, random_state=0).fit(x, (x[:, 0] * x[:, 1] > 0).astype(int))
    e = CounterfactualExplainer(forest, features=Features(increasing=(0,))).fit(x).explain(x[:1], n=3)
    assert e.status[0] == "found"
    last = e[e.status == "fallback"][-1]
    assert len(last) == 1
    assert message_in_words(last).startswith(NO_FURTHER)
    assert as_text(e, 200).endswith("trying combinations, because the search found no further one")
    page = " ".join(report_html(e).split())
    assert NO_FURTHER in page
    assert "the search along prototypes found nothing, or nothing further; the answer was made" in page


@pytest.mark.needs("matplotlib")
def test_the_comparison_marks_a_fallback_and_says_why_it_is_weaker():
    from matplotlib.text import Text

    message = "class yes reached on the way to a training row of that class" + FURTHER
    first, last = answer(["class"] * 4), answer(["class"] * 4, status="fallback", message=message)
    e = replace(
        first[[0, 0]],
        row=np.array([0, 0]),
        **{name: np.concatenate([getattr(first, name), getattr(last, name)]) for name in ("status", "message")},
    )
    said = [" ".join(text.get_text().split()) for text in e.plot().findobj(Text)]
    assert any(text.startswith("answer 1 yes") for text in said)
    assert any(text.startswith("answer 2, weaker yes") for text in said)
    assert any(NO_FURTHER in text for text in said)


def test_the_printed_table_says_that_the_time_ran_out_and_what_a_fallback_is():
    e = answer(["class"] * 4, status="fallback", how=How("fallback"))
    several = replace(e[[0, 0]], row=np.array([0, 1]), meta={"budget": {"seconds": 0.5, "spent": True, "overrun": 0}})
    text = " ".join(as_text(several, 60).split())
    assert "The time budget of 0.5 s ran out" in text
    assert "fallback: a weaker answer" in text
    assert max(map(len, as_text(several, 60).splitlines())) <= 60
    assert "ran out" not in as_text(e[[0, 0]], 60)


def test_changes_that_make_the_model_sure_name_no_probability_that_nobody_asked_for():
    """The second column makes it surer of most rows."""
    x = np.random.default_rng(0).normal(size=(300, 2))

    def model(rows):
        x = np.asarray(rows)
        p = np.where(x[:, 0] > 0.5, 0.6 + 0.3 * (x[:, 1] > -1), 0.3)
        return np.column_stack([1 - p, p])

    wished = SearchConfig.close(min_confidence=0.9, strict=False)
    rows = x[(x[:, 0] < 0.5) & (x[:, 1] < -1)][:5]
    for search, said in (
        (wished, "so that the model is sure of the class"),
        (replace(wished, min_proba=0.8), "to reach the probability asked or wished for"),
        (SearchConfig.close(min_proba=0.8), "to reach the probability asked for"),
    ):
        for line in CounterfactualExplainer(model, search=search).fit(x).explain(rows):
            assert said in line.sentence()


def test_the_table_says_how_many_answers_miss_a_wish():
    good, short = answer(["class"] * 4), answer(["class"] * 4, message=f"{MESSAGE}{MISSED}")
    assert "wished for" not in as_text(two_lines(good), 120)
    assert "2 answers reached less than is wished for; e.message says what." in as_text(two_lines(short), 120)


def two_lines(e):
    """The same line twice."""
    return e[np.array([0, 0])]


def test_a_number_and_its_percent_sign_stay_on_one_line():
    e = answer(["class", "typicality", "typicality", "stability"])
    for width in range(30, 120):
        assert not any(text.lstrip().startswith("%") for text in as_text(e, width).split("\n"))
