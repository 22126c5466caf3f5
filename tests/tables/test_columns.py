from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.errors import ConfigError, InputError
from cfproto_plugin.tables.cells import cast
from cfproto_plugin.tables.columns import Columns
from cfproto_plugin.tables.rules import Rules

SIZES = pd.CategoricalDtype(["small", "medium", "large", "never seen"], ordered=True)


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "age": np.array([30, 40, 50, 60], dtype=np.int8),
            "income": [1.5, 2.5, 3.5, 4.5],
            "ratio": np.array([0.1, 0.2, 0.3, 0.4], dtype=np.float32),
            "job": ["cook", "baker", "cook", "tailor"],
            "size": pd.Categorical(["small", "large", "medium", "small"], dtype=SIZES),
            "colour": pd.Categorical(["red", "blue", "red", "blue"], categories=["red", "blue", "green"]),
            "member": [True, False, True, True],
            "count": pd.array([1, 2, 3, 4], dtype="Int32"),
            "note": pd.array(["x", "y", "x", "y"], dtype=object),
        },
        index=["p", "q", "r", "s"],
    )


def learn(data, features=None, *, accepts_frames=True):
    columns, given = Columns.learn(data, features or Features(), accepts_frames=accepts_frames)
    return columns, given.table.copy()


def read(columns, x):
    """The table of rows that can all be read; else the first reason."""
    given = columns.given(x)
    for error in given.errors.values():
        raise error
    return given.table


def to_user(columns, table, x):
    """Rows x with the cells of a table; a line of NaN is a row without an answer."""
    given = columns.given(x)
    return given.answers(table, np.arange(len(given)), ~np.isnan(table).all(axis=1))


def levels(columns, name):
    return list(columns.attributes[columns.find(name, "test")].levels)


def test_categories_are_recognised_by_dtype_in_their_order_and_without_unused_ones(frame):
    columns, table = learn(frame)
    assert [a.name for a in columns.categories.values()] == ["job", "size", "colour", "member", "note"]
    assert levels(columns, "job") == ["baker", "cook", "tailor"]
    assert levels(columns, "size") == ["small", "medium", "large"]
    assert levels(columns, "colour") == ["red", "blue"]
    assert levels(columns, "member") == [False, True]
    assert [a.name for a in columns.attributes if a.integer] == ["age", "count"]
    assert table[:, columns.find("job", "")].tolist() == [1, 0, 1, 2]
    assert table[:, columns.find("count", "")].tolist() == [1, 2, 3, 4]


def test_a_frame_makes_the_round_trip_with_columns_dtypes_and_index(frame):
    columns, table = learn(frame)
    pd.testing.assert_frame_equal(to_user(columns, table, frame), frame)
    pd.testing.assert_frame_equal(columns.to_model(table), frame.reset_index(drop=True))
    shuffled = frame[frame.columns[::-1]]
    assert np.array_equal(read(columns, shuffled), table)
    pd.testing.assert_frame_equal(to_user(columns, table, shuffled), shuffled)


def test_rows_without_a_counterfactual_turn_integers_and_booleans_into_nullable_types(frame):
    columns, table = learn(frame)
    table[1] = np.nan
    made = to_user(columns, table, frame)
    assert made.iloc[1].isna().all()
    kinds = {name: str(dtype) for name, dtype in made.dtypes.items()}
    assert kinds["age"] == "Int8"
    assert kinds["count"] == "Int32"
    assert kinds["member"] == "boolean"
    assert made["size"].dtype == SIZES
    assert made["ratio"].dtype == np.float32
    there = made.iloc[[0, 2, 3]].astype(frame.dtypes.to_dict())
    pd.testing.assert_frame_equal(there, frame.iloc[[0, 2, 3]])


def test_a_value_that_the_dtype_of_x_cannot_hold_is_returned_as_it_is():
    columns, _ = learn(pd.DataFrame({"a": [0.5, 9.5], "b": [1.0, 2.0], "c": ["u", "v"]}))
    x = pd.DataFrame({"a": [3], "b": np.array([1], dtype=np.float32), "c": pd.Categorical(["u"])})
    made = to_user(columns, np.array([[3.7, 1.1, 1.0]]), x)
    assert made.to_numpy().tolist() == [[3.7, 1.1, "v"]]
    assert made["c"].dtype == pd.CategoricalDtype(["u", "v"])
    again = to_user(columns, np.array([[4.0, 1.5, 0.0]]), x)
    pd.testing.assert_frame_equal(again, x.assign(a=4, b=np.array([1.5], dtype=np.float32)))


