"""Saves to one folder take turns: the folder itself is locked, so that no file of a lock is left in it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cfproto_plugin.errors import FileError

try:
    import fcntl as _locks
except ImportError:  # Windows, which cannot lock folders
    _locks = None  # type: ignore[assignment]
fcntl: Any = _locks

_LONGEST_WAIT = 600.0  # seconds
_PAUSE = 0.02  # seconds between two tries


@contextmanager
def locked_folder(path: Path) -> Iterator[bool]:
    """Make the folder if it is not there and hold its lock, against other processes and other threads of this one.

    Yields whether this call made the folder. Where folders cannot be locked it goes on without.
    """
    until = time.monotonic() + _LONGEST_WAIT
    while True:
        new = _make(path)
        if fcntl is None:
            yield new
            return
        handle = os.open(path, os.O_RDONLY)
        try:
            _wait(handle, path, until)
            if _leads_to(path, handle):
                yield new
                return
        finally:
            os.close(handle)  # gives up the lock


def _make(path: Path) -> bool:
    try:
        path.mkdir()
    except FileExistsError:
        return False
    return True


def _wait(handle: int, path: Path, until: float) -> None:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise FileError(
                    f"others have been saving to {str(path)!r} for {_LONGEST_WAIT / 60:.0f} minutes; nothing was "
                    "written. Save to another folder, or end the process that holds it"
                ) from None
            time.sleep(_PAUSE)
        except OSError:  # a file system without locks
            return
        else:
            return


def _leads_to(path: Path, handle: int) -> bool:
    """Whether the folder is still the one that was opened: a first save that fails removes the folder that it made."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False
