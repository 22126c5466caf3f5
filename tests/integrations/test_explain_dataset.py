"""`explain_dataset`: Parquet in, Parquet out, stopped and started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from cfproto_plugin import CounterfactualExplainer, SearchConfig
from cfproto_plugin.cli import main
from cfproto_plugin.errors import ConfigError, InputError, ModelGoneError
from cfproto_plugin.integrations.datasets import explain_dataset
from cfproto_plugin.integrations.datasets.manifest import NAME

pytestmark = [pytest.mark.needs("pyarrow"), pytest.mark.needs("xgboost")]
ROWS, GROUP = 90, 30


def loans(n, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"age": rng.integers(18, 80, n), "income": rng.gamma(3, 1000, n).round(2)})


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The path of a saved explainer of an XGBoost model."""
    from xgboost import XGBClassifier

    x = loans(200)
    model = XGBClassifier(n_estimators=10, n_jobs=1).fit(x, (x.income + 20 * x.age > 4000).astype(int))
    path = tmp_path_factory.mktemp("saved") / "explainer.zip"
    CounterfactualExplainer(model, search=SearchConfig.close()).fit(x).save(path)
    return path


@pytest.fixture
def source(tmp_path):
    """A folder of two Parquet files, of two row groups and of one."""
    folder = tmp_path / "rows"
    (folder / "more").mkdir(parents=True)
    rows = loans(ROWS, seed=1).assign(id=np.arange(ROWS))
    rows[:60].to_parquet(folder / "a.parquet", row_group_size=GROUP)
    rows[60:].to_parquet(folder / "more" / "b.parquet")
    return folder


def contents(sink):
    return {path.relative_to(sink).as_posix(): path.read_bytes() for path in sorted(sink.rglob("*.parquet"))}


def manifest(sink):
    return [json.loads(line) for line in (sink / NAME).read_text().splitlines()]


def test_every_row_is_answered_once_in_a_file_for_its_block(saved, source, tmp_path):
    report = explain_dataset(saved, source, tmp_path / "answers", keep="id", block_rows=20)
    names = [*contents(tmp_path / "answers")]
    assert names == [
        "a-00000-00000000.parquet",
        "a-00000-00000020.parquet",
        "a-00001-00000000.parquet",
        "a-00001-00000020.parquet",
        "more/b-00000-00000000.parquet",
        "more/b-00000-00000020.parquet",
    ]
    answers = pd.concat([pd.read_parquet(tmp_path / "answers" / name) for name in names])
    assert answers["id"].tolist() == list(range(ROWS))
    assert (report.blocks, report.rows, report.failed, report.done_before) == (6, ROWS, {}, 0)
    assert report.found == answers["status"].isin(["found", "fallback"]).sum() == ROWS
    rows = loans(ROWS, seed=1)
    alone = CounterfactualExplainer.load(saved).explain(rows)
    assert answers["income"].tolist() == alone.counterfactual["income"].tolist()


def test_processes_give_the_same_bytes_as_this_one(saved, source, tmp_path):
    explain_dataset(saved, source, tmp_path / "here", block_rows=20)
    report = explain_dataset(saved, source, tmp_path / "there", block_rows=20, workers=2)
    assert report.rows == ROWS
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


def test_a_finished_job_does_nothing_again(saved, source, tmp_path):
    sink = tmp_path / "answers"
    explain_dataset(saved, source, sink)
    before = {path: path.stat().st_mtime_ns for path in sink.rglob("*.parquet")}
    report = explain_dataset(saved, source, sink)
    assert report.done_before == report.blocks == 3
    assert report.found == ROWS
    assert {path: path.stat().st_mtime_ns for path in sink.rglob("*.parquet")} == before


