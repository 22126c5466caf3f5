"""A saved explainer as a folder or one zip: a manifest with sizes and checksums, and the parts that it names.

Writing is atomic: the manifest of a folder, or the whole zip, is put in place by one rename after all else is on disk.
Reading trusts nothing: names, sizes and checksums are compared before a part is used.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from cfproto_plugin.errors import FileError
from cfproto_plugin.files.strict import read_json
from cfproto_plugin.files.zips import ZipReader, write_zip

FORMAT, SCHEMA = "cfproto-explainer", 1
MANIFEST = "manifest.json"
PARTS = ("explainer", "arrays", "model", "encoder", "autoencoder")
MAX_BYTES = 2**31  # that a saved explainer may have when unpacked, unless the caller allows more
ZIPPED = (".zip", ".cfproto")
_NAME = re.compile(rf"(?P<part>{'|'.join(PARTS)})(-[0-9a-f]{{12}})?\.[a-z0-9_]{{1,20}}")
_MOST_MANIFEST = 2**20
_MOST_JSON = 2**28  # of the part "explainer"
_MOST_ZIPPED = 2**32 - 2**24  # more needs another kind of archive
_LONGEST_SAVE = 24 * 3600  # seconds
_HASH = 12  # digits of a checksum in the names of a folder


class PartMissingError(FileError):
    """A part is not there: the explainer is not complete, or was replaced while it was read."""


class Part(NamedTuple):
    """A file to write: its content, and the suffix of its name."""

    content: bytes
    suffix: str


class Package(NamedTuple):
    """A saved explainer whose manifest was checked."""

    manifest: dict[str, Any]
    source: _Source
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
        if len(content) != declared["bytes"] or _digest(content) != declared["sha256"]:
            raise FileError(
                f"{self.what}: the checksum of {declared['name']!r} is not that of the manifest: it was changed or "
                "damaged after it was saved"
            )
        return content


class _Source(Protocol):
    """Where files are read from."""

    @property
    def sizes(self) -> dict[str, int]: ...

    def read(self, name: str) -> bytes: ...


# Writing


def is_zipped(path: Path) -> bool:
    """Whether the name asks for one file."""
    return path.suffix.lower() in ZIPPED


def write_package(path: Path, parts: Mapping[str, Part], about: Mapping[str, Any]) -> None:
    """Write the parts and a manifest. about: further entries of the manifest."""
    check_place(path)
    names = {part: _name(part, made, hashed=not is_zipped(path)) for part, made in parts.items()}
    files = {
        part: {"name": names[part], "bytes": len(made.content), "sha256": _digest(made.content)}
        for part, made in parts.items()
    }
    _check_sizes(path, files)
    manifest = {"format": FORMAT, "schema": SCHEMA, **about, "files": files}
    manifest["sha256"] = _digest(_canonical(manifest))
    members = {names[part]: made.content for part, made in parts.items()}
    text = json.dumps(manifest, indent=2, allow_nan=False).encode()
    if is_zipped(path):
        with put(path) as file:
            write_zip(file, {MANIFEST: text, **members}, deflate=True)
    else:
        _write_folder(path, text, members)


def _check_sizes(path: Path, files: Mapping[str, Any]) -> None:
    """Refuse to write what could not be read again."""
    if files["explainer"]["bytes"] > _MOST_JSON:
        raise FileError(
            f"the settings and the text of the training data take {files['explainer']['bytes']:,} bytes; at most "
            f"{_MOST_JSON:,} can be saved. Fit on fewer rows"
        )
    total = sum(each["bytes"] for each in files.values())
    if is_zipped(path) and total > _MOST_ZIPPED:
        raise FileError(f"{str(path)!r} would hold {total:,} bytes, and a zip less than 4 GB; save to a folder instead")


def check_place(path: Path) -> None:
    """Refuse a place where something else than a saved explainer would be lost."""
    if not path.parent.is_dir():
        raise FileError(f"{str(path)!r} cannot be written: there is no folder {str(path.parent)!r}")
    if path.is_symlink():
        raise FileError(f"{str(path)!r} is a symbolic link; give the path that it leads to")
    if is_zipped(path):
        if path.is_dir():
            raise FileError(f"{str(path)!r} is a folder; a name that ends in {path.suffix} is for one file")
        return
    if path.exists() and not path.is_dir():
        raise FileError(
            f"{str(path)!r} is a file; a saved explainer is a folder, or one file whose name ends in "
            f"{' or '.join(ZIPPED)}"
        )
    others = [] if not path.exists() else [each.name for each in path.iterdir() if not _is_own(each.name)]
    if others and not (path / MANIFEST).is_file():
        raise FileError(
            f"the folder {str(path)!r} holds {min(others)!r} and is no saved explainer; nothing was written. "
            "Choose a new or empty folder"
        )


def _is_own(name: str) -> bool:
    return name == MANIFEST or _NAME.fullmatch(name) is not None or name.startswith(".cfproto-")


def _write_folder(path: Path, manifest: bytes, members: Mapping[str, bytes]) -> None:
    """Add the new files beside those of an older explainer, then replace the manifest, then remove the older files.

    Another process may save here at the same time: the last manifest wins, and only what a manifest named that was
    replaced is removed.
    """
    new = not path.exists()
    path.mkdir(exist_ok=True)
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
        files = read_json(_Folder(path).read(MANIFEST), MANIFEST)["files"].values()
        return {each["name"] for each in files if _NAME.fullmatch(each["name"])}
    except (FileError, OSError, KeyError, TypeError, AttributeError):
        return set()


def _left_over(path: Path, names: set[str]) -> set[str]:
    """Parts that a save which was killed left behind: no save takes as long as they are old."""
    parts = [path / name for name in names if _NAME.fullmatch(name)]
    since = time.time() - _LONGEST_SAVE
    return {each.name for each in parts if each.exists() and each.lstat().st_mtime < since}


def _remove(path: Path, names: set[str]) -> None:
    for name in names:
        (path / name).unlink(missing_ok=True)


def _put_bytes(path: Path, content: bytes) -> None:
    with put(path) as file:
        file.write(content)


@contextmanager
def put(path: Path) -> Iterator[Any]:
    """A file that takes its place by a rename when all is written, and leaves nothing behind if something fails."""
    handle, name = tempfile.mkstemp(prefix=".cfproto-", dir=path.parent)
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _as_usual(Path(name))
        os.replace(name, path)  # noqa: PTH105 the one call that is atomic on every system
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _as_usual(path: Path) -> None:
    """The permissions of a new file: mkstemp's are for its owner alone."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)


