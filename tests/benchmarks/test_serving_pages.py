"""The figures on the pages about serving and data sets are those of the committed runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
pytestmark = pytest.mark.needs("xgboost")


def results(name):
    return json.loads((TOP / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))


def page(name):
    return (TOP / "docs" / name).read_text(encoding="utf-8")


def test_the_page_on_data_sets_shows_the_committed_runs_which_wrote_the_same_bytes():
    from dataset_runs import as_lines, overhead, projected

    found, text = results("datasets"), page("datasets.md")
    assert len({line["sha256"] for line in found["lines"]}) == 1
    assert {line["rows"] for line in found["lines"]} == {line["found"] for line in found["lines"]} == {20_000}
    for line in as_lines(found):
        assert line in text
    assert f"{overhead(found, 1):.2f} ms of CPU more per row with one actor and {overhead(found, 2):.2f} ms" in text
    assert f"| 10 | {projected(found, 10) / 3600:.1f} h |" in text
    assert f"| 100 | {projected(found, 100) / 60:.0f} min |" in text
    assert f"| 1,000 | {projected(found, 1000) / 60:.1f} min |" in text


def test_jobs_that_were_disturbed_wrote_the_same_bytes():
    from dataset_disturbed import as_lines

    found, text = results("datasets"), page("datasets.md")
    assert [job["sha256"] for job in found["disturbed"]] == [job["undisturbed"] for job in found["disturbed"]]
    assert not any(job["left_out"] for job in found["disturbed"])
    assert {(job["engine"], job["workers"]) for job in found["disturbed"]} == {("local", 1), ("local", 2), ("ray", 2)}
    for line in as_lines(found):
        assert line in text


def test_the_page_on_serving_shows_the_committed_minute_in_which_every_answer_was_right():
    from serving_load import as_lines

    found, text = results("serving"), page("serving.md")
    for line, shown in zip(found["lines"], as_lines(found), strict=True):
        assert line["ended"] == {"right": line["requests"]}
        assert shown in text
    assert f"explained {found['lines'][0]['loop_rows_per_second']:.1f} rows a second" in text
