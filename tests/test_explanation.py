"""The record that `explain` returns: slices, changes, tables, JSON."""

import dataclasses
import datetime as dt
import json
import math
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pandas.testing import assert_frame_equal

from cfproto_plugin import CounterfactualExplainer
from cfproto_plugin.errors import CfprotoError, InputError, LineError
from cfproto_plugin.explanation import Change, Explanation
from cfproto_plugin.search.how import How
from cfproto_plugin.tables.geometry import changed

DOCS = Path(__file__).parent.parent / "docs"
SHARED = {"classes", "class_names", "feature_names", "deviations", "meta", "_source"}
LINE_FIELDS = [f.name for f in dataclasses.fields(Explanation) if f.name not in SHARED]


def explanation(original, counterfactual, **fields):
    """Every row found and changed from class 0 to class 1, unless told otherwise."""
    n = len(original)
    defaults = {
        "status": np.full(n, "found", dtype=object),
        "message": np.full(n, "class 1 reached", dtype=object),
        "original_class": np.zeros(n, dtype=int),
        "counterfactual_class": np.array([1] * n, dtype=object),
        "prototype_class": np.array([1] * n, dtype=object),
        "original_proba": np.tile([0.9, 0.1], (n, 1)),
        "counterfactual_proba": np.tile([0.2, 0.8], (n, 1)),
        "classes": np.array([0, 1]),
        "n_steps": np.arange(n),
        "seconds": np.full(n, 0.5),
        "row": np.arange(n),
        "feature_names": None,
        "meta": {"adapter": "callable", "seed": 0},
    }
    return Explanation(original, counterfactual, **{**defaults, **fields})


def three_rows():
    """Row 0 changes two cells, row 1 none, row 2 has no counterfactual."""
    before = np.array([[1.0, 2.0, 3.0], [4.0, np.nan, 6.0], [7.0, 8.0, 9.0]])
    after = np.array([[1.5, 2.0, 0.0], [4.0, np.nan, 6.0], [np.nan] * 3])
    return explanation(
        before,
        after,
        status=np.array(["found", "found", "not_found"], dtype=object),
        message=np.array(["", "", "no row of another class"], dtype=object),
        counterfactual_class=np.array([1, 1, None], dtype=object),
        counterfactual_proba=np.array([[0.2, 0.8], [0.3, 0.7], [np.nan, np.nan]]),
        distance=np.array([4.5, 0.0, np.nan]),
        margin=np.array([0.6, 0.4, np.nan]),
        how=np.array([How("path", 1, theta=3.2, polished_from=12.3), How("unchanged"), None], dtype=object),
    )


def people():
    before = pd.DataFrame(
        {
            "age": [39, 50],
            "work": pd.Categorical(["Private", "State"], categories=["Private", "State", "Self"], ordered=True),
            "name": ["ann", "bob"],
            "income": pd.array([1, 2], dtype="Int64"),
            "score": np.array([0.1, 0.2], dtype=np.float32),
            "member": [True, False],
        },
        index=pd.Index(["a", "b"], name="person"),
    )
    after = before.copy()
    after.loc["a", "work"] = "Self"
    after.loc["a", "income"] = 5
    after.loc["b", "name"] = "eve"
    return explanation(before, after, feature_names=tuple(before.columns))


def assert_identical(a, b):
    if isinstance(a, pd.DataFrame):
        assert_frame_equal(a, b, check_exact=True, check_column_type=True)
    elif isinstance(a, np.ndarray):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert [type(v) for v in a.ravel()] == [type(v) for v in b.ravel()]
        if any(isinstance(v, How) for v in a.ravel()):  # a NaN in a record does not equal itself
            a, b = a.astype(str), b.astype(str)
        np.testing.assert_array_equal(a, b, strict=True)
    else:
        assert type(a) is type(b)
        assert a == b


def assert_survives_json(e):
    text = e.to_json()
    json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    back = Explanation.from_json(text)
    for field in dataclasses.fields(Explanation):
        assert_identical(getattr(e, field.name), getattr(back, field.name))
    return back


def test_only_cells_that_differ_are_changes_and_rows_without_counterfactual_have_none():
    assert three_rows().changes() == [Change(0, "x0", 1.0, 1.5), Change(0, "x2", 3.0, 0.0)]