def test_a_block_whose_line_the_manifest_lost_is_not_done_again(saved, source, tmp_path):
    sink = tmp_path / "answers"
    explain_dataset(saved, source, sink)
    lines = (sink / NAME).read_text().splitlines()
    (sink / NAME).write_text("\n".join(lines[:2]) + '\n{"name": "a-000')  # as a process leaves it that was killed
    report = explain_dataset(saved, source, sink)
    assert report.done_before == 3
    assert report.found == ROWS
    assert explain_dataset(saved, source, sink).done_before == 3


def test_answers_that_are_gone_damaged_or_of_a_file_that_changed_are_done_again(saved, source, tmp_path):
    sink = tmp_path / "answers"
    explain_dataset(saved, source, sink)
    whole = contents(sink)
    (sink / "a-00000-00000000.parquet").unlink()
    (sink / "a-00001-00000000.parquet").write_bytes(b"PAR1")
    assert explain_dataset(saved, source, sink).done_before == 1
    assert contents(sink) == whole
    loans(25, seed=5).to_parquet(source / "more" / "b.parquet")
    report = explain_dataset(saved, source, sink)
    assert (report.done_before, report.rows) == (2, 85)


def test_a_changed_value_is_seen_where_size_and_footer_stay_the_same(saved, tmp_path):
    path, sink = tmp_path / "rows.parquet", tmp_path / "answers"
    rows = loans(ROWS, seed=1)
    rows.to_parquet(path, row_group_size=GROUP, compression=None)
    before, footer = path.stat().st_size, path.read_bytes()[-2000:]
    explain_dataset(saved, path, sink, keep="income")
    middle = rows["income"].sort_values().index[ROWS // 2]
    rows.loc[middle, "income"] += 0.01
    rows.to_parquet(path, row_group_size=GROUP, compression=None)
    assert (path.stat().st_size, path.read_bytes()[-2000:]) == (before, footer)
    assert explain_dataset(saved, path, sink, keep="income").done_before == 2
    assert pd.read_parquet(sink)["income_before"].tolist() == rows["income"].tolist()


def test_a_copy_of_the_same_file_is_not_done_again(saved, source, tmp_path):
    explain_dataset(saved, source, tmp_path / "answers")
    os.utime(source / "a.parquet", (0, 0))
    assert explain_dataset(saved, source, tmp_path / "answers").done_before == 3


def test_answers_to_what_a_file_held_before_do_not_stay_beside_new_ones(saved, source, tmp_path):
    sink = tmp_path / "answers"
    explain_dataset(saved, source, sink)
    loans(20, seed=7).to_parquet(source / "a.parquet")  # one row group, not two
    assert explain_dataset(saved, source, sink).rows == 50
    assert len(pd.read_parquet(sink)) == 50
    damage(source / "a.parquet", 0)
    assert len(explain_dataset(saved, source, sink).failed) == 1
    assert len(pd.read_parquet(sink)) == 30


def test_a_manifest_that_was_cut_off_in_its_first_line_is_begun_again(saved, source, tmp_path):
    sink = tmp_path / "answers"
    sink.mkdir()
    (sink / NAME).write_text('{"format": "cfpr')
    assert explain_dataset(saved, source, sink).done_before == 0
    assert explain_dataset(saved, source, sink).done_before == 3


def test_columns_are_kept_as_they_are_in_the_file(saved, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = loans(4)
    kept = {
        "key": pa.array([None, 2**53 + 1, 2**53 + 3, -(2**62) - 1], pa.int64()),
        "flag": pa.array([True, None, False, True]),
        "time": pa.array([1, 2, 3, None], pa.time64("ns")),
        "map": pa.array([[("a", 1)], [], None, [("b", 2)]], pa.map_(pa.string(), pa.int64())),
        "day": pa.array([10**6, None, 0, 1], pa.date32()),
    }
    pq.write_table(pa.table({**{name: rows[name] for name in rows}, **kept}), tmp_path / "rows.parquet")
    explain_dataset(saved, tmp_path / "rows.parquet", tmp_path / "answers", keep=[*kept]).raise_for_status()
    found = pq.read_table(tmp_path / "answers")
    assert {name: found[name].to_pylist() for name in kept} == {name: kept[name].to_pylist() for name in kept}


def test_a_key_that_pandas_had_as_its_index_can_be_kept(saved, tmp_path):
    loans(4).set_index(pd.Index([9, 9, 7, 5], name="key")).to_parquet(tmp_path / "rows.parquet")
    explain_dataset(saved, tmp_path / "rows.parquet", tmp_path / "answers", keep="key").raise_for_status()
    assert pd.read_parquet(tmp_path / "answers")["key"].tolist() == [9, 9, 7, 5]


def test_another_job_in_the_same_folder_is_refused_and_says_what_differs(saved, source, tmp_path):
    sink = tmp_path / "answers"
    explain_dataset(saved, source, sink, target=1)
    with pytest.raises(InputError, match="its target was 1, and now is 0"):
        explain_dataset(saved, source, sink, target=0)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "me.png").touch()
    with pytest.raises(InputError, match=r"holds 'me.png' and no answers"):
        explain_dataset(saved, source, tmp_path / "photos")


def test_two_processes_cannot_write_to_one_folder(saved, source, tmp_path):
    import fcntl

    sink = tmp_path / "answers"
    sink.mkdir()
    with (sink / NAME).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="another process is writing"):
            explain_dataset(saved, source, sink)


