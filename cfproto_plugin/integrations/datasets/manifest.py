"""The manifest of a job: a file of JSON lines in the sink, first what was asked, then a line for every block.

It is only ever appended to. A line that was cut off by the end of the process is ignored, and a file of answers whose
line is missing says itself which block of which job it holds. So no finished block is done again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from cfproto_plugin.checks import shown
from cfproto_plugin.errors import InputError
from cfproto_plugin.integrations.datasets.blocks import SUFFIX, Block, about_answers, stem_of
from cfproto_plugin.integrations.datasets.outcomes import Outcome

NAME = "_manifest.jsonl"
_FORMAT = "cfproto-answers-1"
_LEFT_OVER = ".cfproto-*"  # what a process that was killed had begun to write


class Manifest:
    """The manifest of an open job, which no other process may open meanwhile."""

    def __init__(self, sink: Path, file: IO[str], job: str) -> None:
        self._sink = sink
        self._file = file
        self.job = job
        self._known = {line["name"]: line for line in _lines(sink / NAME) if "name" in line}

    def finished(self, block: Block) -> Outcome | None:
        """How a block ended in an earlier run, if its answers are there."""
        path, line = self._sink / block.name, self._known.get(block.name)
        if not path.is_file():
            return None
        digest = block.digest(self.job)
        if line is not None and line.get("digest") == digest and line.get("size") == path.stat().st_size:
            return Outcome(**{name: line[name] for name in _FIELDS})
        about = about_answers(path)  # the process may have ended between the answers and their line
        if about is None or about.get("digest") != digest:
            return None
        outcome = Outcome(block.name, block.rows, int(about["found"]), path.stat().st_size)
        self.add(outcome, block)
        return outcome

    def add(self, outcome: Outcome, block: Block) -> None:
        """Note how a block ended."""
        self._write({**asdict(outcome), "digest": block.digest(self.job)})

    def remove_outdated(self, blocks: Iterable[Block], todo: Iterable[Block]) -> None:
        """Remove answers to what a file of the source held before it was changed, so that old and new do not mix.

        todo: the blocks that are not finished. Answers to files that are gone, or cannot be read, are left.
        """
        for block in todo:
            (self._sink / block.name).unlink(missing_ok=True)
        stems = {block.file.removesuffix(SUFFIX) for block in blocks}
        for name in self.stale(blocks):
            if stem_of(name) in stems:
                (self._sink / name).unlink(missing_ok=True)

    def stale(self, blocks: Iterable[Block]) -> list[str]:
        """Files of answers in the sink that belong to no block."""
        names = {block.name for block in blocks}
        found = (path.relative_to(self._sink).as_posix() for path in self._sink.rglob("*.parquet"))
        return sorted(name for name in found if name not in names and not name.startswith((".", "_")))

    def _write(self, line: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()


_FIELDS = tuple(each.name for each in fields(Outcome))


@contextmanager
def open_manifest(sink: Path, asked: Mapping[str, Any]) -> Iterator[Manifest]:
    """The manifest of a new job, or of the same job that was stopped. asked: all that the answers depend on."""
    sink.mkdir(parents=True, exist_ok=True)
    path = sink / NAME
    described = json.loads(json.dumps(asked, sort_keys=True, default=_plain))
    job = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()
    _check_place(path, described)
    with path.open("a", encoding="utf-8") as file:
        _lock(file, path)
        _check_place(path, described)  # another process may have begun meanwhile
        _end_line(path, file)
        for left in sink.rglob(_LEFT_OVER):
            left.unlink(missing_ok=True)
        manifest = Manifest(sink, file, job)
        if next(_lines(path), None) is None:  # the file is new, or was cut off in its first line
            manifest._write({"format": _FORMAT, "job": job, "asked": described})  # noqa: SLF001 of this module
        yield manifest
        os.fsync(file.fileno())


def _check_place(path: Path, asked: Mapping[str, Any]) -> None:
    """Refuse a folder that holds something else, or the answers of another job."""
    first = next(_lines(path), None)
    if first is None:
        others = [each.name for each in path.parent.iterdir() if each.name != NAME]
        if others:
            raise InputError(
                f"the folder {str(path.parent)!r} holds {min(others)!r} and no answers; choose a new or empty folder"
            )
        return
    if first.get("format") != _FORMAT:
        raise InputError(f"{path} has the format {shown(first.get('format'))}; expected {_FORMAT}")
    then = first.get("asked", {})
    for name in [*asked, *then]:
        if then.get(name) != asked.get(name):
            raise InputError(
                f"{str(path.parent)!r} holds the answers of another job: its {name} was {shown(then.get(name))}, and "
                f"now is {shown(asked.get(name))}. Choose another folder, or ask for the same to go on with it"
            )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a manifest that are whole."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for text in file:
            try:
                line = json.loads(text)
            except ValueError:
                continue
            if isinstance(line, dict):
                yield line


def _end_line(path: Path, file: IO[str]) -> None:
    """Begin a new line after one that was cut off."""
    with path.open("rb") as opened:
        size = opened.seek(0, os.SEEK_END)
        opened.seek(max(0, size - 1))
        if size and opened.read() != b"\n":
            file.write("\n")
            file.flush()


def _lock(file: IO[str], path: Path) -> None:
    """Keep other processes out until this one ends, however it ends; where the system can."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise InputError(f"another process is writing answers to {str(path.parent)!r}; wait until it ends") from error


def _plain(value: Any) -> Any:
    """Settings as JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    owner = value if hasattr(value, "__qualname__") else type(value)
    return f"{owner.__module__}:{owner.__qualname__}"
