"""Arrays of numbers and dates as one npz file, without objects and without pickle; every header is checked first."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib import format as npy

from cfproto_plugin.errors import FileError
from cfproto_plugin.files.zips import ZipReader, write_zip
from cfproto_plugin.protocols import Array

MOST_ARRAYS = 65_000
KINDS = "biufmM"
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_DIMENSIONS = 32


def write_arrays(arrays: Sequence[Array]) -> bytes:
    """An npz file with the arrays 0.npy, 1.npy, ..., which numpy.load reads too; each in its own order in memory."""
    if len(arrays) > MOST_ARRAYS:
        raise FileError(f"the data needs {len(arrays):,} arrays; at most {MOST_ARRAYS:,} can be written")
    members = {}
    for at, array in enumerate(arrays):
        file = io.BytesIO()
        ordered = array if array.flags.f_contiguous else np.asarray(array, order="C")
        npy.write_array(file, ordered, version=(1, 0), allow_pickle=False)
        members[f"{at}.npy"] = file.getvalue()
    file = io.BytesIO()
    write_zip(file, members, deflate=False)
    return file.getvalue()


def read_arrays(content: bytes, what: str) -> list[Array]:
    """The arrays of such a file. None is larger than the file."""
    archive = ZipReader(io.BytesIO(content), what, most_files=MOST_ARRAYS, max_bytes=len(content))
    names = [f"{at}.npy" for at in range(len(archive.sizes))]
    for name in set(archive.sizes) - set(names):
        raise FileError(f"{what} holds {name[:80]!r}; expected 0.npy, 1.npy, ...")
    return [_read(archive.read(name), f"{name} in {what}") for name in names]


def _read(content: bytes, what: str) -> Array:
    file = io.BytesIO(content)
    shape, fortran, dtype = _header(file, what)
    if dtype.hasobject:
        raise FileError(f"{what} is an array of objects, which only a pickle can hold; it is not read")
    if dtype.kind not in KINDS or dtype.fields or dtype.subdtype:
        raise FileError(f"{what} is an array of {str(dtype)[:80]}; expected numbers, truth values or dates")
    if len(shape) > _DIMENSIONS or any(type(length) is not int or length < 0 for length in shape):
        raise FileError(f"{what} has the shape {str(shape)[:80]}; expected lengths of at least 0")
    declared, there = math.prod(shape) * dtype.itemsize, len(content) - file.tell()
    if declared != there:
        raise FileError(f"{what} declares {declared:,} bytes of numbers and holds {there:,}")
    found = np.frombuffer(content, dtype, offset=file.tell()).reshape(shape, order="F" if fortran else "C")
    return found.copy(order="K")  # sums depend on the order in memory in their last digits


def _header(file: io.BytesIO, what: str) -> tuple[tuple[int, ...], bool, Any]:
    try:
        return _HEADERS[npy.read_magic(file)](file)
    except KeyError as error:
        raise FileError(f"{what} is an array file of version {error}; expected (1, 0) or (2, 0)") from error
    except Exception as error:  # NumPy reads it as a Python literal, and hands on whatever the tokenizer raises
        raise FileError(f"{what} has a header that cannot be read: {str(error)[:200]}") from error
