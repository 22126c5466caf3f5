"""Writes a saved explainer, a folder or one zip, so that whoever reads it finds the older one or the new one, whole.

The manifest of a folder, or the whole zip, is put in place by one rename after all else is on disk. Parts of a folder
carry their checksum in their names, so that those of two explainers stand beside each other.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from cfproto_plugin.errors import FileError, WriteError
from cfproto_plugin.files.locks import locked_folder
from cfproto_plugin.files.package import (
    BESIDE,
    FORMAT,
    HASH,
    MANIFEST,
    MOST_JSON,
    MOST_MANIFEST,
    NAME,
    PARTS,
    SCHEMA,
    ZIPPED,
    digest,
    is_part_of_folder,
    is_zipped,
    manifest_digest,
)
from cfproto_plugin.files.reading import Folder, Source
from cfproto_plugin.files.strict import read_json
from cfproto_plugin.files.zips import ZipReader, write_zip

_MOST_ZIPPED = 2**32 - 2**24  # more needs another kind of archive
_LONGEST_SAVE = 24 * 3600  # seconds


class Part(NamedTuple):
    """A file to write: its content, and the suffix of its name."""

    content: bytes
    suffix: str


def write_package(path: Path, parts: Mapping[str, Part], about: Mapping[str, Any]) -> None:
    """Write the parts and a manifest. about: further entries of the manifest."""
    check_place(path)
    names = {part: _name(part, made, hashed=not is_zipped(path)) for part, made in parts.items()}
    files = {
        part: {"name": names[part], "bytes": len(made.content), "sha256": digest(made.content)}
        for part, made in parts.items()
    }
    _check_sizes(path, files)
    manifest = {"format": FORMAT, "schema": SCHEMA, **about, "files": files}
    manifest["sha256"] = manifest_digest(manifest)
    members = {names[part]: made.content for part, made in parts.items()}
    text = json.dumps(manifest, indent=2, allow_nan=False).encode()
    try:
        if is_zipped(path):
            with put(path) as file:
                write_zip(file, {MANIFEST: text, **members}, deflate=True)
        else:
            _write_folder(path, text, members)
    except OSError as error:
        raise WriteError(
            f"{str(path)!r} could not be written ({error.strerror or error}); what was there before is unchanged"
        ) from error


def _check_sizes(path: Path, files: Mapping[str, Any]) -> None:
    """Refuse to write what could not be read again."""
    if files["explainer"]["bytes"] > MOST_JSON:
        raise FileError(
            f"the settings and the text of the training data take {files['explainer']['bytes']:,} bytes; at most "
            f"{MOST_JSON:,} can be saved. Fit on fewer rows"
        )
    total = sum(each["bytes"] for each in files.values())
    if is_zipped(path) and total > _MOST_ZIPPED:
        raise FileError(f"{str(path)!r} would hold {total:,} bytes, and a zip less than 4 GB; save to a folder instead")


def check_place(path: Path) -> None:
    """Refuse a place where something else than a saved explainer would be lost."""
    try:
        _check_place(path)
    except OSError as error:
        raise WriteError(f"{str(path)!r} cannot be written ({error.strerror or error})") from error


def _check_place(path: Path) -> None:
    if not path.parent.is_dir():
        raise FileError(f"{str(path)!r} cannot be written: there is no folder {str(path.parent)!r}")
    if path.is_symlink():
        raise FileError(f"{str(path)!r} is a symbolic link; give the path that it leads to")
    if not path.exists():
        return
    if is_zipped(path):
        if path.is_dir():
            raise FileError(f"{str(path)!r} is a folder; a name that ends in {path.suffix} is for one file")
        if not path.is_file() or (path.stat().st_size and not _is_explainer(path)):
            raise FileError(
                f"{str(path)!r} is there already and is no saved explainer; nothing was written. Choose another name, "
                "or remove it first"
            )
    elif not path.is_dir():
        raise FileError(
            f"{str(path)!r} is a file; a saved explainer is a folder, or one file whose name ends in "
            f"{' or '.join(ZIPPED)}"
        )
    elif (others := [each.name for each in path.iterdir() if not _is_left(each.name)]) and not _is_explainer(path):
        raise FileError(
            f"the folder {str(path)!r} holds {min(others)!r} and is no saved explainer; nothing was written. "
            "Choose a new or empty folder"
        )


def _is_left(name: str) -> bool:
    """Whether a file in a folder without a manifest is what a save that was killed left there."""
    return is_part_of_folder(name) or name.startswith(BESIDE)


def _is_explainer(path: Path) -> bool:
    """Whether a folder or a file begins as a saved explainer does: with a manifest of our format."""
    try:
        if path.is_dir():
            return _has_format(Folder(path))
        with path.open("rb") as file:
            return _has_format(ZipReader(file, str(path), most_files=1 + len(PARTS), max_bytes=_MOST_ZIPPED))
    except FileError:
        return False


def _has_format(source: Source) -> bool:
    if source.sizes.get(MANIFEST, MOST_MANIFEST + 1) > MOST_MANIFEST:
        return False
    found = read_json(source.read(MANIFEST), MANIFEST)
    return isinstance(found, dict) and found.get("format") == FORMAT


def _write_folder(path: Path, manifest: bytes, members: Mapping[str, bytes]) -> None:
    """Add the new files beside those of an older explainer, then replace the manifest, then remove the older files.

    Saves to one folder take turns, where the system can lock a folder. Where it cannot, the last manifest wins, and
    only what a manifest named that was replaced is removed.
    """
    with locked_folder(path) as new:
        known = {each.name for each in path.iterdir()}
        made: list[str] = []
        try:
            for name, content in members.items():
                if name not in known:
                    made.append(name)
                _put_bytes(path / name, content)
            replaced = _named(path)
            _put_bytes(path / MANIFEST, manifest)
        except BaseException:
            _remove(path, set(made) - _named(path))
            if new and not any(path.iterdir()):
                path.rmdir()
            raise
        now = _named(path)  # that of another process, if it was faster
        _remove(path, (replaced | _left_over(path, known)) - now - set(members))
        for name in now & set(members):
            if not (path / name).exists():  # the other one removed it, for it was a part of the older explainer too
                _put_bytes(path / name, members[name])


def _named(path: Path) -> set[str]:
    """The files that the manifest of a folder names; none if there is none that can be read."""
    try:
        files = read_json(Folder(path).read(MANIFEST), MANIFEST)["files"].values()
        return {each["name"] for each in files if NAME.fullmatch(each["name"])}
    except (FileError, OSError, KeyError, TypeError, AttributeError):
        return set()


def _left_over(path: Path, names: set[str]) -> set[str]:
    """Parts that a save which was killed left behind: no save takes as long as they are old."""
    since = time.time() - _LONGEST_SAVE
    return {name for name in names if is_part_of_folder(name) and _changed(path / name) < since}


def _changed(path: Path) -> float:
    """When a file was written; now if another save removed it."""
    try:
        return path.lstat().st_mtime
    except FileNotFoundError:
        return time.time()


def _remove(path: Path, names: set[str]) -> None:
    for name in names:
        (path / name).unlink(missing_ok=True)


def _put_bytes(path: Path, content: bytes) -> None:
    with put(path) as file:
        file.write(content)


@contextmanager
def put(path: Path) -> Iterator[Any]:
    """A file that takes its place by a rename when all is written, and leaves nothing behind if something fails."""
    beside = path.with_name(f"{BESIDE}{secrets.token_hex(8)}")
    try:
        with beside.open("x+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)  # noqa: PTH105 the one call that is atomic on every system
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _name(part: str, made: Part, *, hashed: bool) -> str:
    """In a folder with the checksum: a newer part stands beside the older one until the manifest is replaced."""
    return f"{part}-{digest(made.content)[:HASH]}{made.suffix}" if hashed else f"{part}{made.suffix}"