def test_integers_too_large_for_the_dtype_do_not_wrap_around():
    small = pd.DataFrame({"a": [300.0]})
    assert cast(small, {"a": np.dtype(np.int8)})["a"].tolist() == [300]


def test_a_model_is_given_float_with_nan_not_nullable_integers_for_a_missing_value():
    columns, _ = learn(pd.DataFrame({"a": [1, 2, 3]}))
    table = read(columns, pd.DataFrame({"a": [1.0, np.nan]}))
    assert columns.to_model(table)["a"].dtype == np.float64
    assert np.isnan(columns.to_model(table)["a"][1])


def test_one_row_of_a_mixed_frame_may_come_as_a_series(frame):
    columns, table = learn(frame)
    row = frame.iloc[2]
    assert np.array_equal(read(columns, row), table[[2]])
    assert to_user(columns, table[[2]], row).index.tolist() == ["r"]


def test_strings_and_categories_stand_for_one_another_and_each_keeps_its_type():
    columns, table = learn(pd.DataFrame({"a": [1.0, 2.0], "c": pd.Categorical(["u", "v"])}))
    strings = pd.DataFrame({"a": [1.0, 2.0], "c": ["u", "v"]})
    assert np.array_equal(read(columns, strings), table)
    pd.testing.assert_frame_equal(to_user(columns, table, strings), strings)


def test_rows_of_a_frame_may_come_as_an_object_array(frame):
    columns, table = learn(frame)
    assert np.allclose(read(columns, frame.to_numpy(dtype=object)), table)
    assert np.allclose(read(columns, frame.iloc[0].tolist()), table[[0]])


def test_ordinal_arrays_are_categories_where_features_say_so():
    data = np.array([[7, 0.5], [3, 1.5], [7, 2.5], [9, 3.5]])
    columns, table = learn(data, Features(categorical=(0,)))
    assert levels(columns, 0) == [3, 7, 9]
    assert table[:, 0].tolist() == [1, 0, 1, 2]
    assert np.array_equal(to_user(columns, table, data), data)
    assert to_user(columns, table, data).dtype == np.float64
    new = columns.given(np.array([8, 0.5]))
    assert new.table.tolist() == [[3, 0.5]]
    assert new.columns.attributes[0].levels.tolist() == [3, 7, 9, 8]
    assert new.columns.attributes[0].unknown == 1


def test_float32_stays_float32_beside_categories():
    data = np.array([[0, 0.5], [1, 1.5]], dtype=np.float32)
    columns, table = learn(data, Features(categorical=(0,)))
    assert table.dtype == np.float32
    assert columns.to_model(table).dtype == np.float32


def test_object_arrays_keep_strings_and_numbers():
    data = np.array([["b", 1.5], ["a", 2.5], ["b", 3.5]], dtype=object)
    columns, table = learn(data, Features(categorical=(0,)))
    assert table.tolist() == [[1, 1.5], [0, 2.5], [1, 3.5]]
    assert columns.to_model(table).tolist() == data.tolist()
    table[1] = np.nan
    gone = to_user(columns, table, data)
    assert gone[0].tolist() == ["b", 1.5]
    assert all(value != value for value in gone[1])  # noqa: PLR0124 NaN, not the string
    with pytest.raises(InputError, match=r"row 0 holds 'b' in column 0.*not a number.*Features\(categorical"):
        learn(data)


@pytest.mark.parametrize("data", [[["a", 1], ["b", 2]], np.array([["a", "1"], ["b", "2"]])])
def test_lists_and_string_arrays_hold_numbers_too(data):
    columns, table = learn(data, Features(categorical=(0,)))
    assert table.tolist() == [[0, 1], [1, 2]]
    assert to_user(columns, np.full((2, 2), np.nan), data)[0, 0] != "nan"


