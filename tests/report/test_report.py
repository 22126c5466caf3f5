"""How an explanation looks in a terminal, in a notebook and as a file."""

import base64
import json
import re
import struct
import zlib
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from cfproto_plugin.errors import InputError
from cfproto_plugin.explanation import Explanation
from cfproto_plugin.report import aligned, as_html, as_text, how_in_words, ranked, value_text, write_report
from cfproto_plugin.report.document import report_html
from cfproto_plugin.search.how import How

FALLBACK = "class 1 reached on the way to a training row of that class"
BOTH = "weight been 5 instead of 10 and ratio 0.55 instead of 0.5"
EVIL = "<script>alert('x')</script>&"
META = {
    "adapter": "xgboost",
    "config": {"beta": 0.1, "method": "auto"},
    "versions": {"numpy": "2.4.6"},
    "seconds": 0.25,
    "n_predict_calls": 4,
    "n_predicted_rows": 1234,
}


def explanation(before, after, *, names=None, labels=("no", "yes"), message="reached", status="found", meta=META):
    n = len(before)
    return Explanation(
        original=before,
        counterfactual=after,
        status=np.full(n, status, dtype=object),
        message=np.full(n, message, dtype=object),
        original_class=np.full(n, labels[0], dtype=object),
        counterfactual_class=np.full(n, labels[1] if status == "found" else None, dtype=object),
        prototype_class=np.full(n, labels[1], dtype=object),
        original_proba=np.tile([0.9, 0.1], (n, 1)),
        counterfactual_proba=np.tile([0.25, 0.75], (n, 1)),
        classes=np.array(labels, dtype=object),
        n_steps=np.zeros(n, dtype=int),
        seconds=np.zeros(n),
        row=np.arange(n),
        feature_names=names,
        meta=meta,
    )


def table(rows=2):
    before = np.tile([1.0, 10.0, 0.5], (rows, 1))
    return explanation(before, np.add(before, [0.0, -5.0, 0.05]), names=("height", "weight", "ratio"))


def data_of(html):
    """What the script of a report is given."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    return json.loads(text)


class Outline(HTMLParser):
    """Collects tags and text, and fails on tags that do not close in order."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.text = [], [], ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "img", "input"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.text += data + "|"


def pixels(tag):
    """Decode an inline 8-bit PNG without filters."""
    data = base64.b64decode(tag["src"].removeprefix("data:image/png;base64,"))
    width, height, depth, colour = struct.unpack(">IIBB", data[16:26])
    size = struct.unpack(">I", data[33:37])[0]
    rows = zlib.decompress(data[41 : 41 + size])
    channels = {0: 1, 2: 3}[colour]
    lines = np.frombuffer(rows, np.uint8).reshape(height, 1 + width * channels)
    assert depth == 8
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, channels)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1156.23, "1156.23"),
        (880.0, "880"),
        (0.1 + 0.2, "0.30000000000000004"),
        (386.09998, "386.09998"),
        (1e-7, "1e-07"),
        (2.5e12, "2500000000000"),
        (np.float32(0.1), "0.1"),
        (123456, "123456"),
        ("Private", "Private"),
        (True, "True"),
        (float("nan"), "missing"),
        (None, "missing"),
        (-0.5, "-0.5"),
    ],
)
def test_a_value_is_shown_with_every_digit_and_none_that_it_does_not_need(value, shown):
    assert value_text(value) == shown
    if isinstance(value, float) and not np.isnan(value):
        assert float(shown) == value


@pytest.mark.parametrize("frame", [False, True])
def test_a_float32_is_shown_and_listed_as_its_shortest_decimal(frame):
    before, after = np.array([[0.1, 2.0]], dtype=np.float32), np.array([[0.7, 2.0]], dtype=np.float32)
    if frame:
        before, after = (pd.DataFrame(x, columns=["a", "b"]) for x in (before, after))
    e = explanation(before, after, names=("a", "b"))
    assert e.changes()[0][2:4] == (0.1, 0.7)
    assert np.float32(e.changes()[0].after) == np.float32(0.7)
    for text in (as_text(e, 100), as_html(e), e.sentence()):
        assert "0.1" in text
        assert "0.10000000149" not in text


