"""Blocks of Parquet files: which there are, how one is read, and where its answers go.

A block is at most `block_rows` rows of one row group. Its answers are one file, whose name and content follow from the
block and the job alone.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cfproto_plugin.errors import InputError
from cfproto_plugin.files.writing import put
from cfproto_plugin.integrations.datasets.loading import load_pyarrow

SUFFIX = ".parquet"
_ABOUT = b"cfproto"  # the key of what a file of answers says about itself
_MAGIC = b"PAR1"
_CONVERT = "convert a table first, such as pandas.read_csv('rows.csv').to_parquet('rows.parquet')"
_PIECE = 2**20  # bytes that are read at a time
_ANSWERS = re.compile(r"(.+)-\d{5,}-\d{8,}\.parquet", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """Rows of a file. file: below the source. stamp: of its row group. seen: size and time of change of the file."""

    file: str
    stamp: str
    seen: str
    group: int
    start: int
    rows: int

    @property
    def name(self) -> str:
        """Where its answers are, below the sink; the folders are those of the source."""
        stem = self.file.removesuffix(SUFFIX)
        return f"{stem}-{self.group:05d}-{self.start:08d}{SUFFIX}"

    def digest(self, job: str) -> str:
        """A checksum of the block and the job that it is a part of; a copy of the same file gives the same."""
        own = {name: value for name, value in asdict(self).items() if name != "seen"}
        return hashlib.sha256(json.dumps([job, own], sort_keys=True).encode()).hexdigest()


def files_of(source: Path) -> tuple[Path, list[str]]:
    """The folder of the source, and the Parquet files below it; hidden ones and those that begin with _ are none."""
    if source.is_file():
        if source.suffix != SUFFIX and not _begins_as_parquet(source):
            raise InputError(
                f"{str(source)!r} is no Parquet file, and data sets are read from Parquet only; {_CONVERT}"
            )
        return source.parent, [source.name]
    if not source.is_dir():
        raise InputError(f"there is no file or folder {str(source)!r} to read")
    found = sorted(path.relative_to(source) for path in source.rglob(f"*{SUFFIX}") if path.is_file())
    names = [path.as_posix() for path in found if not any(part[0] in "._" for part in path.parts)]
    if not names:
        raise InputError(f"the folder {str(source)!r} holds no file that ends in {SUFFIX}; {_CONVERT}")
    return source, names


def _begins_as_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def blocks_of(folder: Path, file: str, block_rows: int) -> Iterator[Block]:
    """The blocks of a file. Raises if its footer cannot be read."""
    path = folder / file
    seen = _seen(path)
    _check_footer(path)
    with load_pyarrow().parquet.ParquetFile(path) as opened:
        about = opened.metadata
        groups = [about.row_group(group) for group in range(about.num_row_groups)]
        schema = opened.schema_arrow.to_string(show_schema_metadata=False)
    for group, each in enumerate(groups):
        stamp = _stamp(path, each, schema)
        for start in range(0, each.num_rows, block_rows):
            yield Block(file, stamp, seen, group, start, min(block_rows, each.num_rows - start))


def types_in(folder: Path, file: str, names: Sequence[str]) -> dict[str, Any]:
    """The pyarrow types of columns of a file."""
    pa = load_pyarrow()
    schema = pa.parquet.read_schema(folder / file)
    absent = [name for name in names if name not in schema.names]
    if absent:
        raise InputError(f"{file} has no column {absent[0]!r} to keep; it has {', '.join(schema.names)}")
    kinds = {name: schema.field(name).type for name in names}
    return {name: kind.value_type if pa.types.is_dictionary(kind) else kind for name, kind in kinds.items()}


def read(folder: Path, block: Block, columns: Sequence[str] | None) -> Any:
    """The rows of a block as a pyarrow Table."""
    if _seen(folder / block.file) != block.seen:
        raise InputError(f"{block.file} was changed while it was explained; start again")
    opened = load_pyarrow().parquet.ParquetFile(folder / block.file, page_checksum_verification=True)
    with opened:
        wanted = None if columns is None else [name for name in columns if name in opened.schema_arrow.names]
        table = opened.read_row_group(block.group, columns=wanted)
    return table.slice(block.start, block.rows)


def write(path: Path, table: Any, about: Mapping[str, Any]) -> int:
    """Write answers with what they say about themselves; the file is there whole or not at all. Returns its size."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = table.replace_schema_metadata({_ABOUT: json.dumps(about, sort_keys=True)})
    with put(path) as file:
        load_pyarrow().parquet.write_table(table, file, write_page_checksum=True)
    return path.stat().st_size


def about_answers(path: Path) -> dict[str, Any] | None:
    """What a file of answers says about itself; None if it is none, or damaged."""
    pa = load_pyarrow()
    try:
        return dict(json.loads((pa.parquet.read_metadata(path).metadata or {})[_ABOUT]))
    except (OSError, pa.ArrowInvalid, KeyError, ValueError, TypeError):
        return None


def stem_of(name: str) -> str | None:
    """The file of the source, without its suffix, whose answers have this name; None if it is no such name."""
    found = _ANSWERS.fullmatch(name)
    return None if found is None else found[1]


def _check_footer(path: Path) -> None:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - len(_MAGIC)))
        if file.read() != _MAGIC:
            raise InputError(f"{path.name} is no complete Parquet file: it was cut off, or has another format")


def _stamp(path: Path, group: Any, schema: str) -> str:
    """A checksum of the bytes of a row group: a changed value may leave size, statistics and footer as they were."""
    found = hashlib.sha256(schema.encode())
    with path.open("rb") as file:
        for at in range(group.num_columns):
            chunk = group.column(at)
            file.seek(min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset))))
            left = chunk.total_compressed_size
            while left > 0 and (some := file.read(min(left, _PIECE))):
                found.update(some)
                left -= len(some)
    return found.hexdigest()[:32]


def _seen(path: Path) -> str:
    found = path.stat()
    return f"{found.st_size}-{found.st_mtime_ns}"