def test_one_hot_columns_are_one_column_of_the_table_also_with_a_dropped_level():
    full = np.array([[1, 0, 0, 5.0], [0, 1, 0, 6.0], [0, 0, 1, 7.0]])
    columns, table = learn(full, Features(one_hot={"c": (0, 1, 2)}))
    assert table.tolist() == [[0, 5], [1, 6], [2, 7]]
    assert np.array_equal(columns.to_model(table), full)
    assert columns.to_model(table).dtype == np.float64
    dropped, same = learn(full[:, 1:], Features(one_hot={"c": (0, 1)}))
    assert np.array_equal(same, table)
    assert np.array_equal(to_user(dropped, table[::-1], full[:, 1:]), full[::-1, 1:])
    assert dropped.attributes[0].levels.tolist() == [None, 0, 1]
    single, two = learn(full[:2, 1:2], Features(one_hot={"c": (0,)}))
    assert two.tolist() == [[0], [1]]
    assert np.array_equal(to_user(single, two[::-1], full[:2, 1:2]), full[1::-1, 1:2])


def test_one_hot_columns_that_hold_no_or_two_categories_are_refused():
    columns, _ = learn(np.eye(3), Features(one_hot={"c": (0, 1, 2)}))
    with pytest.raises(InputError, match=r"row 1 holds .* in the one-hot columns 'c'; expected exactly one 1"):
        read(columns, np.array([[0, 0, 1], [0, 0, 0]]))
    with pytest.raises(InputError, match="exactly one 1"):
        read(columns, np.array([0, 1, 1]))
    dropped, _ = learn(np.array([[0, 0], [1, 0], [0, 1]]), Features(one_hot={"c": (0, 1)}))
    with pytest.raises(InputError, match=r"at most one 1"):
        read(dropped, np.array([0.5, 0]))


def test_one_hot_columns_of_a_frame_keep_their_dtypes():
    frame = pd.get_dummies(pd.DataFrame({"c": ["u", "v", "w"], "a": [1.0, 2.0, 3.0]}), drop_first=True)
    columns, table = learn(frame, Features(one_hot={"c": ("c_v", "c_w")}))
    assert table.tolist() == [[1, 0], [2, 1], [3, 2]]
    pd.testing.assert_frame_equal(to_user(columns, table, frame), frame)


def test_images_are_flat_rows_and_come_back_in_their_shape():
    images = np.arange(24, dtype=np.uint8).reshape(2, 2, 3, 2)
    columns, table = learn(images)
    assert table.shape == (2, 12)
    assert np.array_equal(columns.to_model(table), images)
    assert read(columns, images[0]).shape == (1, 12)
    with pytest.raises(InputError, match=r"expected rows of shape \(2, 3, 2\)"):
        read(columns, images[:, :, :2])


def test_missing_and_extra_columns_are_named(frame):
    columns, _ = learn(frame)
    with pytest.raises(InputError, match=r"no column 'income'.*If 'incone' is meant, rename it to 'income'"):
        read(columns, frame.rename(columns={"income": "incone"}))
    with pytest.raises(InputError, match="a column 'extra' that the training data did not have"):
        read(columns, frame.assign(extra=1))
    with pytest.raises(InputError, match="expected 9 columns"):
        read(columns, frame.to_numpy(dtype=object)[:, :4])
    with pytest.raises(InputError, match="no rows"):
        read(columns, frame.iloc[:0])


def test_two_columns_of_one_name_are_refused(frame):
    twice = frame.rename(columns={"income": "age"})
    with pytest.raises(InputError, match="the training data has two columns 'age'"):
        learn(twice)
    with pytest.raises(InputError, match="x has two columns 'age'"):
        read(learn(frame)[0], pd.concat([frame, frame[["age"]]], axis=1))


def test_an_unknown_category_follows_the_known_ones_and_is_no_choice(frame):
    columns, _ = learn(frame)
    given = columns.given(frame.assign(job=["cook", "bakr", "cook", "cook"]))
    job = columns.find("job", "")
    assert given.table[:, job].tolist() == [1, 3, 1, 1]
    assert list(given.columns.attributes[job].levels) == ["baker", "cook", "tailor", "bakr"]
    assert Rules.of(Features(), columns, given.table).on(given.columns).choices(job).tolist() == [True] * 3 + [False]
    unused = columns.given(frame.assign(size=pd.Categorical(["never seen"] * 4, dtype=SIZES)))
    assert unused.columns.attributes[columns.find("size", "")].unknown == 1