def test_the_largest_change_in_standard_deviations_comes_first_and_a_category_counts_as_one():
    before = pd.DataFrame({"big": [1000.0], "small": [0.1], "word": ["a"], "tiny": [1.0]})
    after = pd.DataFrame({"big": [1100.0], "small": [0.2], "word": ["b"], "tiny": [1.5]})
    e = explanation(before, after, names=tuple(before.columns))
    e = replace(e, deviations=np.array([20.0, 1.0, np.nan, 1.0]))
    assert [change.feature for change in ranked(e)] == ["big", "word", "tiny", "small"]
    bars = [attrs["style"] for tag, attrs in Outline(as_html(e)).tags if attrs.get("class") in {"less", "more"}]
    assert bars == ["left:50%;width:50.0%", "left:50%;width:5.0%", "left:50%;width:1.0%"]
    assert "big|1000|1100|higher |+5.0 sd|" in Outline(as_html(e)).text
    assert "word|a|b|different|" in Outline(as_html(e)).text
    assert [change.feature for change in ranked(Explanation.from_json(e.to_json()))] == ["big", "word", "tiny", "small"]


def test_dates_and_durations_are_compared_in_days_and_midnight_is_left_out():
    before = pd.DataFrame({"day": pd.to_datetime(["2020-01-01"]), "wait": pd.to_timedelta(["1D"]), "n": [1.0]})
    after = pd.DataFrame({"day": pd.to_datetime(["2020-03-01"]), "wait": pd.to_timedelta(["3D"]), "n": [1.5]})
    e = replace(explanation(before, after, names=tuple(before.columns)), deviations=np.array([100.0, 1.0, 1.0]))
    assert [change.feature for change in ranked(e)] == ["wait", "day", "n"]
    assert "day 2020-03-01 instead of 2020-01-01" in e.sentence()


def test_json_without_standard_deviations_keeps_the_order_by_relative_change():
    e = table(1)
    content = json.loads(replace(e, deviations=np.array([1.0, 1000.0, 0.01])).to_json())
    del content["deviations"]
    assert [change.feature for change in ranked(Explanation.from_json(json.dumps(content)))] == ["weight", "ratio"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {},
            f"Had {BOTH}, the model would have said yes (75 %).",
        ),
        (
            {"original_class": np.array(["yes"], dtype=object)},
            f"Had {BOTH}, the model would still have said yes (75 % instead of 10 %).",
        ),
        (
            {"counterfactual_proba": np.array([[0.001, 0.999]])},
            f"Had {BOTH}, the model would have said yes (>99 %).",
        ),
        (
            {"counterfactual": np.array([[1.0, 10.0, 0.5]]), "counterfactual_class": np.array(["no"], dtype=object)},
            "The model says no already (25 %): nothing has to change.",
        ),
        (
            {"status": np.array(["not_found"], dtype=object), "message": np.array(["no point was yes"], dtype=object)},
            "The model says no; no counterfactual was found: no point was yes.",
        ),
        (
            {"status": np.array(["infeasible"], dtype=object), "message": np.array(["all fixed"], dtype=object)},
            "The model says no; there can be no counterfactual: all fixed.",
        ),
        (
            {"status": np.array(["error"], dtype=object), "message": np.array(["row 0 is text."], dtype=object)},
            "This row was not explained: row 0 is text.",
        ),
    ],
)
def test_every_line_has_a_sentence(fields, said):
    e = replace(table(1), **fields)
    assert e.sentence() == said
    assert said in " ".join(as_text(e, 70).split())
    assert said in Outline(as_html(e)).text.replace("\xa0", " ")


def test_a_sentence_names_categories_and_the_four_largest_of_many_changes():
    before = pd.DataFrame({"education": ["HS-grad"], **{f"c{j}": [0.0] for j in range(6)}})
    after = pd.DataFrame({"education": ["Masters"], **{f"c{j}": [float(j + 2)] for j in range(6)}})
    e = replace(explanation(before, after, names=tuple(before.columns)), deviations=np.array([np.nan, *[1.0] * 6]))
    assert e.sentence() == (
        "Had c5 been 7 instead of 0, c4 6 instead of 0, c3 5 instead of 0, c2 4 instead of 0, and 3 more changes, the "
        "model would have said yes (75 %)."
    )
    one = replace(e, counterfactual=before.assign(education="Masters"))
    assert one.sentence() == "Had education been Masters instead of HS-grad, the model would have said yes (75 %)."


def test_the_sentence_of_an_image_counts_its_values():
    e = explanation(np.zeros((1, 4, 5)), np.eye(4, 5)[None])
    assert e.sentence() == "Had 4 of 20 values been different, the model would have said yes (75 %)."


def test_without_standard_deviations_the_largest_relative_change_comes_first_and_words_before_numbers():
    before = pd.DataFrame({"big": [1000.0], "small": [0.1], "word": ["a"]})
    after = pd.DataFrame({"big": [1100.0], "small": [0.2], "word": ["b"]})
    e = explanation(before, after, names=("big", "small", "word"))
    assert [change.feature for change in ranked(e)] == ["word", "small", "big"]


