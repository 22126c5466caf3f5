"""Columns of dates and durations: days for the search, dates of the same dtype for the model and in the answer."""

import datetime as dt
import json

import numpy as np
import pandas as pd
import pytest

from cfproto_plugin import CounterfactualExplainer, Explanation, Features
from cfproto_plugin.errors import ConfigError

RNG = np.random.default_rng(0)
N = 240
DAYS = pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 700, N), unit="D")
PLAIN = pd.DataFrame({"signed": DAYS, "income": RNG.normal(size=N)})
CUT = pd.Timestamp("2025-01-01")


def model(rows):
    """Later and richer is better; insists on the dtype it was written for."""
    signed = rows["signed"]
    if not isinstance(rows, pd.DataFrame):
        signed = pd.Series(signed.to_list() if hasattr(signed, "to_list") else signed.to_pylist())
    signed = pd.to_datetime(signed.reset_index(drop=True))
    cut = CUT if signed.dt.tz is None else CUT.tz_localize(signed.dt.tz)
    days = np.nan_to_num(np.asarray((signed - cut) / pd.Timedelta(days=1), dtype=float))
    score = days / 200 + np.asarray(rows["income"], dtype=float)
    return np.column_stack([1 / (1 + np.exp(score)), 1 / (1 + np.exp(-score))])


def in_library(frame, library, date):
    if library == "pandas":
        return frame
    polars = pytest.importorskip("polars")
    made = polars.DataFrame({name: frame[name].to_list() for name in frame})
    made = made.with_columns(made["signed"].cast(polars.Date)) if date else made
    return made if library == "polars" else made.to_arrow()


@pytest.mark.parametrize("date", [False, True])
@pytest.mark.parametrize("library", ["pandas", "polars", pytest.param("pyarrow", marks=pytest.mark.needs("pyarrow"))])
def test_dates_come_back_as_dates_of_the_same_type(library, date):
    train = in_library(PLAIN, library, date)
    rows = train[:20] if library != "pyarrow" else train.slice(0, 20)
    e = CounterfactualExplainer(model, features=Features(vary="signed")).fit(train).explain(rows)
    assert e.found.sum() > 5
    schema = (lambda x: x.schema) if library != "pandas" else (lambda x: x.dtypes.tolist())
    assert schema(e.counterfactual) == schema(rows)
    changes = e.changes()
    assert changes
    assert {change.feature for change in changes} == {"signed"}
    assert all(isinstance(change.after, dt.date) for change in changes)
    found = pd.to_datetime(pd.Series([change.after for change in changes]))
    assert (found == found.dt.normalize()).all()  # whole days, as in training
    back = Explanation.from_json(e.to_json())
    assert [change.after for change in back.changes()] == [change.after for change in changes]


@pytest.mark.parametrize(
    "dtype",
    [
        *("datetime64[s]", "datetime64[ms]", "datetime64[us]", "datetime64[ns]"),
        pytest.param("timestamp[us][pyarrow]", marks=pytest.mark.needs("pyarrow")),
    ],
)
def test_the_model_gets_the_dtype_it_was_given_in_training(dtype):
    train = PLAIN.astype({"signed": dtype})
    seen = set()

    def watching(rows):
        seen.add(str(rows["signed"].dtype))
        return model(rows)

    e = CounterfactualExplainer(watching).fit(train).explain(train[:10])
    assert e.found.all()
    assert seen == {dtype}
    assert e.counterfactual["signed"].dtype == train["signed"].dtype


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kolkata"])
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_midnights_stay_midnights_of_their_time_zone(zone, library):
    train = PLAIN.assign(signed=PLAIN["signed"].dt.tz_localize(zone))
    if library == "polars":
        polars = pytest.importorskip("polars")
        train = polars.DataFrame(
            {"signed": polars.Series(PLAIN["signed"]).dt.replace_time_zone(zone), "income": PLAIN["income"].to_list()}
        )
    e = CounterfactualExplainer(model, features=Features(vary="signed")).fit(train).explain(train[:20])
    after = [change.after for change in e.changes()]
    assert len(after) > 5
    assert all((moment.hour, moment.minute, moment.second) == (0, 0, 0) for moment in after)
    assert {str(moment.tzinfo) for moment in after} == {zone}
    assert Explanation.from_json(e.to_json()).changes() == e.changes()