@pytest.mark.parametrize("other", [{}, {"c": ["u", "v"]}])
def test_strings_in_a_column_of_numbers_are_refused(other):
    columns, _ = learn(pd.DataFrame({"a": [1.0, 2.0], **other}))
    with pytest.raises(InputError, match=r"row 0 holds 'one' in column 'a', which is not a number"):
        read(columns, pd.DataFrame({"a": ["one", "2"], **other}))


@pytest.mark.parametrize("other", [{}, {"c": ["u", "v", "u"]}])
@pytest.mark.parametrize("cells", [["7", "11.5", "-1e3"], ["7", None, " 8"]])
def test_numbers_that_came_as_text_are_refused_once_for_the_column(other, cells):
    columns, _ = learn(pd.DataFrame({"G2": [1.0, 2.0, 3.0], **other}))
    expected = r"^column 'G2' holds text that reads as numbers, such as '7'; .* by pd\.to_numeric$"
    with pytest.raises(InputError, match=expected) as raised:
        columns.given(pd.DataFrame({"G2": cells, **other}))
    assert (raised.value.row, raised.value.column) == (None, "G2")
    assert "categorical" not in str(raised.value)


def test_a_single_number_that_came_as_text_is_an_error_of_its_row():
    columns, _ = learn(pd.DataFrame({"G2": [1.0, 2.0]}))
    errors = columns.given(pd.DataFrame({"G2": [1.0, "7"]}, dtype=object)).errors
    assert list(errors) == [1]
    assert str(errors[1]) == "row 1 holds '7' in column 'G2', text that reads as a number: convert it by pd.to_numeric"


def test_complex_numbers_and_arrays_of_dates_are_refused():
    with pytest.raises(InputError, match=r"column 'when' holds complex128; turn it into numbers or categories first$"):
        learn(pd.DataFrame({"when": [1j, 2j]}))
    with pytest.raises(InputError, match=r"the array holds datetime64\[D\].*or make it a column of a DataFrame"):
        learn(np.array([["2020-01-01"], ["2020-01-02"]], dtype="M8[D]"))


def test_values_without_an_order_or_a_hash_are_refused():
    with pytest.raises(InputError, match="column 'a' holds values that cannot be ordered"):
        learn(pd.DataFrame({"a": pd.array([1, "x"], dtype=object)}))
    columns, _ = learn(pd.DataFrame({"a": pd.array(["x", "y"], dtype=object)}))
    with pytest.raises(InputError, match=r"row 0 holds \[1\]"):
        read(columns, pd.DataFrame({"a": pd.array([[1]], dtype=object)}))


@pytest.mark.parametrize(
    "cells",
    [
        pd.array(["u", None, "v"], dtype="str"),
        pd.array(["u", None, "v"], dtype="string"),
        pd.array(["u", np.nan, "v"], dtype=object),
        pd.Categorical(["u", None, "v"]),
        pd.array([True, None, False], dtype="boolean"),
    ],
)
def test_a_missing_category_seen_in_training_is_one_of_its_own(cells):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "c": cells})
    columns, table = learn(frame)
    assert table[1, 1] == 2
    pd.testing.assert_frame_equal(to_user(columns, table, frame), frame)
    assert columns.code(1, None, "test") == 2
    without, _ = learn(frame.iloc[[0, 2]])
    given = without.given(frame)
    assert given.columns.attributes[1].unknown == 1
    pd.testing.assert_frame_equal(given.original(np.arange(3)), frame)


@pytest.mark.parametrize("data", [[[1.0], [np.nan], [0.0]], [["b"], [None], ["a"]], [["b"], [np.nan], ["a"]]])
def test_a_missing_category_of_an_array_is_one_of_its_own(data):
    array = np.array(data, dtype=object if isinstance(data[0][0], str) else float)
    columns, table = learn(array, Features(categorical=(0,)))
    assert table.ravel().tolist() == [1, 2, 0]
    back = to_user(columns, table, array)
    assert back[[0, 2]].tolist() == array[[0, 2]].tolist()
    assert back[1, 0] is None or np.isnan(back[1, 0])