def test_the_largest_change_of_an_image_is_the_largest_difference():
    before, after = np.array([[[0.0, 0.5]]]), np.array([[[0.01, 0.9]]])
    assert [change.feature for change in ranked(explanation(before, after))] == [(0, 1), (0, 0)]


def test_columns_line_up():
    assert aligned([("a", "1"), ("bbb", "22")], right=(1,)) == ["a     1", "bbb  22"]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (How("path", theta=3.2), "class 1 reached on the way to an example of it"),
        (How("latent", theta=1234.5), "class 1 reached on the way to an example of it"),
        (How("path", theta=np.inf), "class 1 reached at an example of it"),
        (
            How("path", theta=3.2, polished_from=12.34),
            "class 1 reached on the way to an example of it, then improved",
        ),
        (How("path", theta=3.2, polished_from=4.56), "class 1 reached on the way to an example of it"),
        (How("path", polished_from=np.inf), "class 1 reached on the way to an example of it with 3 changes"),
        (How("fista", step=123, c=10.0), "class 1 reached by gradient descent"),
        (How("fista", step=123, c=0.0), "class 1 reached by gradient descent"),
        (How("fista", step=123), "class 1 reached by gradient descent"),
        (
            How("fista", step=7, c=0.5, polished_from=9.0),
            "class 1 reached by gradient descent, then improved",
        ),
        (How("fallback"), FALLBACK),
        (
            How("fallback", polished_from=9.0),
            f"{FALLBACK}, then improved",
        ),
        (
            How("fallback", polished_from=np.inf),
            "class 1 reached on the way to a training row of that class with 3 changes",
        ),
        (How("beam"), "class 1 reached by changes added one by one"),
        (How("unchanged"), "already in the target, returned unchanged"),
        (How("coin toss"), "class 1 reached by coin toss"),
    ],
)
def test_how_a_counterfactual_was_found_in_words(how, words):
    assert how_in_words(how, label=1, n_changes=3, cost=4.56) == words


@pytest.mark.parametrize("how", [How("fallback"), How("fallback", polished_from=9.0), How("nearest")])
def test_a_training_row_is_moved_inside_the_rules_only_where_there_are_rules(how):
    said = [how_in_words(how, label=1, n_changes=3, cost=4.56, ruled=ruled) for ruled in (False, True)]
    assert ["moved inside the rules" in text for text in said] == [False, True]
    assert said[1].replace(", moved inside the rules", "") == said[0]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_of_the_text_is_wider_than_the_terminal(width):
    names = tuple(f"a feature with a rather long name {j}" for j in range(30))
    e = explanation(np.ones((3, 30)), np.full((3, 30), 2.0), names=names, message="m" * 300)
    for part in (e, e[0]):
        assert max(map(len, as_text(part, width).splitlines())) <= width


@pytest.mark.parametrize("width", [50, 80, 160])
def test_a_message_is_wrapped_and_never_cut(width):
    message = (
        "row 2 is NaN in column 'income', and the model does not accept missing values (ValueError: no). Fill it in."
    )
    e = explanation(np.ones((2, 3)), np.full((2, 3), np.nan), status="error", message=message)
    for part in (e, e[0]):
        text = as_text(part, width)
        assert message in " ".join(text.split())
        assert max(map(len, text.splitlines())) <= width


def test_the_text_says_per_row_the_classes_probability_and_largest_changes():
    lines = as_text(table(), 120).splitlines()
    assert lines[0] == "Explanation of 2 rows: 2 found"
    assert re.split(r"\s{2,}", lines[2].strip()) == [
        "0",
        "found",
        "no -> yes",
        "75 %",
        "2",
        "weight 10 -> 5, ratio 0.5 -> 0.55",
    ]


def test_in_a_narrow_terminal_the_changes_stand_below_their_row():
    lines = as_text(table(), 80).splitlines()
    assert lines[3].strip() == "weight 10 -> 5, ratio 0.5 -> 0.55"


def test_the_text_of_a_row_without_counterfactual_is_its_message():
    e = explanation(np.ones((2, 1)), np.full((2, 1), np.nan), status="not_found", message="no such row")
    assert "no such row" in as_text(e, 80)
    assert "nan" not in as_text(e, 80)
    assert "nan" not in as_text(e[0], 80)


def test_several_lines_of_a_row_are_one_row():
    lines = table(6)
    e = replace(lines, row=np.array([0, 0, 0, 1, 1, 1]))
    assert as_text(e, 100).splitlines()[0] == "Explanation of 2 rows in 6 lines: 6 found"