@given(
    hnp.arrays(float, (2, 3, 4), elements=st.sampled_from([0.0, -0.0, 1.0, np.nan, np.inf])),
    st.sampled_from([None, np.nan, pd.NA]),
)
def test_objects_and_floats_agree_on_what_changed(x, missing):
    before, after = x
    words = np.where(np.isnan(x), missing, x.astype(object))
    expected = changed(after, before)
    assert explanation(before, after).n_changes.tolist() == expected.sum(axis=1).tolist()
    assert explanation(*words).n_changes.tolist() == expected.sum(axis=1).tolist()
    frames = (pd.DataFrame(part).convert_dtypes() for part in words)
    assert explanation(*frames).n_changes.tolist() == expected.sum(axis=1).tolist()


def test_found_marks_the_lines_with_a_counterfactual():
    status = np.array(["found", "fallback", "not_found", "infeasible", "error"], dtype=object)
    e = explanation(np.zeros((5, 2)), np.ones((5, 2)), status=status)
    assert e.found.tolist() == [True, True, False, False, False]
    assert e.n_changes.tolist() == [2, 2, 0, 0, 0]
    assert e[e.found].row.tolist() == [0, 1]


def test_changes_of_an_image_and_of_no_rows_are_counted():
    e = explanation(np.zeros((2, 4, 4)), np.ones((2, 4, 4)))
    assert e.n_changes.tolist() == [16, 16]
    assert e[:0].n_changes.tolist() == []


def test_columns_without_a_name_are_numbered_and_pixels_have_none():
    assert three_rows().column_names == ("x0", "x1", "x2")
    assert people().column_names[:2] == ("age", "work")
    assert explanation(np.zeros((1, 4, 4)), np.ones((1, 4, 4))).column_names is None


def test_the_probability_of_the_new_class_is_missing_where_there_is_none():
    before, after = three_rows().new_class_proba
    np.testing.assert_array_equal(before, [0.1, 0.1, np.nan])
    np.testing.assert_array_equal(after, [0.8, 0.7, np.nan])


def test_raise_for_status_names_the_first_row_that_could_not_be_explained_and_why():
    status = np.array(["found", "error", "error"], dtype=object)
    message = np.array(["", "column 'age' holds 1e300", "the model raised"], dtype=object)
    e = explanation(np.zeros((3, 1)), np.ones((3, 1)), status=status, message=message, row=np.array([4, 7, 9]))
    with pytest.raises(InputError, match=r"row 7: column 'age' holds 1e300 \(1 more") as caught:
        e.raise_for_status()
    assert caught.value.row == 7


def test_raise_for_status_returns_the_explanation_if_no_row_has_an_error():
    e = three_rows()
    assert e.raise_for_status() is e


def test_arrays_cannot_be_written_to_and_the_given_ones_still_can():
    given = np.zeros((2, 3))
    e = explanation(given, np.ones((2, 3)))
    for part in (e, e[1:], Explanation.from_json(e.to_json())):
        for field in dataclasses.fields(part):
            value = getattr(part, field.name)
            assert not isinstance(value, np.ndarray) or not value.flags.writeable, field.name
    with pytest.raises(ValueError, match="read-only"):
        e.counterfactual[0, 0] = 5
    given[0, 0] = 5


def test_distance_margin_and_how_are_missing_unless_given():
    e = explanation(np.zeros((2, 1)), np.ones((2, 1)))
    assert np.isnan(e.distance).tolist() == np.isnan(e.margin).tolist() == [True, True]
    assert e.how.tolist() == [None, None]


def test_how_is_a_frozen_record_that_survives_a_pickle():
    how = pickle.loads(pickle.dumps(How("fista", "yes", step=3, c=10.0)))  # noqa: S301 our own
    assert (how.method, how.prototype_class, how.step, how.c, math.isnan(how.theta)) == ("fista", "yes", 3, 10, True)
    with pytest.raises(dataclasses.FrozenInstanceError):
        how.step = 4


def test_a_value_that_becomes_missing_is_a_change():
    e = explanation(np.array([[1.0, np.nan]]), np.array([[np.nan, 2.0]]))
    assert [change.feature for change in e.changes()] == ["x0", "x1"]