def test_infinite_numbers_and_training_data_without_rows_are_refused(frame):
    columns, _ = learn(frame)
    with pytest.raises(InputError, match="row 2 holds inf in column 'income'"):
        read(columns, frame.assign(income=[1, 2, np.inf, 3]))
    with pytest.raises(InputError, match="empty"):
        learn(frame.iloc[:0])
    with pytest.raises(InputError, match=r"shape \(3,\)"):
        learn([1, 2, 3])


def test_columns_of_features_that_are_not_there_are_named(frame):
    with pytest.raises(ConfigError, match=r"categorical names column 'incom'.*Did you mean 'income'"):
        learn(frame, Features(categorical=("incom",)))
    with pytest.raises(ConfigError, match=r"one_hot\['c'\] names column 9"):
        learn(frame, Features(one_hot={"c": (9,)}))
    with pytest.raises(ConfigError, match="two groups"):
        learn(np.eye(3), Features(one_hot={"c": (0, 1), "d": (1, 2)}))
    with pytest.raises(ConfigError, match="to one and to categorical"):
        learn(np.eye(3), Features(one_hot={"c": (0, 1)}, categorical=(1,)))


def test_columns_are_found_by_name_by_index_from_either_end_and_by_group():
    columns, _ = learn(np.eye(4), Features(one_hot={"c": (1, 2)}))
    assert [columns.find(column, "") for column in (0, "c", 1, 2, 3, -1, np.int64(3))] == [0, 1, 1, 1, 2, 2, 2]
    numbered, _ = learn(pd.DataFrame({2: [1.0], 0: [2.0], "z": [3.0]}))
    assert [numbered.find(column, "") for column in (2, 0, "z", 1)] == [0, 1, 2, 1]


def test_arrays_are_explained_without_pandas():
    code = """
        import sys
        class NoPandas:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] == "pandas":
                    raise ModuleNotFoundError(name)
        sys.meta_path.insert(0, NoPandas())
        import numpy as np
        from cfproto_plugin import CounterfactualExplainer, Features
        rng = np.random.default_rng(0)
        x = np.stack([rng.normal(size=80), rng.integers(0, 3, 80)], axis=1)
        def model(rows):
            p = 1 / (1 + np.exp(-4 * (rows[:, 0] + (rows[:, 1] == 2) - 0.5)))
            return np.stack([1 - p, p], axis=1)
        for features in (None, Features(categorical=(1,))):
            e = CounterfactualExplainer(model, features=features).fit(x).explain(x[:10])
            assert set(e.status) == {"found"}, e.status
            assert (model(e.counterfactual).argmax(1) == e.counterfactual_class).all()
        assert set(e.counterfactual[:, 1]) <= {0, 1, 2}
        assert e.changes() and repr(e) and e.to_json()
        assert "pandas" not in sys.modules
        print("fine")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "fine", done.stderr


def test_a_frame_with_a_32_bit_column_is_claimed_as_it_is_returned():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=200).astype(np.float32), "b": rng.normal(size=200)})

    def model(rows):
        p = np.asarray(rows["a"] + rows["b"] > 0, dtype=float)
        return np.stack([1 - p, p], axis=1)

    e = CounterfactualExplainer(model, search=SearchConfig()).fit(frame).explain(frame[:30])
    assert set(e.status) == {"found"}
    assert e.counterfactual["a"].dtype == np.float32
    assert (model(e.counterfactual).argmax(axis=1) == e.counterfactual_class).all()


def test_a_row_of_integers_for_a_column_of_decimals_gets_a_whole_counterfactual():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=200) * 3})

    def model(rows):
        p = np.asarray(np.abs(rows["a"] - 0.8) < 0.3, dtype=float)
        return np.stack([1 - p, p], axis=1)

    e = CounterfactualExplainer(model).fit(frame).explain(pd.DataFrame({"a": [3, -2]}))
    assert set(e.status) == {"found"}
    assert e.counterfactual["a"].tolist() == [1, 1]
    assert e.counterfactual["a"].dtype == np.int64
    assert model(e.counterfactual).argmax(axis=1).tolist() == [1, 1]


def test_a_series_is_no_training_data():
    with pytest.raises(InputError, match=r"is a Series of 486 values; expected a table of columns") as raised:
        learn(pd.Series(range(486), name="y"))
    assert len(str(raised.value)) < 200