def test_unchanged_nanoseconds_and_times_on_a_grid_are_kept():
    hours = PLAIN.assign(signed=PLAIN["signed"] + pd.to_timedelta(RNG.integers(0, 24, N), unit="h"))
    e = CounterfactualExplainer(model, features=Features(vary="signed")).fit(hours).explain(hours[:20])
    after = pd.Series([change.after for change in e.changes()])
    assert (after == after.dt.floor("h")).all()
    fine = PLAIN.assign(signed=PLAIN["signed"].astype("datetime64[ns]") + pd.to_timedelta(RNG.integers(1, 10**9, N)))
    e = CounterfactualExplainer(model, features=Features(vary="income")).fit(fine).explain(fine[:20])
    assert e.counterfactual["signed"].equals(fine["signed"][:20])


@pytest.mark.parametrize(
    "end",
    [
        pd.Timestamp("2025-03-01"),
        dt.date(2025, 3, 1),
        dt.datetime(2025, 3, 1),  # noqa: DTZ001 without a zone, as the column
        np.datetime64("2025-03-01"),
        "2025-03-01",
    ],
)
def test_ranges_take_dates_in_any_form(end):
    rules = Features(ranges={"signed": ("2024-06-01", end)}, increasing="signed")
    e = CounterfactualExplainer(model, features=rules).fit(PLAIN).explain(PLAIN[:60])
    after, before = e.counterfactual["signed"][e.found], e.original["signed"][e.found]
    assert e.found.sum() > 20
    assert after.between("2024-06-01", "2025-03-01").all()
    assert (after >= before).all()
    late = PLAIN["signed"][:60] > "2025-03-01"
    assert (e.status[late] == "infeasible").all()
    assert "at most 2025-03-01" in e.message[late][0]


def test_relations_and_lists_take_dates():
    ends = PLAIN.assign(ended=PLAIN["signed"] + pd.to_timedelta(RNG.integers(1, 90, N), unit="D"))
    rules = Features(relations=("ended - signed >= 30", "signed >= '2024-03-01'"))
    e = CounterfactualExplainer(model, features=rules).fit(ends).explain(ends[:60])
    after = e.counterfactual[e.found]
    assert len(after) > 20
    assert (after["ended"] - after["signed"] >= pd.Timedelta(days=30)).all()
    assert (after["signed"] >= "2024-03-01").all()
    allowed = ("2024-02-01", dt.date(2025, 2, 1), "2025-09-01")
    e = CounterfactualExplainer(model, features=Features(allowed={"signed": allowed})).fit(PLAIN).explain(PLAIN[:60])
    assert e.found.all()
    assert set(e.counterfactual["signed"]) <= set(map(pd.Timestamp, allowed))


def test_durations_are_numbers_too():
    span = PLAIN.assign(signed=PLAIN["signed"] - pd.Timestamp("2024-01-01"))

    def waited(rows):
        return model(rows.assign(signed=rows["signed"] + pd.Timestamp("2024-01-01")))

    rules = Features(ranges={"signed": (pd.Timedelta(days=10), dt.timedelta(days=600))})
    e = CounterfactualExplainer(waited, features=rules).fit(span).explain(span[:40])
    after = e.counterfactual["signed"][e.found]
    assert e.found.sum() > 30
    assert after.dtype == span["signed"].dtype
    assert after.between(pd.Timedelta(days=10), pd.Timedelta(days=600)).all()


def test_nat_is_missing_and_may_become_a_date():
    train = PLAIN.copy()
    train.loc[::5, "signed"] = pd.NaT
    e = CounterfactualExplainer(model, features=Features(vary="signed")).fit(train).explain(train[:40])
    gone = e.original["signed"].isna()
    assert e.found[gone].any()
    assert not (e.counterfactual["signed"][e.found & ~gone].isna()).any()