def test_the_smallest_step_of_a_float_is_a_change():
    before = np.array([[1.0]], dtype=np.float32)
    assert len(explanation(before, np.nextafter(before, np.float32(2))).changes()) == 1


def test_changes_of_an_image_name_the_index_of_the_pixel():
    before = np.zeros((2, 3, 3, 1), dtype=np.float32)
    after = before.copy()
    after[1, 2, 0, 0] = 0.5
    assert explanation(before, after).changes() == [Change(1, (2, 0, 0), 0.0, 0.5)]


def test_changes_of_a_frame_compare_words_categories_and_nullable_numbers():
    assert people().changes() == [
        Change(0, "work", "Private", "Self"),
        Change(0, "income", 1, 5),
        Change(1, "name", "bob", "eve"),
    ]


def test_nullable_columns_of_rows_without_counterfactual_are_no_changes():
    before = pd.DataFrame({"n": [1, 2], "flag": [True, False]})
    after = pd.DataFrame({"n": pd.array([1, None], dtype="Int64"), "flag": pd.array([False, None], dtype="boolean")})
    e = explanation(before, after, status=np.array(["found", "infeasible"]), feature_names=("n", "flag"))
    assert e.changes() == [Change(0, "flag", True, False)]


def test_columns_of_the_same_name_are_told_apart():
    before = pd.DataFrame([[1.0, 2.0]], columns=["a", "a"])
    after = pd.DataFrame([[1.0, 3.0]], columns=["a", "a"])
    e = explanation(before, after, feature_names=("a", "a"))
    assert e.changes() == [Change(0, "a", 2.0, 3.0)]
    assert e.to_frame().iloc[0, -4:].tolist() == [1.0, 1.0, 2.0, 3.0]


def test_delta_of_unsigned_integers_does_not_wrap_around():
    e = explanation(np.array([[3]], dtype=np.uint8), np.array([[1]], dtype=np.uint8))
    assert e.delta.tolist() == [[-2]]


def test_delta_keeps_float32_and_is_missing_where_there_is_no_counterfactual():
    e = explanation(np.ones((2, 1), np.float32), np.array([[3], [np.nan]], np.float32))
    assert e.delta.dtype == np.float32
    np.testing.assert_array_equal(e.delta, np.array([[2], [np.nan]], np.float32))


def test_delta_of_a_frame_has_its_number_columns_only():
    delta = people().delta
    assert list(delta.columns) == ["age", "income", "score"]
    assert delta.loc["a", "income"] == 4


def test_delta_of_an_object_array_is_missing_where_a_cell_is_no_number():
    e = explanation(np.array([[1, "a"]], dtype=object), np.array([[4, "b"]], dtype=object))
    np.testing.assert_array_equal(e.delta, [[3.0, np.nan]])


@pytest.mark.parametrize(
    ("index", "rows"),
    [
        (1, [1]),
        (-1, [2]),
        (np.int64(0), [0]),
        (slice(1, None), [1, 2]),
        ([2, 0], [2, 0]),
        (np.array([True, False, True]), [0, 2]),
        ([], []),
        (pd.Series([False, True, False]), [1]),
    ],
)
def test_slices_are_explanations_of_the_chosen_rows(index, rows):
    part = three_rows()[index]
    assert type(part) is Explanation
    assert part.row.tolist() == rows
    assert [len(getattr(part, name)) for name in LINE_FIELDS] == [len(rows)] * len(LINE_FIELDS)
    np.testing.assert_array_equal(part.original, three_rows().original[rows])


def test_a_slice_of_a_frame_keeps_index_and_dtypes():
    e = people()
    assert_frame_equal(e[1].counterfactual, e.counterfactual.iloc[[1]])


def test_changes_of_a_slice_keep_the_number_of_their_row():
    assert people()[1].changes() == [Change(1, "name", "bob", "eve")]


@pytest.mark.parametrize("index", [3, -4, [0, 3], np.array([True, False]), "x", (0, 1)])
def test_an_index_that_does_not_exist_is_an_index_error(index):
    with pytest.raises(IndexError):
        three_rows()[index]


def test_iterating_gives_explanations_of_one_row_each():
    assert [(len(line), line.row[0]) for line in three_rows()] == [(1, 0), (1, 1), (1, 2)]