def _name(part: str, made: Part, *, hashed: bool) -> str:
    """In a folder with the checksum: a newer part stands beside the older one until the manifest is replaced."""
    return f"{part}-{_digest(made.content)[:_HASH]}{made.suffix}" if hashed else f"{part}{made.suffix}"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _canonical(manifest: Mapping[str, Any]) -> bytes:
    kept = {name: value for name, value in manifest.items() if name != "sha256"}
    return json.dumps(kept, sort_keys=True).encode()


# Reading


@contextmanager
def opened_package(path: Path, max_bytes: int) -> Iterator[Package]:
    """Open a saved explainer and check its manifest."""
    what = str(path)
    if path.is_dir():
        yield _checked(_Folder(path), what, max_bytes)
    elif path.is_file():
        with path.open("rb") as file:
            reader = ZipReader(file, what, most_files=1 + len(PARTS), max_bytes=max_bytes)
            package = _checked(reader, what, max_bytes)
            for name in set(reader.sizes) - {MANIFEST} - {each["name"] for each in package.manifest["files"].values()}:
                raise FileError(f"{what} holds {name[:80]!r}, which its manifest does not name")
            yield package
    else:
        raise FileError(f"there is no saved explainer {what!r}; expected a folder or a file that explainer.save wrote")


class _Folder:
    """The plain files of a folder; links and folders in it are not followed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def sizes(self) -> dict[str, int]:
        found = {}
        for each in self._path.iterdir():
            try:
                about = each.lstat()
            except FileNotFoundError:  # removed by a save at the same time
                continue
            if stat.S_ISREG(about.st_mode):
                found[each.name] = about.st_size
            elif _is_own(each.name):
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


def _checked(source: _Source, what: str, max_bytes: int) -> Package:
    sizes = source.sizes
    if MANIFEST not in sizes:
        raise FileError(f"{what} has no {MANIFEST}: it is no saved explainer, or saving it was cut short")
    if sizes[MANIFEST] > _MOST_MANIFEST:
        raise FileError(f"{what}: the manifest has {sizes[MANIFEST]:,} bytes; expected at most {_MOST_MANIFEST:,}")
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
    if files["explainer"]["bytes"] > _MOST_JSON:
        raise FileError(f"{what}: the part 'explainer' is larger than {_MOST_JSON:,} bytes")
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
    if manifest.get("sha256") != _digest(_canonical(manifest)):
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
    found = _NAME.fullmatch(name)
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