def test_a_cell_that_is_no_date_is_an_error_of_its_row_and_texts_of_dates_are_read():
    rows = PLAIN[:3].astype({"signed": object})
    rows.iloc[0, 0], rows.iloc[1, 0] = "2024-05-05", "soon"
    e = CounterfactualExplainer(model).fit(PLAIN).explain(rows)
    assert e.status.tolist()[1] == "error"
    assert "holds 'soon' in column 'signed'; expected a date" in e.message[1]
    assert e.found.tolist() == [True, False, True]
    one = CounterfactualExplainer(model).fit(PLAIN).explain(PLAIN.iloc[0])
    assert one.found.all()


@pytest.mark.parametrize("kind", ["column", "cells", "text"])
def test_dates_with_a_time_zone_are_errors_of_their_rows_where_training_had_none(kind):
    explainer = CounterfactualExplainer(model).fit(PLAIN)
    dates = PLAIN["signed"][:3].dt.tz_localize("Europe/Berlin")
    dates = {"column": dates, "cells": dates.astype(object), "text": dates.map(str)}[kind]
    e = explainer.explain(PLAIN[:3].assign(signed=dates))
    assert e.status.tolist() == ["error"] * 3
    assert e.counterfactual["signed"].isna().all()
    assert "row 2 holds " in e.message[2]
    assert "in column 'signed'; expected a date without a time zone" in e.message[2]
    assert ("remove it by .dt.tz_localize(None)" in e.message[2]) is (kind != "text")
    with pytest.raises(ConfigError, match="holds dates without a time zone"):
        explainer.explain(PLAIN[:3], features=Features(ranges={"signed": ("2025-01-01T00:00Z", "2026-01-01")}))


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_a_model_that_wants_dates_gets_dates_for_texts_of_dates(zone):
    train = PLAIN.assign(signed=PLAIN["signed"].dt.tz_localize(zone))

    def strict(rows):
        if rows["signed"].dtype != train["signed"].dtype:
            raise TypeError(f"dates as {rows['signed'].dtype}")
        return model(rows)

    rows = train[:4].assign(signed=train["signed"][:4].dt.strftime("%Y-%m-%d"))
    explainer = CounterfactualExplainer(strict, features=Features(vary="income")).fit(train)
    e, expected = explainer.explain(rows), explainer.explain(train[:4])
    assert e.found.all(), e.message
    assert e.counterfactual["signed"].tolist() == rows["signed"].tolist()
    assert e.counterfactual["income"].equals(expected.counterfactual["income"])


def test_durations_in_minutes_stay_in_minutes():
    span = PLAIN.assign(signed=pd.to_timedelta(RNG.integers(0, 700 * 1440, N), unit="min"))

    def waited(rows):
        return model(rows.assign(signed=rows["signed"] + pd.Timestamp("2024-01-01")))

    e = CounterfactualExplainer(waited, features=Features(vary="signed")).fit(span).explain(span[:20])
    after = pd.Series([change.after for change in e.changes()])
    assert len(after) > 5
    assert (after == after.dt.floor("min")).all()


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"ranges": {"signed": (1, 2)}}, r"ranges\['signed'\] has 1, but 'signed' holds dates"),
        ({"ranges": {"signed": ("2025-01-01", "2024-01-01")}}, r"expected the lowest first"),
        (
            {"ranges": {"income": ("2025-01-01", "2026-01-01")}},
            r"ranges\['income'\] has '2025-01-01', but 'income' is a",
        ),
        ({"allowed": {"signed": ("soon",)}}, r"allowed\['signed'\] has 'soon', but 'signed' holds dates"),
        ({"relations": "signed <= 'soon'"}, r"has 'soon', but 'signed' holds dates"),
    ],
)
def test_rules_that_are_no_dates_are_refused(rules, message):
    with pytest.raises(ConfigError, match=message):
        CounterfactualExplainer(model, features=Features(**rules)).fit(PLAIN)