def test_comparing_explanations_does_not_blow_up():
    e = three_rows()
    assert e == e  # noqa: PLR0124 equality is identity
    assert e != three_rows()
    assert len({e, e}) == 1


def test_an_explanation_cannot_be_altered():
    with pytest.raises(dataclasses.FrozenInstanceError):
        three_rows().status = None


def test_fields_of_different_length_are_refused_by_name():
    with pytest.raises(InputError, match="'seconds': 1"):
        explanation(np.zeros((2, 1)), np.ones((2, 1)), seconds=np.zeros(1))


def test_to_frame_has_one_line_per_row_with_every_feature_before_and_after():
    frame = people().to_frame()
    assert frame.index.equals(pd.Index(["a", "b"], name="person"))
    assert frame.loc["a", ["row", "status", "original_class", "counterfactual_class"]].tolist() == [0, "found", 0, 1]
    assert frame.loc["a", ["proba_before", "proba_after", "n_changes"]].tolist() == [0.1, 0.8, 2]
    assert frame.loc["a", ["work_before", "work_after"]].tolist() == ["Private", "Self"]
    assert list(frame.columns[7:11]) == ["distance", "typicality", "stability", "message"]
    assert list(frame.columns[11:14]) == ["age_before", "age_after", "work_before"]
    assert frame["score_after"].dtype == np.float32


def test_to_frame_shows_rows_without_counterfactual_as_missing():
    frame = three_rows().to_frame()
    assert frame.loc[2, "status"] == "not_found"
    assert frame.loc[2, ["counterfactual_class", "proba_before", "proba_after", "x0_after"]].isna().all()
    assert frame["n_changes"].tolist() == [2, 0, 0]


def test_to_frame_of_images_is_the_summary_without_pixels():
    frame = explanation(np.zeros((2, 4, 4)), np.ones((2, 4, 4))).to_frame()
    assert frame.shape == (2, 11)
    assert frame["n_changes"].tolist() == [16, 16]


def test_changes_frame_has_the_same_columns_when_nothing_changed():
    empty = explanation(np.ones((1, 2)), np.ones((1, 2))).changes_frame()
    columns = ["row", "feature", "before", "after", "needed_for"]
    assert list(empty.columns) == list(three_rows().changes_frame().columns) == columns
    assert (len(empty), len(three_rows().changes_frame())) == (0, 2)


def test_frames_without_pandas_say_how_to_install_it():
    code = (
        "import sys; sys.modules['pandas'] = None\n"
        "import numpy as np\n"
        "from cfproto_plugin.explanation import Explanation\n"
        "a, x = np.zeros(1), np.zeros((1, 1))\n"
        "e = Explanation(x, x + 1, np.array(['found']), a, a, a, a, x, x, a, a, a, np.array([0]), None, {})\n"
        "print(e, e._repr_html_(), e.changes(), Explanation.from_json(e.to_json()))\n"
        "e.to_frame()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].endswith("pip install 'cfproto-plugin[pandas]'")
    assert "Change(row=0, feature='x0', before=0.0, after=1.0, needed_for='')" in done.stdout


def test_json_keeps_arrays_with_missing_rows():
    assert_survives_json(three_rows())


@pytest.mark.parametrize("label", [np.int64(3), "yes", True, None])
def test_json_keeps_how_with_labels_and_infinities(label):
    how = np.array([How("latent", label, theta=math.inf, step=3, polished_from=math.inf)], dtype=object)
    back = assert_survives_json(explanation(np.zeros((1, 1)), np.ones((1, 1)), how=how))
    assert type(back.how[0].prototype_class) is type(label)


def test_json_of_an_older_version_is_read_with_the_newer_fields_missing():
    content = json.loads(three_rows().to_json())
    for name in ("distance", "margin", "how"):
        del content[name]
    back = Explanation.from_json(json.dumps(content))
    assert np.isnan(back.distance).all()
    assert np.isnan(back.margin).all()
    assert back.how.tolist() == [None] * 3
    assert back.changes() == three_rows().changes()


def test_json_keeps_frames_with_dtypes_index_and_column_order():
    assert_survives_json(people())


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(
        st.sampled_from(["float16", "float32", "float64", ">f8", "int8", "uint64", "bool", "<U3", "datetime64[ms]"]),
        hnp.array_shapes(min_dims=2, max_dims=4, max_side=3),
    )
)
def test_json_keeps_every_number_dtype_and_shape_exactly(x):
    back = assert_survives_json(explanation(x, x))
    if x.dtype.kind == "f":
        numbers = ~np.isnan(x)
        np.testing.assert_array_equal(np.signbit(back.original[numbers]), np.signbit(x[numbers]))


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array([False, True]),
        np.array([0.5, 1.5]),
        np.array(["no", 1], dtype=object),
        np.array([np.int64(1), np.str_("b")], dtype=object),
        np.array([True, None], dtype=object),
        np.array([(1, 2), (3, 4), None], dtype=object)[:2],
    ],
)
def test_json_keeps_labels_of_any_plain_type(labels):
    assert_survives_json(explanation(np.zeros((2, 1)), np.ones((2, 1)), original_class=labels, classes=labels))