def damage(path, group):
    """Overwrite the data of a row group."""
    import pyarrow.parquet as pq

    about = pq.read_metadata(path).row_group(group).column(0)
    start = about.dictionary_page_offset or about.data_page_offset
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\xff" * 40)


def test_a_damaged_block_is_named_the_others_are_done_and_the_next_run_tries_it_again(saved, source, tmp_path):
    path, sink = source / "a.parquet", tmp_path / "answers"
    healthy = path.read_bytes()
    damage(path, 1)
    report = explain_dataset(saved, source, sink)
    assert [*report.failed] == ["a-00001-00000000.parquet"]
    assert "rows 0 to 29 of row group 1 of a.parquet" in report.failed["a-00001-00000000.parquet"]
    assert [*contents(sink)] == ["a-00000-00000000.parquet", "more/b-00000-00000000.parquet"]
    with pytest.raises(InputError, match="1 of 3 blocks failed"):
        report.raise_for_status()
    path.write_bytes(healthy)
    again = explain_dataset(saved, source, sink).raise_for_status()
    assert (again.done_before, again.found) == (2, ROWS)


def test_a_block_whose_model_left_in_the_middle_is_named_and_asked_about_again(source, tmp_path):
    state = {"left": np.inf}

    def probabilities(rows):
        state["left"] -= 1
        if state["left"] < 0:
            raise ModelGoneError("the service is down")
        score = np.clip(np.floor(np.asarray(rows["income"], dtype=float) / 100) / 60, 0.02, 0.98)
        return np.column_stack([1 - score, score])

    explainer = CounterfactualExplainer(probabilities, search=SearchConfig.close()).fit(loans(200))
    explain_dataset(explainer, source, tmp_path / "whole")
    report = explain_dataset(explainer, source, tmp_path / "answers", progress=lambda _: state.update(left=5))
    assert [*report.failed] == ["a-00001-00000000.parquet", "more/b-00000-00000000.parquet"]
    assert all("the service is down" in reason for reason in report.failed.values())
    assert [*contents(tmp_path / "answers")] == ["a-00000-00000000.parquet"]
    state["left"] = np.inf
    assert explain_dataset(explainer, source, tmp_path / "answers").done_before == 1
    assert contents(tmp_path / "answers") == contents(tmp_path / "whole")


def test_a_file_without_a_footer_is_named_and_the_others_are_done(saved, source, tmp_path):
    path = source / "a.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    report = explain_dataset(saved, source, tmp_path / "answers", keep=["id"])
    assert [*report.failed] == ["a.parquet"]
    assert report.rows == 30