def test_records_of_the_command_line_hold_dates_as_text():
    from cfproto_plugin.cli.show import as_lines, as_records

    e = CounterfactualExplainer(model, features=Features(vary="signed")).fit(PLAIN).explain(PLAIN[:20])
    records = json.loads(json.dumps(as_records(e)))
    assert [change["after"][:2] for record in records for change in record["changes"]]
    assert any("2025" in line or "2024" in line for line in as_lines(e))
    assert "00:00:00" not in repr(e)


# Arrow's dates in pandas, which have no time of day


def days_of(rows):
    """Needs dates: a moment minus a date is an error."""
    days = np.array([np.nan if cell is pd.NA else (cell - dt.date(2025, 1, 1)).days for cell in rows["signed"]])
    score = np.nan_to_num(days) / 200 + rows["income"].to_numpy()
    return np.column_stack([1 / (1 + np.exp(score)), 1 / (1 + np.exp(-score))])


@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize("dtype", ["date32[pyarrow]", "date64[pyarrow]"])
def test_the_model_gets_the_dates_of_arrow_that_it_was_trained_on(dtype):
    frame = PLAIN.astype({"signed": dtype})
    frame.loc[3, "signed"] = None
    e = CounterfactualExplainer(days_of).fit(frame).explain(frame[:12])
    assert e.found.all()
    assert e.changes()
    assert e.counterfactual["signed"].dtype == dtype
    assert (days_of(e.counterfactual).argmax(axis=1) == e.counterfactual_class).all()


@pytest.mark.needs("pyarrow")
def test_dates_in_a_column_of_objects_stay_dates():
    train = PLAIN.astype({"signed": "date32[pyarrow]"})
    rows = train[:12].astype({"signed": object})
    e = CounterfactualExplainer(days_of, features=Features(vary="signed")).fit(train).explain(rows)
    changed = e.counterfactual.loc[e.found, "signed"]
    assert len(changed)
    assert {type(cell) for cell in changed} == {dt.date}


# Time zones whose offset is no whole hour


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "Asia/Kathmandu", "Australia/Adelaide", "Europe/Berlin"])
def test_whole_hours_stay_whole_in_every_time_zone(zone):
    hours = pd.Series(pd.Timestamp("2024-05-25") + pd.to_timedelta(RNG.integers(0, 480, N), unit="h"))
    frame = PLAIN.assign(signed=hours.dt.tz_localize(zone))
    first = frame["signed"].min()

    def hourly(rows):
        score = ((rows["signed"] - first) / pd.Timedelta(hours=240)).to_numpy() - 1 + rows["income"].to_numpy() / 5
        return np.column_stack([1 / (1 + np.exp(score)), 1 / (1 + np.exp(-score))])

    rows = frame[:20]
    e = CounterfactualExplainer(hourly, features=Features(vary="signed")).fit(frame).explain(rows)
    changed = e.counterfactual.loc[e.found, "signed"]
    assert (changed != rows.loc[e.found, "signed"]).any()
    assert set(changed.dt.minute) == {0}
    assert set(changed.dt.second) == {0}


def test_whole_hours_over_a_change_of_the_clock_stay_whole():
    hours = pd.date_range("2024-03-20", "2024-04-20", freq="h", tz="Australia/Lord_Howe")  # moves by half an hour
    frame = pd.DataFrame({"signed": hours, "income": RNG.normal(size=len(hours))})

    def late(rows):
        score = ((rows["signed"] - pd.Timestamp("2024-04-05", tz="UTC")) / pd.Timedelta(days=3)).to_numpy()
        return np.column_stack([1 / (1 + np.exp(score)), 1 / (1 + np.exp(-score))])

    e = CounterfactualExplainer(late).fit(frame).explain(frame[::100])
    assert e.found.all()
    assert (late(e.counterfactual).argmax(axis=1) == e.counterfactual_class).all()
    assert set(e.counterfactual["signed"].dt.second) == {0}