def test_json_keeps_the_meta_data():
    meta = {
        "config": {"eps": (0.1, np.inf), "k": None, "weights": np.array([1.0, np.nan], np.float32)},
        "seed": np.int64(3),
        "by_label": {0: "a", 1: "b"},
        "trap": {"$type": "array"},
        "limits": [float("-inf"), 10**30, True],
    }
    back = assert_survives_json(explanation(np.zeros((1, 1)), np.ones((1, 1)), meta={"x": 1}))
    back = Explanation.from_json(dataclasses.replace(back, meta=meta).to_json())
    weights = back.meta["config"].pop("weights")
    assert_identical(meta["config"].pop("weights"), weights)
    assert back.meta == meta
    assert type(back.meta["seed"]) is np.int64


@pytest.mark.parametrize(
    "index",
    [
        pd.RangeIndex(5, 9, 2, name="n"),
        pd.Index([3, 1]),
        pd.Index(["x", None], dtype=object),
        pd.Index([1.5, np.nan]),
        pd.DatetimeIndex(["2024-01-01", "2024-07-01"], tz="Europe/Berlin"),
        pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["letter", None]),
        pd.CategoricalIndex(["u", "v"]),
    ],
)
def test_json_keeps_the_index(index):
    frame = pd.DataFrame({"x": [1.0, 2.0]}, index=index)
    assert_survives_json(explanation(frame, frame + 1))


def test_json_keeps_columns_of_every_usual_dtype():
    when = dt.datetime(2024, 5, 1, 12, 30, tzinfo=dt.UTC)
    frame = pd.DataFrame(
        {
            "objects": pd.Series([when, None], dtype=object),
            "words": pd.Series(["a", None], dtype="string"),
            "text": pd.Series(["a", None]),
            "flags": pd.array([True, None], dtype="boolean"),
            "floats": pd.array([1.5, None], dtype="Float32"),
            "small": np.array([1, 2], dtype=np.int8),
            "dates": pd.to_datetime(["2024-01-01", None]),
            "missing category": pd.Categorical(["a", None]),
            7: [np.inf, np.nan],
        }
    )
    assert_survives_json(explanation(frame, frame))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[1]", "format None"),
        ('{"format": "cfproto-explanation/99"}', "cfproto-explanation/99.*cfproto-explanation/1"),
        ('{"format": "cfproto-explanation/1", "original": 1}', "damaged"),
        (None, "not JSON"),
    ],
)
def test_a_wrong_text_is_an_input_error_that_says_what_was_expected(text, complaint):
    with pytest.raises(InputError, match=complaint):
        Explanation.from_json(text)


def test_a_damaged_text_is_an_input_error():
    content = json.loads(three_rows().to_json())
    for field in ("row", "original", "meta"):
        with pytest.raises(CfprotoError):
            Explanation.from_json(json.dumps({k: v for k, v in content.items() if k != field}))
        with pytest.raises(CfprotoError):
            Explanation.from_json(json.dumps({**content, field: {"$type": "no such type"}}))


@pytest.mark.parametrize(("value", "name"), [(object(), "object"), (np.longdouble(1), "longdouble|float128")])
def test_what_json_cannot_hold_is_refused_by_the_name_of_its_place(value, name):
    e = explanation(np.zeros((1, 1)), np.ones((1, 1)), meta={"config": {"eps": value}})
    with pytest.raises(InputError, match=rf"meta\['config'\]\['eps'\].*({name})"):
        e.to_json()