def test_a_file_that_lacks_a_column_is_named(saved, source, tmp_path):
    loans(5).drop(columns="age").to_parquet(source / "c.parquet")
    report = explain_dataset(saved, source, tmp_path / "answers")
    assert "no column 'age'" in report.failed["c-00000-00000000.parquet"]
    assert report.found == ROWS


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"target": 7}, "7"),
        ({"preset": "nearest"}, "expected one of close"),
        ({"n": 0}, "n is 0"),
        ({"workers": 0}, "workers is 0"),
        ({"workers": "many"}, "or 'all'"),
        ({"engine": "rayy"}, "Did you mean 'ray'"),
        ({"block_rows": 0}, "block_rows is 0"),
        ({"keep": "key"}, "has no column 'key' to keep"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_the_first_block(saved, source, tmp_path, options, said):
    with pytest.raises((InputError, ConfigError), match=said):
        explain_dataset(saved, source, tmp_path / "answers", **options)
    assert not (tmp_path / "answers").exists()


@pytest.mark.parametrize(
    ("where", "sink", "said"),
    [("nowhere", "answers", "there is no file or folder"), ("rows", "rows/answers", "lies in the source")],
)
def test_folders_that_cannot_be_used_are_refused(saved, source, tmp_path, where, sink, said):
    with pytest.raises(InputError, match=said):
        explain_dataset(saved, tmp_path / where, tmp_path / sink)


def test_progress_is_told_after_every_block(saved, source, tmp_path):
    told = []
    explain_dataset(saved, source, tmp_path / "answers", progress=told.append)
    assert told == pytest.approx([1 / 3, 2 / 3, 1])


# In processes of their own

SLOW = """
import signal, sys, time
from cfproto_plugin.integrations.datasets import explain_dataset, frames

answers = frames.FrameExplainer.answers
def slowly(self, frame, arrow=None):
    time.sleep(0.4)
    return answers(self, frame, arrow)
frames.FrameExplainer.answers = slowly
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by what a shell runs in the background
    explain_dataset(*sys.argv[1:4], block_rows=10, workers=int(sys.argv[4]))
"""


def begun(tmp_path, saved, source, sink, workers, blocks=2):
    """A job in a process of its own, once it has done some blocks."""
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    process = subprocess.Popen(
        [sys.executable, script, saved, source, sink, str(workers)], stderr=subprocess.DEVNULL, start_new_session=True
    )
    end = time.monotonic() + 120
    while len(contents(sink)) < blocks:
        assert process.poll() is None, "it ended before it was stopped"
        assert time.monotonic() < end
        time.sleep(0.02)
    return process


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_a_job_that_is_stopped_goes_on_without_redoing_finished_blocks(saved, source, tmp_path, sign, workers):
    sink = tmp_path / "answers"
    process = begun(tmp_path, saved, source, sink, workers)
    process.send_signal(sign)
    process.wait(60)
    _all_ended(process.pid)
    done = contents(sink)
    assert 2 <= len(done) < 9
    times = {name: (sink / name).stat().st_mtime_ns for name in done}
    report = explain_dataset(saved, source, sink, block_rows=10)
    assert report.done_before == len(done)
    assert {name: (sink / name).stat().st_mtime_ns for name in done} == times
    assert not list(sink.rglob(".cfproto-*"))
    explain_dataset(saved, source, tmp_path / "at once", block_rows=10)
    assert contents(sink) == contents(tmp_path / "at once")


def _all_ended(group):
    """Wait until no process of this session is left; processes of a pool end with their parent."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("processes went on without their parent")


def test_a_script_without_a_main_guard_hears_of_it_and_does_not_go_on_for_ever(saved, source, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from cfproto_plugin.integrations.datasets import explain_dataset\n"
        f"explain_dataset({str(saved)!r}, {str(source)!r}, {str(tmp_path / 'answers')!r}, workers=2, block_rows=5)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, check=False, text=True, timeout=300)
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("put what it does below `if __name__ == '__main__':`")


def test_a_block_is_not_lost_if_a_process_ends_before_it_is_handed_out(monkeypatch):
    from concurrent.futures import Future
    from concurrent.futures.process import BrokenProcessPool

    from cfproto_plugin.integrations.datasets import local
    from cfproto_plugin.integrations.datasets.blocks import Block
    from cfproto_plugin.integrations.datasets.outcomes import Outcome

    pools = []

    class Pool:
        """Does blocks at once. The first one breaks before its third."""

        def __init__(self, *_):
            pools.append(self)
            self.done = 0

        def submit(self, work, *blocks):
            self.done += len(blocks)
            if len(pools) == 1 and self.done == 3:
                raise BrokenProcessPool
            future = Future()
            future.set_result(Outcome(blocks[0].name, 1) if blocks else None)
            return future

        def shutdown(self, **_):
            pass

    monkeypatch.setattr(local, "ProcessPoolExecutor", Pool)
    blocks = [Block("a.parquet", "", "", 0, start, 1) for start in range(6)]
    done = [block for block, outcome in local.in_processes(None, blocks, 1) if outcome.failed is None]
    assert sorted(done, key=lambda block: block.start) == blocks


@pytest.mark.slow
def test_a_process_of_the_pool_that_is_killed_changes_nothing_in_the_result(saved, source, tmp_path):
    sink = tmp_path / "answers"
    process = begun(tmp_path, saved, source, sink, 2)
    workers = [pid for pid in children(process.pid) if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    os.kill(workers[0], signal.SIGKILL)
    assert process.wait(120) == 0
    explain_dataset(saved, source, tmp_path / "undisturbed", block_rows=10)
    assert contents(sink) == contents(tmp_path / "undisturbed")


def children(pid):
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


# On the command line


def run(*arguments):
    done = CliRunner().invoke(main, ["explain-dataset", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_the_command_writes_what_the_function_writes_and_goes_on_with_it(saved, source, tmp_path):
    explain_dataset(saved, source, tmp_path / "function", target=[1], keep=["id"], n=2, preset="few")
    asked = [saved, source, tmp_path / "command", "--target", "1", "--keep", "id", "-n", "2", "--preset", "few"]
    done = run(*asked)
    assert done.exit_code == 0
    assert f"{ROWS} of {ROWS} rows explained in 3 blocks" in done.stderr
    assert contents(tmp_path / "command") == contents(tmp_path / "function")
    assert "3 of them before" in run(*asked).stderr


def test_the_command_names_a_damaged_block_and_exits_with_1(saved, source, tmp_path):
    damage(source / "a.parquet", 0)
    done = run(saved, source, tmp_path / "answers")
    assert done.exit_code == 1
    assert "row group 0 of a.parquet" in done.stderr
    assert "1 block failed" in done.stderr


def test_the_command_exits_with_2_if_it_cannot_begin(saved, source, tmp_path):
    assert run(saved, source, tmp_path / "answers", "--target", "7").exit_code == 2
    assert run(saved, source, tmp_path / "answers", "--workers", "few").exit_code == 2


def test_a_table_of_another_format_is_told_how_to_become_parquet_and_leaves_no_folder(saved, tmp_path):
    (tmp_path / "tables").mkdir()
    rows = tmp_path / "tables" / "rows.csv"
    loans(5).to_csv(rows, index=False)
    for source, said in (
        (rows, "is no Parquet file, and data sets are read from Parquet only"),
        (rows.parent, "holds no"),
    ):
        done = run(saved, source, tmp_path / "answers")
        assert done.exit_code == 2
        assert said in done.stderr
        assert "pandas.read_csv('rows.csv').to_parquet('rows.parquet')" in done.stderr
        assert not (tmp_path / "answers").exists()
    loans(5).to_parquet(tmp_path / "rows.data")
    assert run(saved, tmp_path / "rows.data", tmp_path / "answers").exit_code == 0