# Dates in another form than in training: the model gets them as it knows them, the user as they were


BERLIN = PLAIN.assign(signed=PLAIN["signed"].dt.tz_localize("Europe/Berlin"))


def in_berlin(rows):
    """Refuses dates in any other form."""
    signed = rows["signed"] if isinstance(rows, pd.DataFrame) else rows["signed"].to_pandas()
    days = (signed - CUT.tz_localize("Europe/Berlin")) / pd.Timedelta(days=1)
    score = np.asarray(days, dtype=float) / 200 + np.asarray(rows["income"], dtype=float)
    return np.column_stack([1 / (1 + np.exp(score)), 1 / (1 + np.exp(-score))])


def confirmed(e, dates):
    """Whether the model says of the answers what it said, with these dates in the form that it knows."""
    rows = pd.DataFrame({"signed": pd.Series(dates), "income": np.asarray(e.counterfactual["income"], dtype=float)})
    rows["signed"] = pd.to_datetime(rows["signed"]).dt.tz_localize("Europe/Berlin")
    return bool((in_berlin(rows).argmax(axis=1) == e.counterfactual_class).all())


@pytest.mark.parametrize(
    "dtype",
    ["datetime64[us]", "datetime64[s]", pytest.param("timestamp[us][pyarrow]", marks=pytest.mark.needs("pyarrow"))],
)
def test_dates_without_a_time_zone_are_read_in_that_of_the_column_and_come_back_without(dtype):
    rows = PLAIN[:20].astype({"signed": dtype})
    e = CounterfactualExplainer(in_berlin, features=Features(vary="signed")).fit(BERLIN).explain(rows)
    expected = CounterfactualExplainer(in_berlin, features=Features(vary="signed")).fit(BERLIN).explain(BERLIN[:20])
    assert e.found.tolist() == expected.found.tolist()
    assert e.found.sum() > 10
    changed = e.counterfactual["signed"]
    assert changed.dtype == dtype
    wanted = expected.counterfactual["signed"].dt.tz_localize(None)
    assert pd.to_datetime(changed[e.found].astype(object)).tolist() == wanted[e.found].tolist()


@pytest.mark.needs("pyarrow")  # polars asks it for a frame of pandas, which the model wants
@pytest.mark.parametrize("library", ["polars", "pyarrow"])
@pytest.mark.parametrize("fitted", ["pandas", "polars"])
def test_dates_without_a_time_zone_in_other_frames_come_back_in_them(library, fitted):
    polars = pytest.importorskip("polars")
    rows, train = in_library(PLAIN[:20], library, date=False), BERLIN
    if fitted == "polars":
        train = in_library(PLAIN, "polars", date=False)
        train = train.with_columns(polars.col("signed").dt.replace_time_zone("Europe/Berlin"))
    e = CounterfactualExplainer(in_berlin).fit(train).explain(rows)
    assert e.found.all()
    assert e.counterfactual[:0].equals(rows[:0])  # the types of the columns
    column = e.counterfactual["signed"]
    assert confirmed(e, column.to_list() if library == "polars" else column.to_pylist())


def test_an_hour_that_the_clock_shows_twice_or_never_is_read():
    rows = PLAIN[:2].assign(signed=pd.to_datetime(["2024-10-27 02:30", "2024-03-31 02:30"]))
    explainer = CounterfactualExplainer(in_berlin, features=Features(vary="income")).fit(BERLIN)
    for dates in (rows["signed"], rows["signed"].astype(str)):
        e = explainer.explain(rows.assign(signed=dates))
        assert e.found.all(), e.message
        assert e.counterfactual["signed"].tolist() == dates.tolist()


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%m/%d/%Y", "%Y%m%d"])
@pytest.mark.parametrize("train", [PLAIN, BERLIN], ids=["naive", "Berlin"])
def test_dates_that_are_text_come_back_as_text_of_the_same_form(form, train):
    rows = PLAIN[:20].assign(signed=PLAIN["signed"][:20].dt.strftime(form))
    rows.loc[3, "signed"] = None
    asked = in_berlin if train is BERLIN else dated
    e = CounterfactualExplainer(asked, features=Features(vary="signed")).fit(train).explain(rows)
    changed = e.counterfactual["signed"][e.found]
    assert (changed != rows["signed"][e.found]).sum() > 5
    assert changed.dtype == rows["signed"].dtype
    assert pd.to_datetime(changed, format=form).dt.strftime(form).equals(changed)
    again = train[:20].assign(signed=pd.to_datetime(changed, format=form).dt.tz_localize(train["signed"].dt.tz))
    assert (asked(again[e.found]).argmax(axis=1) == e.counterfactual_class[e.found]).all()