def test_a_report_counts_lines_as_lines_and_rows_as_rows(tmp_path):
    status = np.array(["found", "not_found", "not_found", "not_found"], dtype=object)
    e = replace(table(4), row=np.array([0, 0, 1, 1]), status=status)
    outline = Outline(write_report(e, tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "1 of 2|rows explained|1 of 4|lines found|3 of 4|lines not found|" in outline.text


def test_a_report_counts_rows_that_are_in_the_target_already_apart(tmp_path):
    lines = table(3)
    after = lines.counterfactual.copy()
    after[1] = lines.original[1]
    outline = Outline(write_report(replace(lines, counterfactual=after), tmp_path / "r.html").read_text("utf-8"))
    assert "2 of 3|rows explained|1|row already in the target|3|found|" in outline.text


def test_a_report_counts_one_as_one(tmp_path):
    e = replace(table(1), meta={"n_predict_calls": 1, "n_predicted_rows": 1})
    outline = Outline(write_report(e, tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "1 of 1|row explained|1|found|2|changes in a typical answer|" in outline.text


@pytest.mark.parametrize("status", ["not_found", "infeasible", "error"])
def test_rows_without_an_answer_are_not_counted_as_explained(status, tmp_path):
    e = replace(table(3), status=np.array(["found", "fallback", status], dtype=object))
    html = write_report(e, tmp_path / "r.html").read_text(encoding="utf-8")
    outline = Outline(html)
    assert "2 of 3|rows explained|1|found|1|fallback|" in outline.text
    assert f".badge.{status}" in html
    assert [line["to"] for line in data_of(html)["lines"]] == ["yes", "yes", None]


def test_many_rows_and_many_changes_are_cut_and_counted():
    assert as_text(table(50), 100).splitlines()[-1] == "... and 38 more"
    one = explanation(np.ones((1, 40)), np.zeros((1, 40)))
    lines = as_text(one, 100).splitlines()
    assert lines.index("  and 20 more") == lines.index(next(line for line in lines if "->  0" in line)) + 20
    assert "+" in as_text(explanation(np.ones((2, 40)), np.zeros((2, 40))), 100)


def test_repr_is_the_text_at_the_width_of_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert repr(table()) == str(table()) == as_text(table(), 100)
    assert repr(table()[:0]) == "Explanation of 0 rows"


def test_html_is_well_formed_and_loads_nothing_from_outside():
    for html in (as_html(table()), table()._repr_html_()):
        outline = Outline(html)
        assert not {"script", "link", "iframe"} & {tag for tag, _ in outline.tags}
        assert not re.search(r"https?:|url\(|@import", html)


def test_html_shows_changes_and_folds_the_unchanged_features_away():
    outline = Outline(as_html(table(1)))
    assert "weight|10|5|lower |−50 %|" in outline.text  # noqa: RUF001 a minus sign
    assert "1 unchanged feature|height|1|" in outline.text
    assert "10 % → |75 %|" in outline.text
    assert "details" in [tag for tag, _ in outline.tags]


def test_bars_are_half_as_wide_as_the_relative_change_and_point_its_way():
    styles = [
        attrs["style"] for tag, attrs in Outline(as_html(table(1))).tags if attrs.get("class") in {"less", "more"}
    ]
    assert styles == ["right:50%;width:25.0%", "left:50%;width:4.5%"]


def test_text_of_the_user_is_escaped_everywhere(tmp_path):
    before = pd.DataFrame({EVIL: [EVIL], "same": [EVIL]}, index=[EVIL])
    after = pd.DataFrame({EVIL: ["other"], "same": [EVIL]}, index=[EVIL])
    meta = {"adapter": EVIL, "config": {EVIL: EVIL}, EVIL: EVIL}
    e = explanation(before, after, names=tuple(before.columns), labels=(EVIL, EVIL + "2"), message=EVIL, meta=meta)
    html = write_report(e, tmp_path / "r.html", title=EVIL).read_text(encoding="utf-8")
    for text in (html, as_html(e)):
        assert "<script>alert" not in text
    assert Outline(as_html(e)).text.count(EVIL) >= 8
    line = data_of(html)["lines"][0]
    assert line["name"] == f"Row 0 (label {EVIL})"
    assert (line["from"], line["to"]) == (EVIL, EVIL + "2")
    assert [change["feature"] for change in line["changes"]] == [EVIL]


def test_notebooks_get_the_first_ten_rows_and_the_number_of_the_others():
    html = as_html(table(13))
    assert html.count("<section") == 10
    assert "and 3 more" in html


def test_images_are_shown_as_original_counterfactual_and_difference():
    before = np.zeros((1, 2, 3), dtype=np.float32)
    after = before.copy()
    after[0, 0, 1] = 1.0
    outline = Outline(as_html(explanation(before, after)))
    images = {attrs["alt"]: pixels(attrs) for tag, attrs in outline.tags if tag == "img"}
    assert images["original"][..., 0].tolist() == [[0, 0, 0], [0, 0, 0]]
    assert images["counterfactual"][..., 0].tolist() == [[0, 255, 0], [0, 0, 0]]
    assert images["difference"].shape == (2, 3, 3)
    assert images["difference"][0, 0].tolist() == [255, 255, 255]
    assert images["difference"][0, 1].tolist() != [255, 255, 255]
    assert "1 of 6 values changed" in outline.text


@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 1), (1, 4, 5), (4, 5, 3), (3, 4, 5)])
def test_grey_and_colour_images_work_with_channels_first_and_last(shape):
    outline = Outline(as_html(explanation(np.zeros((1, *shape)), np.ones((1, *shape)))))
    first = next(pixels(attrs) for tag, attrs in outline.tags if tag == "img")
    assert first.shape == (4, 5, 3 if 3 in shape else 1)


def test_an_image_without_counterfactual_shows_the_original_only():
    e = explanation(np.ones((1, 4, 4)), np.full((1, 4, 4), np.nan), status="not_found")
    assert [attrs["alt"] for tag, attrs in Outline(as_html(e)).tags if tag == "img"] == ["original"]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_an_image_that_could_not_be_read_is_shown_all_the_same(value):
    before = np.ones((1, 4, 4))
    before[0, 0] = value
    for original in (before, np.full((1, 4, 4), value)):
        e = explanation(original, np.full((1, 4, 4), np.nan), status="error")
        e = replace(e, original_class=np.array([None]))
        assert "not explained" in Outline(as_html(e)).text
        assert "? → ?" not in Outline(as_html(e)).text


def test_rows_that_are_no_pictures_are_listed_by_index():
    outline = Outline(as_html(explanation(np.zeros((1, 2, 2, 2, 2)), np.ones((1, 2, 2, 2, 2)))))
    assert "[0, 1, 0, 1]|0|1|" in outline.text
    assert "more change" not in outline.text
    outline = Outline(as_html(explanation(np.zeros((1, 2, 3, 2, 2)), np.ones((1, 2, 3, 2, 2)))))
    assert "4 more changes" in outline.text


def test_the_report_is_one_file_with_every_row_and_a_summary(tmp_path):
    path = write_report(table(13), tmp_path / "report.html", title="Loans")
    html = path.read_text(encoding="utf-8")
    outline = Outline(html)
    assert html.startswith("<!doctype html>")
    assert [line["row"] for line in data_of(html)["lines"]] == list(range(13))
    for words in (
        "Loans|",
        "13 of 13|rows explained|",
        "13|found|",
        "0.25|seconds|",
        "2|changes in a typical answer|",
        "100 %|of answers change “weight”, and as many “ratio”|",
    ):
        assert words in outline.text
    assert "config beta|0.1|config method|auto|versions numpy|2.4.6|" in outline.text


def test_only_a_column_that_changes_more_often_than_the_others_is_said_to():
    before, after = np.zeros((2, 6)), np.ones((2, 6))
    tied = explanation(before, after.copy(), names=tuple("abcdef"))
    assert "100 %|of answers change “a”, and as many each of 5 others|" in Outline(report_html(tied)).text
    after[1, 1:] = 0
    first = explanation(before, after, names=tuple("abcdef"))
    assert "100 %|of answers change “a”, more than any other|" in Outline(report_html(first)).text


def test_a_report_can_be_written_without_meta_data_and_without_rows(tmp_path):
    e = explanation(np.ones((1, 1)), np.zeros((1, 1)), meta={})
    image = explanation(np.zeros((1, 2, 2)), np.ones((1, 2, 2)), meta={})
    for name, some in (("a.html", e), ("b.html", e[:0]), ("c.html", image), ("d.html", image[:0])):
        html = write_report(some, tmp_path / name).read_text(encoding="utf-8")
        assert len(data_of(html)["lines"]) == len(some)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("e", "x.html"), "explanation is 'e'; expected an Explanation"),
        ((None, 5), "path is 5; expected the name of a file"),
        ((None, "x.html", 5), "title is 5; expected a text"),
    ],
)
def test_a_report_of_something_else_or_to_nowhere_is_refused(arguments, message):
    first = SimpleNamespace(meta={}) if arguments[0] is None else arguments[0]
    with pytest.raises(InputError, match=message):
        write_report(first, *arguments[1:])
