"""Zip archives, read with care: what an archive declares is checked before anything is unpacked.

Only what this package writes is accepted: files without folders, stored or deflated, each name once, no comment.
"""

from __future__ import annotations

import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from cfproto_plugin.errors import FileError

_END = struct.Struct("<4s4H2LH")  # the record that ends an archive
_LOCATOR = b"PK\x06\x07"  # before that record, in archives of more than 4 GB or 65,535 files
_ENTRY = 1024  # bytes of the table of contents that a file may take
_MOST_NESTED = 65_535  # files in the archive of a model
_WHEN = (1980, 1, 1, 0, 0, 0)  # the same content gives the same bytes
_ENCRYPTED = 1
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}


def write_zip(file: IO[bytes], members: Mapping[str, bytes], *, deflate: bool) -> None:
    """Write an archive of these files."""
    method = zipfile.ZIP_DEFLATED if deflate else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, _WHEN)
            info.compress_type = method
            archive.writestr(info, content)


class ZipReader:
    """The files of an archive: their declared sizes first, then one by one."""

    def __init__(self, file: IO[bytes], what: str, *, most_files: int, max_bytes: int) -> None:
        self._what = what
        _check_end(file, what, most_files)
        with self._reading():
            self._archive = zipfile.ZipFile(file)
        self._infos: dict[str, zipfile.ZipInfo] = {}
        for info in self._archive.infolist():
            self._check(info)
            self._infos[info.filename] = info
        total = sum(info.file_size for info in self._infos.values())
        if total > max_bytes:
            raise FileError(
                f"{what} declares {total:,} bytes when unpacked; at most {max_bytes:,} are read. If you trust it, pass "
                "a larger max_bytes"
            )

    @property
    def sizes(self) -> dict[str, int]:
        """Declared sizes by name."""
        return {name: info.file_size for name, info in self._infos.items()}

    def read(self, name: str) -> bytes:
        """The content of a file, never more than its declared size."""
        with self._reading(f" in {name!r}"), self._archive.open(self._infos[name]) as member:
            content = member.read()
        if len(content) != self._infos[name].file_size:
            raise FileError(f"{self._what}: {name!r} is shorter than it declares")
        return content

    def _check(self, info: zipfile.ZipInfo) -> None:
        name, mode = info.filename, info.external_attr >> 16
        if name in self._infos:
            raise FileError(f"{self._what} holds {name!r} twice")
        if name.startswith("/") or "\\" in name or ":" in name or ".." in name.split("/"):
            raise FileError(f"{self._what} holds {name[:80]!r}, a path that leads out of it")
        if "/" in name or not name or "\0" in name or name != info.orig_filename:
            raise FileError(f"{self._what} holds {info.orig_filename[:80]!r}; expected plain file names")
        if mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode):
            raise FileError(f"{self._what}: {name!r} is a link or a device; expected plain files")
        if info.flag_bits & _ENCRYPTED:
            raise FileError(f"{self._what}: {name!r} is encrypted")
        if info.compress_type not in _METHODS:
            raise FileError(f"{self._what}: {name!r} is packed by method {info.compress_type}; expected 0 or 8")

    def _reading(self, where: str = "") -> _Reading:
        return _Reading(f"{self._what} is damaged{where}")


class _Reading:
    """What zipfile raises for damaged archives becomes our error."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: object, __: object) -> None:
        kinds = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, struct.error)
        if isinstance(error, kinds) and not isinstance(error, FileError):
            raise FileError(f"{self._text}: {error}") from error


def _check_end(file: IO[bytes], what: str, most_files: int) -> None:
    """Read the last record, which says how much `zipfile` is going to read, before it does."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _END.size - 20))
    tail = file.read()
    if len(tail) < _END.size or tail[-_END.size :][:4] != b"PK\x05\x06":
        raise FileError(f"{what} is no complete zip archive: it was cut off, or has another format")
    _, _, _, _, count, length, _, _ = _END.unpack(tail[-_END.size :])
    if tail.startswith(_LOCATOR):
        raise FileError(f"{what} is an archive of the large kind (zip64); expected less than 4 GB")
    if count > most_files:
        raise FileError(f"{what} declares {count:,} files; expected at most {most_files:,}")
    if length > _ENTRY * max(1, most_files) or length > size:
        raise FileError(f"{what} declares a table of contents of {length:,} bytes")
    file.seek(0)


def check_nested(path: Path, what: str, max_bytes: int) -> None:
    """Refuse a model file that is itself an archive which declares more than max_bytes."""
    if not zipfile.is_zipfile(path):
        return
    with path.open("rb") as file:
        _check_end(file, what, _MOST_NESTED)
        with _Reading(f"{what} is damaged"), zipfile.ZipFile(file) as archive:
            total = sum(info.file_size for info in archive.infolist())
    if total > max_bytes:
        raise FileError(f"{what} declares {total:,} bytes when unpacked; at most {max_bytes:,} are read")
