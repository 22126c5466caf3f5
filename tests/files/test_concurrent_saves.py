"""Several processes and threads that save to one place: what is there is always one explainer, whole."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from saved_cases import by_first, numbers

from cfproto_plugin import CounterfactualExplainer, Features
from cfproto_plugin.errors import FileError, WriteError
from cfproto_plugin.files import locks, writing

HERE = Path(__file__).parent
WRITER = """
import os, sys
from test_concurrent_saves import explainer_of
path, number, stop = sys.argv[1], int(sys.argv[2]), sys.argv[3]
explainer = explainer_of(number)
print("ready", flush=True)
sys.stdin.readline()
while not os.path.exists(stop):
    explainer.save(path, model="reference")
"""
READS = 12
PLACES = pytest.mark.parametrize("name", ["saved", "saved.zip"])


@cache
def explainer_of(number):
    """One of several explainers: the rule and the number of training rows tell which; 0 and 1 share their rows."""
    x = numbers(60 + max(number, 1))[0]
    return CounterfactualExplainer(by_first, features=Features(immutable=[number])).fit(x)


def number_of(path):
    """Which explainer is there; every part of it is of that one."""
    found = CounterfactualExplainer.load(path, by_first)
    (number,) = found.features.immutable
    np.testing.assert_array_equal(found.fitted_.data, explainer_of(number).fitted_.data)
    return number


def assert_nothing_is_left(path):
    """No parts but those of the explainer that is there, and no file of a save."""
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    if path.is_dir():
        assert len(list(path.iterdir())) == 3


@PLACES
def test_processes_that_save_to_one_place_leave_one_explainer_whole_and_none_fails(tmp_path, name):
    path, stop = tmp_path / "place" / name, tmp_path / "stop"
    path.parent.mkdir()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, sys.path)])}
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(number), str(stop)], **pipes, env=environment, text=True
        )
        for number in range(3)
    ]
    assert [writer.stdout.readline() for writer in writers] == ["ready\n"] * 3
    explainer_of(0).save(path, model="reference")
    for writer in writers:
        writer.stdin.write("\n")
        writer.stdin.flush()
    try:
        assert {number_of(path) for _ in range(READS)} <= {0, 1, 2}
    finally:
        stop.touch()
    assert [writer.communicate()[1] for writer in writers] == [""] * 3
    assert [writer.returncode for writer in writers] == [0] * 3
    assert number_of(path) in {0, 1, 2}
    assert_nothing_is_left(path)


@PLACES
def test_threads_that_save_to_one_place_leave_one_explainer_whole_and_the_umask_as_it_was(tmp_path, name):
    path, failed = tmp_path / name, []
    explainers = [explainer_of(number) for number in range(4)]
    before = os.umask(0o027)

    def save_again_and_again(explainer):
        try:
            for _ in range(15):
                explainer.save(path, model="reference")
        except BaseException as error:
            failed.append(error)
            raise

    try:
        threads = [threading.Thread(target=save_again_and_again, args=(each,)) for each in explainers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert os.umask(0o027) == 0o027
        files = [path] if path.is_file() else list(path.iterdir())
        assert {each.stat().st_mode & 0o777 for each in files} == {0o640}
    finally:
        os.umask(before)
    assert failed == []
    assert number_of(path) in range(4)
    assert_nothing_is_left(path)


def test_a_save_waits_for_the_one_before_it_and_says_so_if_that_never_ends(tmp_path, monkeypatch):
    path = tmp_path / "saved"
    explainer_of(0).save(path, model="reference")
    monkeypatch.setattr(locks, "_LONGEST_WAIT", 0.1)
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with pytest.raises(FileError, match=r"others have been saving to '.*saved' for 0 minutes; nothing was written"):
            explainer_of(1).save(path, model="reference")
    finally:
        os.close(handle)
    assert number_of(path) == 0
    explainer_of(1).save(path, model="reference")
    assert number_of(path) == 1
    assert_nothing_is_left(path)


def test_a_first_save_that_fails_does_not_take_the_folder_from_one_that_waits(tmp_path, monkeypatch):
    path, real, waiting = tmp_path / "saved", writing._put_bytes, []

    def fails_when_another_one_waits(place, content):
        if not waiting:
            waiting.append(threading.Thread(target=explainer_of(1).save, args=(path,), kwargs={"model": "reference"}))
            waiting[0].start()
            waiting[0].join(0.5)
            assert waiting[0].is_alive()
            raise OSError(28, "No space left on device")
        real(place, content)

    monkeypatch.setattr(writing, "_put_bytes", fails_when_another_one_waits)
    with pytest.raises(WriteError, match="No space left"):
        explainer_of(0).save(path, model="reference")
    waiting[0].join()
    assert number_of(path) == 1
    assert_nothing_is_left(path)


def test_a_file_system_without_locks_is_saved_to_all_the_same(tmp_path, monkeypatch):
    def unknown(handle, operation):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(locks.fcntl, "flock", unknown)
    explainer_of(2).save(tmp_path / "saved", model="reference")
    assert number_of(tmp_path / "saved") == 2
