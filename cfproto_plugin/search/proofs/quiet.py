"""HiGHS without the lines that it prints of itself, whatever its options say.

HiGHS 1.12 prints "HighsMipSolverData::transformNewIntegerFeasibleSolution ..." by C's printf. While it solves, C's
`stdout` is a stream in memory; afterwards what is in it goes to the real one, without the lines of HiGHS. Python's own
output does not go through C's `stdout`, nor does that of child processes, so that both are left alone. With glibc only:
elsewhere `stdout` cannot be replaced, or was not tried.
"""

from __future__ import annotations

import ctypes
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_OWN = b"Highs"  # what lines of HiGHS begin with


@contextmanager
def quiet() -> Iterator[None]:
    """Leave out what HiGHS prints inside; for any number of threads at once."""
    stream = _stream()
    stream.enter()
    try:
        yield
    finally:
        stream.leave()


class _Nothing:
    """Where `stdout` stays as it is."""

    def enter(self) -> None:
        """Do nothing."""

    def leave(self) -> None:
        """Do nothing."""


class _Memory(_Nothing):
    """A stream in memory in place of C's `stdout` while at least one thread is inside.

    It is never closed: a thread of another library may still be writing to it.
    """

    def __init__(self) -> None:
        self._libc: Any = ctypes.CDLL(None)
        for name in ("open_memstream", "fflush", "rewind", "flockfile", "funlockfile", "fwrite"):
            function = getattr(self._libc, name)
            function.argtypes = [ctypes.c_void_p] * (2 if name == "open_memstream" else 1)
        self._libc.fwrite.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p]
        self._libc.open_memstream.restype = ctypes.c_void_p
        self._stdout = ctypes.c_void_p.in_dll(self._libc, "stdout")
        self._text, self._size = ctypes.c_void_p(), ctypes.c_size_t()
        self._own = self._libc.open_memstream(ctypes.byref(self._text), ctypes.byref(self._size))
        if not self._own:
            raise OSError("no stream in memory")
        self._real: int | None = None
        self._inside, self._lock = 0, threading.Lock()

    def enter(self) -> None:
        """Take the place of `stdout`."""
        with self._lock:
            if not self._inside:
                self._real, self._stdout.value = self._stdout.value, self._own
            self._inside += 1

    def leave(self) -> None:
        """Give it back after the last thread, and pass on what HiGHS did not write."""
        with self._lock:
            self._inside -= 1
            if self._inside:
                return
            self._stdout.value = self._real
            self._libc.flockfile(self._own)
            self._libc.fflush(self._own)
            text = ctypes.string_at(self._text.value, self._size.value) if self._text.value else b""
            self._libc.rewind(self._own)
            self._libc.funlockfile(self._own)
            kept = b"".join(line for line in text.splitlines(keepends=True) if not line.startswith(_OWN))
            if kept:
                self._libc.fwrite(kept, 1, len(kept), self._real)


_made: list[_Nothing] = []
_making = threading.Lock()


def _stream() -> _Nothing:
    """The stream of this process, made on first use."""
    with _making:
        if not _made:
            try:
                _made.append(_Memory() if platform.libc_ver()[0] == "glibc" else _Nothing())
            except (OSError, AttributeError, ValueError):
                _made.append(_Nothing())
        return _made[0]