def dated(rows):
    """Refuses text."""
    score = ((rows["signed"] - CUT) / pd.Timedelta(days=200)).to_numpy() + rows["income"].to_numpy()
    return np.column_stack([1 / (1 + np.exp(score)), 1 / (1 + np.exp(-score))])


def test_text_with_a_time_zone_keeps_one():
    rows = BERLIN[:20].assign(signed=BERLIN["signed"][:20].map(pd.Timestamp.isoformat))
    e = CounterfactualExplainer(in_berlin, features=Features(vary="signed")).fit(BERLIN).explain(rows)
    changed = e.counterfactual["signed"][e.found]
    assert (changed != rows["signed"][e.found]).any()
    assert changed.str.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:00:00\+0[12]:00").all()


@pytest.mark.parametrize("train", [PLAIN, BERLIN], ids=["naive", "Berlin"])
def test_dates_of_python_come_back_as_dates_of_python(train):
    rows = PLAIN[:20].assign(signed=PLAIN["signed"][:20].dt.date)
    asked = in_berlin if train is BERLIN else dated
    e = CounterfactualExplainer(asked, features=Features(vary="signed")).fit(train).explain(rows)
    changed = e.counterfactual["signed"][e.found]
    assert (changed != rows["signed"][e.found]).any()
    assert {type(cell) for cell in changed} == {dt.date}


def test_text_and_dates_get_a_time_of_day_where_the_answer_has_one():
    hours = BERLIN.assign(signed=BERLIN["signed"] + pd.to_timedelta(RNG.integers(0, 24, N), unit="h"))
    explainer = CounterfactualExplainer(in_berlin, features=Features(vary="signed")).fit(hours)
    for dates in (PLAIN["signed"][:20].dt.strftime("%Y-%m-%d"), PLAIN["signed"][:20].dt.date):
        e = explainer.explain(PLAIN[:20].assign(signed=dates))
        changed = e.counterfactual["signed"][e.found]
        days = [pd.Timestamp(cell) for cell in changed]
        assert any(day != day.normalize() for day in days)
        assert confirmed(e[e.found], days)


def test_a_missing_date_beside_text_is_filled_as_text():
    rows = PLAIN[:8].assign(signed=PLAIN["signed"][:8].dt.strftime("%Y%m%d"))
    rows.loc[0, "signed"], rows.loc[1:4, "signed"] = "soon", None

    def filled(frame):
        return in_berlin(frame.assign(signed=frame["signed"].fillna(CUT.tz_localize("Europe/Berlin"))))

    e = CounterfactualExplainer(filled, features=Features(vary="signed")).fit(BERLIN).explain(rows)
    assert e.status[0] == "error"
    changed = e.counterfactual["signed"][1:5][e.found[1:5]]
    assert changed.notna().any()
    assert changed.dropna().str.fullmatch("[0-9]{8}").all()


def test_dates_finer_than_those_of_training_keep_what_they_are():
    train = BERLIN.astype({"signed": "datetime64[s, Europe/Berlin]"})
    rows = PLAIN[:8].assign(signed=PLAIN["signed"][:8] + pd.Timedelta(milliseconds=5))
    e = CounterfactualExplainer(in_berlin, features=Features(vary="income")).fit(train).explain(rows)
    assert e.found.all(), e.message
    assert e.counterfactual["signed"].equals(rows["signed"])