def test_a_column_that_json_cannot_hold_is_named():
    frame = pd.DataFrame({"fine": [1], "odd": [object()]})
    with pytest.raises(InputError, match=r"original\['odd'\]") as caught:
        explanation(frame, frame).to_json()
    assert caught.value.column == "odd"


@pytest.mark.parametrize("page", ["index.md", "explanation.md"])
def test_the_code_of_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    exec("\n".join(blocks), {})  # noqa: S102 our own documentation


@pytest.mark.parametrize("index", [None, 1.5, "a", True, (0, 1), ..., [[1]], [1.0], {1}])
def test_what_stands_for_no_lines_is_refused_in_words(index):
    with pytest.raises(IndexError, match=r"stands for no lines; expected a whole number, a slice, .* mask of 1 truth"):
        explanation(np.ones((1, 1)), np.ones((1, 1)))[index]


@pytest.mark.parametrize("index", [100, -2, [0, 100], np.int64(1)])
def test_lines_that_are_not_there_are_refused_in_words(index):
    with pytest.raises(IndexError, match=r"there is no line -?\d+; expected -1 to 0"):
        explanation(np.ones((1, 1)), np.ones((1, 1)))[index]


@pytest.mark.parametrize("index", [100, "a"])
def test_errors_of_lines_are_ours_and_those_of_indexing(index):
    e = explanation(np.ones((1, 1)), np.ones((1, 1)))
    for ask in (e.__getitem__, e.sentence):
        with pytest.raises(LineError) as caught:
            ask(index)
        assert isinstance(caught.value, CfprotoError)
        assert isinstance(caught.value, IndexError)


def test_a_mask_of_another_length_is_refused_in_words():
    with pytest.raises(IndexError, match="the mask has 2 truth values; expected 1, one for each line"):
        explanation(np.ones((1, 1)), np.ones((1, 1)))[[True, False]]


def test_lines_are_chosen_by_numbers_slices_lists_and_masks():
    e = explanation(np.arange(3.0)[:, None], np.arange(3.0)[:, None])
    for index in (
        1,
        np.int8(1),
        -2,
        np.array(1),
        slice(1, 2),
        [1],
        np.array([False, True, False]),
        [False, True, False],
    ):
        assert e[index].original.tolist() == [[1.0]]
    assert len(e[[]]) == 0


def test_diversity_is_the_share_of_changed_columns_not_in_common_with_the_other_answers_of_the_row():
    after = np.array([[3.0, 0, 0], [0, 3, 0], [0, 3, 3], [3, 3, 0], [3, 4, 0], [np.nan] * 3])
    status = np.array(["found"] * 5 + ["not_found"], dtype=object)
    e = explanation(np.zeros((6, 3)), after, row=np.repeat([0, 1], 3), status=status)
    np.testing.assert_allclose(e.diversity, [1, 0.75, 0.75, 0, 0, np.nan])
    assert np.isnan(e[0].diversity).all(), "of one line there is no other"
    assert np.isnan(e[:0].diversity).all()


def test_the_label_of_a_row_stands_beside_its_position_where_they_differ():
    x = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"], index=range(500, 560))
    explainer = CounterfactualExplainer(lambda rows: np.c_[rows["a"] < 0, rows["a"] >= 0].astype(float)).fit(x)
    e = explainer.explain(x.iloc[[32, 7]])
    assert e.index_labels == ("532", "507")
    assert "0 (532)" in repr(e)
    assert "row 1 (507): " in repr(e[1])
    frame = e.changes_frame()
    assert frame.columns.tolist()[:3] == ["row", "index", "feature"]
    assert set(zip(frame["row"], frame["index"], strict=True)) == {(0, 532), (1, 507)}
    with pytest.raises(LineError, match=r"no line 507; .* label 507 in the index is line 1: write e\[1\]"):
        e[507]
    usual = explainer.explain(x.reset_index(drop=True)[:3])
    assert usual.index_labels == ()
    assert "(" not in repr(usual)
    assert "index" not in usual.changes_frame()
