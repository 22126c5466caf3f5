"""Opens a saved explainer, a folder or one zip. Nothing in it is trusted: names, sizes and checksums are compared
before a part is used.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from cfproto_plugin.errors import FileError
from cfproto_plugin.files.package import (
    FORMAT,
    MANIFEST,
    MOST_JSON,
    MOST_MANIFEST,
    NAME,
    PARTS,
    SCHEMA,
    digest,
    is_own,
    manifest_digest,
)
from cfproto_plugin.files.strict import read_json
from cfproto_plugin.files.zips import ZipReader


class PartMissingError(FileError):
    """A part is not there: the explainer is not complete, or was replaced while it was read."""


class Package(NamedTuple):
    """A saved explainer whose manifest was checked."""

    manifest: dict[str, Any]
    source: Source
    what: str

    def suffix(self, part: str) -> str:
        """The suffix of the name of a part."""
        return Path(self.manifest["files"][part]["name"]).suffix

    def read(self, part: str) -> bytes:
        """The content of a part, which is what the manifest says."""
        declared = self.manifest["files"].get(part)
        if declared is None:
            raise FileError(f"{self.what} has no part {part!r}; it is not complete")
        content = self.source.read(declared["name"])
        if len(content) != declared["bytes"] or digest(content) != declared["sha256"]:
            raise FileError(
                f"{self.what}: the checksum of {declared['name']!r} is not that of the manifest: it was changed or "
                "damaged after it was saved"
            )
        return content


class Source(Protocol):
    """Where files are read from."""

    @property
    def sizes(self) -> dict[str, int]: ...

    def read(self, name: str) -> bytes: ...


@contextmanager
def opened_package(path: Path, max_bytes: int) -> Iterator[Package]:
    """Open a saved explainer and check its manifest."""
    what = str(path)
    if path.is_dir():
        yield _checked(Folder(path), what, max_bytes)
    elif path.is_file():
        with path.open("rb") as file:
            reader = ZipReader(file, what, most_files=1 + len(PARTS), max_bytes=max_bytes)
            package = _checked(reader, what, max_bytes)
            for name in set(reader.sizes) - {MANIFEST} - {each["name"] for each in package.manifest["files"].values()}:
                raise FileError(f"{what} holds {name[:80]!r}, which its manifest does not name")
            yield package
    else:
        raise FileError(f"there is no saved explainer {what!r}; expected a folder or a file that explainer.save wrote")


def version_of(path: Path) -> tuple[int, ...] | None:
    """By what the manifest of a folder is known: another one if an explainer was saved there meanwhile."""
    try:
        about = (path / MANIFEST).lstat()
    except OSError:
        return None
    return about.st_ino, about.st_mtime_ns, about.st_size


class Folder:
    """The plain files of a folder; links and folders in it are not followed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def sizes(self) -> dict[str, int]:
        found = {}
        for each in {self._path / MANIFEST, *self._path.iterdir()}:  # a list may miss what is replaced meanwhile
            try:
                about = each.lstat()
            except FileNotFoundError:  # removed by a save at the same time
                continue
            if stat.S_ISREG(about.st_mode):
                found[each.name] = about.st_size
            elif is_own(each.name):
                raise FileError(f"{each} is a link, a folder or a device; expected a plain file")
        return found

    def read(self, name: str) -> bytes:
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        try:
            handle = os.open(self._path / name, flags)
        except OSError as error:
            raise PartMissingError(f"{self._path}: {name!r} cannot be read ({error.strerror})") from error
        with os.fdopen(handle, "rb") as file:
            return file.read(os.fstat(handle).st_size + 1)


def _checked(source: Source, what: str, max_bytes: int) -> Package:
    sizes = source.sizes
    if MANIFEST not in sizes:
        raise FileError(f"{what} has no {MANIFEST}: it is no saved explainer, or saving it was cut short")
    if sizes[MANIFEST] > MOST_MANIFEST:
        raise FileError(f"{what}: the manifest has {sizes[MANIFEST]:,} bytes; expected at most {MOST_MANIFEST:,}")
    manifest = read_json(source.read(MANIFEST), f"{MANIFEST} of {what}")
    _check_header(manifest, what)
    files = _files(manifest, what)
    for part, each in files.items():
        _check_file(part, each, sizes, what)
    total = sum(each["bytes"] for each in files.values())
    if total > max_bytes:
        raise FileError(
            f"{what} declares {total:,} bytes; at most {max_bytes:,} are read. If you trust it, pass a larger max_bytes"
        )
    if files["explainer"]["bytes"] > MOST_JSON:
        raise FileError(f"{what}: the part 'explainer' is larger than {MOST_JSON:,} bytes")
    return Package(manifest, source, what)


def _check_header(manifest: Any, what: str) -> None:
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise FileError(f"{what}: the manifest does not begin with the format {FORMAT!r}: it is no saved explainer")
    schema = manifest.get("schema")
    if type(schema) is not int or schema < 1:
        raise FileError(f"{what}: the schema is {str(schema)[:40]!r}; expected a whole number of at least 1")
    if schema > SCHEMA:
        raise FileError(
            f"{what} was saved by a newer cfproto-plugin: its schema is {schema}, this version reads up to {SCHEMA}. "
            "Update cfproto-plugin"
        )
    if manifest.get("sha256") != manifest_digest(manifest):
        raise FileError(f"{what}: the checksum of the manifest is wrong: it was changed or damaged after it was saved")


def _files(manifest: dict[str, Any], what: str) -> dict[str, Any]:
    files = manifest.get("files")
    if not isinstance(files, dict) or not {"explainer", "arrays"} <= set(files):
        raise FileError(f"{what}: the manifest does not name the parts 'explainer' and 'arrays'")
    for part in files:
        if part not in PARTS:
            raise FileError(f"{what}: the manifest names a part {part[:40]!r}; expected {', '.join(PARTS)}")
    return files


def _check_file(part: str, each: Any, sizes: Mapping[str, int], what: str) -> None:
    """An entry of the manifest, compared with what is there."""
    if not isinstance(each, dict) or not isinstance(each.get("name"), str) or not isinstance(each.get("sha256"), str):
        raise FileError(f"{what}: the manifest says {str(each)[:80]} of the part {part!r}; expected name and sha256")
    name, count = each["name"], each.get("bytes")
    found = NAME.fullmatch(name)
    if found is None or found["part"] != part:
        raise FileError(f"{what}: the part {part!r} is named {name[:80]!r}; expected such as '{part}.json'")
    if type(count) is not int or count < 0:
        raise FileError(f"{what}: the manifest says that {name!r} has {str(count)[:40]!r} bytes; expected a number")
    if name not in sizes:
        raise PartMissingError(f"{what}: {name!r} is missing; the explainer is not complete")
    if sizes[name] != count:
        raise FileError(
            f"{what}: {name!r} has {sizes[name]:,} bytes, the manifest says {count:,}: it was cut or changed"
        )
