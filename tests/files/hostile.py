"""Damaged and hostile files: each is a saved explainer with one thing wrong, made by a function of this list.

A hostile file is consistent where it can be: its checksums are right, so that not they but the checks behind them have
to refuse it.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import shutil
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Case(NamedTuple):
    """make(source, place) writes the file: source is a good folder. words: what the error says."""

    make: Callable[[Path, Path], Path]
    words: str


CASES: dict[str, Case] = {}


def case(words):
    def add(make):
        CASES[make.__name__] = Case(make, words)
        return make

    return add


class Bomb:
    """A pickle of it writes a file when it is read."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return (Path.write_text, (Path(self.mark), "ran"))


# What the cases are made of


def parts_of(source):
    manifest = json.loads((source / "manifest.json").read_text())
    return manifest, {part: (source / each["name"]).read_bytes() for part, each in manifest["files"].items()}


def sealed(manifest):
    """The manifest with the right checksum of its own."""
    kept = {name: value for name, value in manifest.items() if name != "sha256"}
    return {**kept, "sha256": hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()}


def consistent(source, place, *, change=None, part="explainer", **others):
    """A zip with changed parts and right checksums. change: of the bytes of a part. others: of the manifest."""
    manifest, parts = parts_of(source)
    if change is not None:
        parts[part] = change(parts[part])
    names = {name: f"{name}{Path(each['name']).suffix}" for name, each in manifest["files"].items()}
    manifest["files"] = {
        name: {"name": names[name], "bytes": len(parts[name]), "sha256": hashlib.sha256(parts[name]).hexdigest()}
        for name in parts
    }
    return write(place, sealed({**manifest, **others}), {names[name]: parts[name] for name in parts})


def write(place, manifest, members):
    text = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", text)
        for name, content in members.items():
            archive.writestr(name, content)
    return place


def in_json(edit):
    """A change of the part "explainer" by a function that edits what it holds."""

    def change(text):
        found = json.loads(text)
        edit(found)
        return json.dumps(found).encode()

    return change


def in_data(**values):
    """A change of the array that the training data is."""
    return in_json(lambda found: found["data"].update(values))


def npz(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def header(text, version=(1, 0)):
    """An npy file with this header and eight bytes of numbers."""
    text = text.encode().ljust(117) + b"\n"
    size = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + size + text + bytes(8)


def first_array(content):
    """A change of the part "arrays": another first array."""

    def change(old):
        with zipfile.ZipFile(io.BytesIO(old)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        return npz({**members, "0.npy": content})

    return change


def folder(source, place):
    target = place.with_suffix("")
    shutil.copytree(source, target)
    return target


def edited_manifest(source, place, **entries):
    manifest, parts = parts_of(source)
    names = {each["name"]: parts[part] for part, each in manifest["files"].items()}
    return write(place, sealed({**manifest, **entries}), names)


def zip_of(source, place):
    return edited_manifest(source, place)


# Damaged


@case("no complete zip archive")
def cut_in_half(source, place):
    zip_of(source, place)
    place.write_bytes(place.read_bytes()[: place.stat().st_size // 2])
    return place


@case("no complete zip archive")
def empty_file(source, place):
    place.write_bytes(b"")
    return place


@case("no complete zip archive")
def not_a_zip(source, place):
    place.write_bytes(b"hello " * 1000)
    return place


@case("no complete zip archive")
def a_pickle(source, place):
    place.write_bytes(pickle.dumps(Bomb(place.parent / "ran")))
    return place


@case("damaged")
def flipped_bit(source, place):
    zip_of(source, place)
    content = bytearray(place.read_bytes())
    content[content.index(b"arrays-") + 200] ^= 1
    place.write_bytes(bytes(content))
    return place


@case("damaged")
def local_header_gone(source, place):
    zip_of(source, place)
    place.write_bytes(b"xxxx" + place.read_bytes()[4:])
    return place


@case("it was cut or changed")
def folder_with_a_shorter_part(source, place):
    target = folder(source, place)
    part = next(target.glob("arrays-*"))
    part.write_bytes(part.read_bytes()[:-10])
    return target


@case("checksum of 'arrays-")
def folder_with_a_changed_part(source, place):
    target = folder(source, place)
    part = next(target.glob("arrays-*"))
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    return target


@case("is missing")
def folder_without_a_part(source, place):
    target = folder(source, place)
    next(target.glob("arrays-*")).unlink()
    return target


@case("no manifest.json")
def folder_without_manifest(source, place):
    target = folder(source, place)
    (target / "manifest.json").unlink()
    return target


@case("no manifest.json")
def empty_folder(source, place):
    target = place.with_suffix("")
    target.mkdir()
    return target


@case("there is no saved explainer")
def nothing_there(source, place):
    return place


@case("checksum of the manifest")
def manifest_that_was_edited(source, place):
    manifest, parts = parts_of(source)
    manifest["versions"]["numpy"] = "0.0"
    return write(place, manifest, {each["name"]: parts[part] for part, each in manifest["files"].items()})


# The manifest


@case("newer cfproto-plugin: its schema is 2")
def newer(source, place):
    return edited_manifest(source, place, schema=2)


@case("expected a whole number of at least 1")
def schema_that_is_text(source, place):
    return edited_manifest(source, place, schema="1")


@case("expected a whole number of at least 1")
def schema_that_is_true(source, place):
    return edited_manifest(source, place, schema=True)


@case("expected a whole number of at least 1")
def schema_zero(source, place):
    return edited_manifest(source, place, schema=0)


@case("it is no saved explainer")
def other_format(source, place):
    return edited_manifest(source, place, format="cfproto-explanation/1")


@case("it is no saved explainer")
def manifest_that_is_a_list(source, place):
    return write(place, b"[1, 2]", {})


@case("not strict JSON")
def manifest_that_is_no_json(source, place):
    return write(place, b"{'format'", {})


@case("not strict JSON")
def manifest_in_no_utf8(source, place):
    return write(place, b"\xff\xfe{}", {})


@case("nested too deeply")
def manifest_of_great_depth(source, place):
    return write(place, b"[" * 400_000, {})


@case("not strict JSON.*NaN")
def manifest_with_nan(source, place):
    return write(place, b'{"format": "cfproto-explainer", "schema": NaN}', {})


@case("'schema' twice")
def manifest_with_a_name_twice(source, place):
    return write(place, b'{"format": "cfproto-explainer", "schema": 9, "schema": 1}', {})


@case("the manifest has 2,000,000 bytes")
def huge_manifest(source, place):
    return write(place, b" " * 2_000_000, {})


@case("does not name the parts")
def manifest_without_files(source, place):
    return edited_manifest(source, place, files={})


@case("names a part 'pickle'")
def unknown_part(source, place):
    manifest, _ = parts_of(source)
    return edited_manifest(source, place, files={**manifest["files"], "pickle": manifest["files"]["arrays"]})


def with_file(source, place, **entries):
    """Another entry of the manifest for the arrays."""
    manifest, _ = parts_of(source)
    files = {**manifest["files"], "arrays": {**manifest["files"]["arrays"], **entries}}
    return edited_manifest(source, place, files=files)


@case("the part 'arrays' is named '../../etc/passwd'")
def part_that_climbs_out(source, place):
    return with_file(source, place, name="../../etc/passwd")


@case("the part 'arrays' is named '/etc/passwd'")
def part_with_an_absolute_path(source, place):
    return with_file(source, place, name="/etc/passwd")


@case("the part 'arrays' is named")
def part_named_as_another(source, place):
    manifest, _ = parts_of(source)
    return with_file(source, place, name=manifest["files"]["explainer"]["name"])


@case("bytes; expected a number")
def part_of_negative_size(source, place):
    return with_file(source, place, bytes=-1)


@case("expected name and sha256")
def part_without_name(source, place):
    return with_file(source, place, name=None)


@case("the manifest says 99,999")
def part_of_another_size(source, place):
    return with_file(source, place, bytes=99_999)


@case("checksum of 'arrays-")
def part_with_another_checksum(source, place):
    return with_file(source, place, sha256="0" * 64)


# The archive


def with_member(source, place, info, content=b"x"):
    zip_of(source, place)
    with zipfile.ZipFile(place, "a") as archive:
        archive.writestr(info, content)
    return place


@case("a path that leads out of it")
def member_that_climbs_out(source, place):
    return with_member(source, place, "../evil.txt")


@case("a path that leads out of it")
def member_with_an_absolute_path(source, place):
    return with_member(source, place, "/evil.txt")


@case("a path that leads out of it")
def member_of_windows(source, place):
    return with_member(source, place, "C:\\evil.txt")


@case("expected plain file names")
def member_in_a_folder(source, place):
    return with_member(source, place, "folder/evil.txt")


@case("is a link or a device")
def member_that_is_a_link(source, place):
    info = zipfile.ZipInfo("model.json")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return with_member(source, place, info, b"/etc/passwd")


@case("which its manifest does not name")
def member_that_nobody_named(source, place):
    return with_member(source, place, "evil.txt")


@case("holds 'manifest.json' twice")
def manifest_twice(source, place):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return with_member(source, place, "manifest.json", b"{}")


@case("is packed by method 12")
def member_packed_otherwise(source, place):
    info = zipfile.ZipInfo("evil.txt")
    info.compress_type = zipfile.ZIP_BZIP2
    return with_member(source, place, info, b"x" * 1000)


@case("is encrypted")
def encrypted_member(source, place):
    zip_of(source, place)
    content = bytearray(place.read_bytes())
    at = content.index(b"PK\x01\x02")
    content[at + 8] |= 1
    place.write_bytes(bytes(content))
    return place


@case("declares 3,000,0[0-9]{2},[0-9]{3} bytes when unpacked")
def bomb(source, place):
    zip_of(source, place)
    with zipfile.ZipFile(place, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.json", bytes(10_000_000))
    return declaring(place, b"model.json", 3_000_000_000)


@case("damaged")
def bomb_that_declares_less(source, place):
    """It declares a hundred bytes and unpacks to many more."""
    manifest, parts = parts_of(source)
    name = manifest["files"]["arrays"]["name"]
    zip_of(source, place)
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, each in manifest["files"].items():
            archive.writestr(each["name"], bytes(50_000_000) if part == "arrays" else parts[part])
        archive.writestr("manifest.json", (source / "manifest.json").read_bytes())
    return declaring(place, name.encode(), manifest["files"]["arrays"]["bytes"])


def declaring(place, name, size):
    """The last file of that name in the table of contents, with another size."""
    content = bytearray(place.read_bytes())
    at = content.rindex(b"PK\x01\x02", 0, content.rindex(name))
    content[at + 24 : at + 28] = struct.pack("<I", size)
    place.write_bytes(bytes(content))
    return place


@case("declares 20,000 files")
def very_many_members(source, place):
    with zipfile.ZipFile(place, "w") as archive:
        for number in range(20_000):
            archive.writestr(str(number), b"")
    return place


@case("declares a table of contents of")
def huge_table_of_contents(source, place):
    zip_of(source, place)
    content = bytearray(place.read_bytes())
    content[-10:-6] = struct.pack("<I", 2**31)
    place.write_bytes(bytes(content))
    return place


@case("zip64")
def archive_of_the_large_kind(source, place):
    zip_of(source, place)
    content = place.read_bytes()
    place.write_bytes(content[:-22] + struct.pack("<4sLQL", b"PK\x06\x07", 0, len(content), 1) + content[-22:])
    return place


# Folders


@case("is a link, a folder or a device")
def folder_with_a_link(source, place):
    target = folder(source, place)
    part = next(target.glob("arrays-*"))
    outside = place.parent / "outside.npz"
    part.rename(outside)
    part.symlink_to(outside)
    return target


@case("is a link, a folder or a device")
def folder_with_a_pipe(source, place):
    import os

    target = folder(source, place)
    part = next(target.glob("arrays-*"))
    part.unlink()
    os.mkfifo(part)
    return target


# Arrays


@case("an array of objects")
def array_of_objects(source, place):
    file = io.BytesIO()
    np.save(file, np.array([Bomb(place.parent / "ran")], dtype=object), allow_pickle=True)
    return consistent(source, place, change=first_array(file.getvalue()), part="arrays")


@case("declares 8,000,000,000,000 bytes of numbers and holds 8")
def array_of_declared_terabytes(source, place):
    text = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"
    return consistent(source, place, change=first_array(header(text)), part="arrays")


@case("expected lengths of at least 0")
def array_of_negative_length(source, place):
    text = "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1), }"
    return consistent(source, place, change=first_array(header(text)), part="arrays")


@case(r"has the shape \(True,\); expected lengths")
def array_of_a_true_length(source, place):
    text = "{'descr': '<f8', 'fortran_order': False, 'shape': (True,), }"
    return consistent(source, place, change=first_array(header(text)), part="arrays")


@case("has a header that cannot be read")
def array_with_code_for_a_header(source, place):
    text = f"__import__('pathlib').Path({str(place.parent / 'ran')!r}).touch()"
    return consistent(source, place, change=first_array(header(text)), part="arrays")


@case("has a header that cannot be read")
def array_with_a_huge_header(source, place):
    content = b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31) + bytes(100)
    return consistent(source, place, change=first_array(content), part="arrays")


@case("has a header that cannot be read")
def array_with_a_deep_header(source, place):
    return consistent(source, place, change=first_array(header("(" * 9000, (2, 0))), part="arrays")


@case(r"version \(3, 0\)")
def array_of_another_version(source, place):
    return consistent(source, place, change=first_array(header("{}", (3, 0))), part="arrays")


@case("expected numbers, truth values or dates")
def array_of_records(source, place):
    text = "{'descr': [('a', '<f4'), ('b', '<f4')], 'fortran_order': False, 'shape': (1,), }"
    return consistent(source, place, change=first_array(header(text)), part="arrays")


@case("expected 0.npy, 1.npy")
def array_of_another_name(source, place):
    return consistent(source, place, change=lambda _: npz({"0.npy": b"", "evil.pkl": b""}), part="arrays")


@case("declares [0-9,]+ bytes when unpacked")
def arrays_that_are_a_bomb(source, place):
    def change(_):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("0.npy", bytes(50_000_000))
        return file.getvalue()

    return consistent(source, place, change=change, part="arrays")


@case("refers to the array")
def array_that_is_not_there(source, place):
    return consistent(source, place, change=in_data(data={"$npy": 10**6}))


# The record


@case("nested too deeply")
def json_of_great_depth(source, place):
    return consistent(source, place, change=lambda text: text[:-1] + b', "more": ' + b"[" * 300_000)


@case("which no float can hold")
def number_beyond_floats(source, place):
    return consistent(source, place, change=lambda text: text.replace(b'"seed": 0', b'"seed": 1e999'))


@case("its content is")
def record_that_is_a_list(source, place):
    return consistent(source, place, change=lambda _: b"[]")


@case("expected settings, models, data")
def record_with_more(source, place):
    return consistent(source, place, change=in_json(lambda found: found.update(more=1)))


@case("the dtype 'V1000000000'")
def data_of_huge_cells(source, place):
    return consistent(source, place, change=in_data(dtype="V1000000000"))


@case("an array of text declares")
def text_of_huge_cells(source, place):
    return consistent(source, place, change=in_data(dtype="<U500000000", shape=[2], data=["a", "b"]))


@case("expected lengths of at least 0")
def data_of_negative_shape(source, place):
    return consistent(source, place, change=in_data(shape=[-1, 4]))


@case("cannot reshape")
def data_of_another_shape(source, place):
    return consistent(source, place, change=in_data(shape=[10**15, 4]))


@case("expected an array or a frame")
def data_that_is_text(source, place):
    return consistent(source, place, change=in_json(lambda found: found.update(data="rows")))


@case("the training data cannot be read")
def data_of_an_unknown_type(source, place):
    evil = {"$type": "os.system", "data": "touch ran"}
    return consistent(source, place, change=in_json(lambda found: found.update(data=evil)))


@case("of the library 'os'")
def table_of_another_library(source, place):
    evil = {"$type": "table", "library": "os", "names": ["a"], "types": [{"name": "system"}], "data": [[1]]}
    return consistent(source, place, change=in_json(lambda found: found.update(data=evil)))


@case("the polars type 'read_csv'")
def column_of_a_function(source, place):
    kind = {"name": "read_csv", "source": "/etc/passwd"}
    evil = {"$type": "table", "library": "polars", "names": ["a"], "types": [kind], "data": [[1]]}
    return consistent(source, place, change=in_json(lambda found: found.update(data=evil)))


@case(r"a column of shape \(\) stands in a frame of 1000000000000 rows")
def frame_of_endless_rows(source, place):
    rows = {"$type": "range", "data": [0, 10**12, 1], "names": [None]}
    names = {"$type": "range", "data": [0, 1, 1], "names": [None]}
    cell = {"$type": "array", "dtype": "<f8", "shape": [], "data": 1.0}
    evil = {"$type": "frame", "data": [cell], "columns": names, "index": rows}
    return consistent(source, place, change=in_json(lambda found: found.update(data=evil)))


def long_range(n=2 * 10**8):
    return {"$type": "range", "data": [0, n, 1], "names": [None]}


def with_data(source, place, evil):
    return consistent(source, place, change=in_json(lambda found: found.update(data=evil)))


@case("a range declares 12,800,000,000 bytes")
def index_of_a_long_range(source, place):
    return with_data(source, place, {"$type": "multiindex", "data": [long_range()], "names": [None]})


@case("a range declares 6,400,000,000,000 bytes")
def column_of_a_long_range(source, place):
    return with_data(source, place, {"$type": "extension", "data": long_range(10**11), "dtype": "Int64"})


@case("a range declares 12,800,000,000 bytes")
def categories_of_a_long_range(source, place):
    column = {"$type": "category", "data": [0] * 60, "index": long_range(), "ordered": False}
    return with_data(
        source, place, {"$type": "frame", "data": [column], "columns": long_range(1), "index": long_range(60)}
    )


@case("a range declares")
def tuple_of_a_long_range(source, place):
    return with_data(source, place, {"$type": "tuple", "data": long_range(-1 + 2**33)})


@case("800,000,000 with those before; at most 536,870,912 in all")
def many_arrays_of_wide_text(source, place):
    return with_data(source, place, [{"$type": "array", "dtype": "<U100000000", "shape": [1], "data": ["a"]}] * 12)


@case("an array of text declares 40,000,000,000 bytes")
def text_of_more_cells_than_its_shape(source, place):
    evil = {"$type": "array", "dtype": "<U100000000", "shape": [1], "data": ["a"] * 100}
    return with_data(source, place, evil)


@case("expected one of pandas")
def column_of_wide_text(source, place):
    return with_data(source, place, {"$type": "extension", "data": ["a"], "dtype": "<U100000000"})


@case("a column of arrays has the length 4000000000")
def column_of_long_arrays(source, place):
    kind = {"name": "Array", "inner": {"name": "Int8"}, "shape": 4 * 10**9}
    evil = {"$type": "table", "library": "polars", "names": ["a"], "types": [kind], "data": [[None] * 60]}
    return with_data(source, place, evil)


@case("a table declares 8,000,000,000 bytes")
def column_of_many_arrays(source, place):
    kind = {"name": "Array", "inner": {"name": "Int8"}, "shape": 10**6}
    evil = {"$type": "table", "library": "polars", "names": ["a"], "types": [kind], "data": [[None] * 1000]}
    return with_data(source, place, evil)


@case("refers to the array 0 twice")
def array_that_is_used_again_and_again(source, place):
    return consistent(source, place, change=in_json(lambda found: found.update(data=[{"$npy": 0}] * 60)))


@case("holds numbers of")
def array_of_wider_numbers(source, place):
    return consistent(source, place, change=in_data(dtype="<f2"))


@case("about 17,0.*values; at most 16,777,216")
def json_of_very_many_values(source, place):
    return consistent(source, place, change=lambda _: b"[" + b"1," * 17_000_000 + b"1]")


@case("names 'twice' twice")
def manifest_of_very_many_names(source, place):
    names = ",".join(f'"{at:x}":0' for at in range(60_000))
    return write(place, f'{{{names},"twice":0,"twice":0}}'.encode(), {})


@case("the training data cannot be read")
def fraction_that_fills_the_memory(source, place):
    evil = {"$type": "fractions.Fraction", "data": "1e999999999"}
    return consistent(source, place, change=in_json(lambda found: found.update(data=evil)))


@case("expected 120 whole numbers from 0 to 1")
def labels_out_of_range(source, place):
    evil = {"$type": "array", "dtype": "<i8", "shape": [120], "data": [7] * 120}
    return consistent(source, place, change=in_json(lambda found: found["said"].update(labels=evil)))


@case("numbers from 0 to 1")
def probabilities_that_are_nan(source, place):
    evil = {"$type": "array", "dtype": "<f8", "shape": [120], "data": ["nan"] * 120}
    return consistent(source, place, change=in_json(lambda found: found["said"].update(proba=evil)))


@case("the noise of the model is")
def noise_that_is_negative(source, place):
    evil = [["float64", -1.0, 0.0, False, False]]
    return consistent(source, place, change=in_json(lambda found: found["said"].update(noise=evil)))


@case("expected weights of 4 columns, 2 classes")
def second_opinion_of_other_columns(source, place):
    shapes = ([5, 3], [3], [3, 2], [2])
    evil = [{"$type": "array", "dtype": "<f4", "shape": shape, "data": [0.0] * int(np.prod(shape))} for shape in shapes]
    return consistent(source, place, change=in_json(lambda found: found["said"].update(opinions=[evil])))


@case("expected weights of 4 columns, 2 classes")
def second_opinion_that_is_no_network(source, place):
    return consistent(source, place, change=in_json(lambda found: found["said"].update(opinions={"evil": 1})))


@case("the fingerprint has the tolerance")
def fingerprint_that_allows_everything_by_text(source, place):
    return consistent(
        source, place, change=in_json(lambda found: found["said"]["fingerprint"].update(tolerance="everything"))
    )


@case("is not the model that the explainer was fitted with")
def fingerprint_of_another_model(source, place):
    def edit(found):
        evil = {"$type": "array", "dtype": "<U8", "shape": [2], "data": ["yes", "no"]}
        found["said"]["fingerprint"]["classes"] = evil

    return consistent(source, place, change=in_json(edit))


@case("nothing that a file names is run unasked")
def relation_that_is_a_function(source, place):
    evil = [{"reference": "os:system"}]
    return consistent(source, place, change=in_json(lambda found: found["settings"]["features"].update(relations=evil)))


@case("nothing that a file names is run unasked")
def distance_that_is_a_function(source, place):
    evil = {"reference": "hostile_module:run"}
    return consistent(source, place, change=in_json(lambda found: found["settings"].update(distance=evil)))


@case("SearchConfig cannot be made of it")
def unknown_setting(source, place):
    return consistent(source, place, change=in_json(lambda found: found["settings"]["search"].update(evil=1)))


@case("SearchConfig cannot be made of it")
def setting_of_another_type(source, place):
    return consistent(source, place, change=in_json(lambda found: found["settings"]["search"].update(beta="a")))


@case("Features cannot be made of it")
def rule_of_another_type(source, place):
    return consistent(source, place, change=in_json(lambda found: found["settings"]["features"].update(ranges=1)))


@case("no prototypes named 'evil'")
def provider_that_nobody_registered(source, place):
    return consistent(source, place, change=in_json(lambda found: found["settings"].update(prototypes="evil")))


@case("seed is")
def seed_that_is_text(source, place):
    return consistent(source, place, change=in_json(lambda found: found["settings"].update(seed="0")))


# The model


def with_model(source, place, content, suffix, adapter):
    """Another model file, and what the record says of it."""
    manifest, parts = parts_of(source)
    parts["model"] = content
    parts["explainer"] = in_json(lambda found: found["models"]["model"].update(adapter=adapter, suffix=suffix))(
        parts["explainer"]
    )
    names = {name: f"{name}{Path(each['name']).suffix}" for name, each in manifest["files"].items()}
    names["model"] = f"model{suffix}"
    manifest["files"] = {
        name: {"name": names[name], "bytes": len(parts[name]), "sha256": hashlib.sha256(parts[name]).hexdigest()}
        for name in parts
    }
    return write(place, sealed(manifest), {names[name]: parts[name] for name in parts})


@case("does not read safely")
def model_that_is_a_pickle(source, place):
    bomb = pickle.dumps(Bomb(place.parent / "ran"))
    return with_model(source, place, bomb, ".pkl", "sklearn")


@case("does not read safely")
def model_that_is_a_pickle_of_torch(source, place):
    bomb = pickle.dumps(Bomb(place.parent / "ran"))
    return with_model(source, place, bomb, ".pt", "torch")


@case("cannot be loaded")
def model_that_is_nonsense(source, place):
    return with_model(source, place, b'{"learner": []}', ".json", "xgboost")


@case("no adapters named 'evil'")
def model_of_an_unknown_adapter(source, place):
    return with_model(source, place, b"{}", ".json", "evil")


@case("was saved by reference")
def model_that_is_not_there(source, place):
    manifest, parts = parts_of(source)
    files = {part: each for part, each in manifest["files"].items() if part != "model"}
    return write(place, sealed({**manifest, "files": files}), {each["name"]: parts[p] for p, each in files.items()})


@case("as an archive declares")
def model_that_is_a_bomb(source, place):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", bytes(1000))
    inner = place.with_suffix(".inner")
    inner.write_bytes(file.getvalue())
    content = declaring(inner, b"schema.json", 4_000_000_000).read_bytes()
    return with_model(source, place, content, ".skops", "sklearn")


@case("types that could do harm|cannot be loaded")
def model_of_untrusted_types(source, place):
    """What skops calls a function by."""
    node = {"__class__": "system", "__module__": "posix", "__loader__": "FunctionNode", "__id__": 1}
    content = npz({"schema.json": json.dumps({**node, "protocol": 2, "_skops_version": "0.16.0"})})
    return with_model(source, place, content, ".skops", "sklearn")


def in_trees(edit):
    """A change of the model of XGBoost, by a function that edits its first tree; XGBoost itself would crash."""

    def change(text):
        found = json.loads(text)
        edit(found["learner"]["gradient_booster"]["model"]["trees"][0])
        return json.dumps(found).encode()

    return change


@case("a node of a tree has an unknown child")
def tree_with_a_child_far_away(source, place):
    change = in_trees(lambda tree: tree["left_children"].__setitem__(0, 10**6))
    return consistent(source, place, change=change, part="model")


@case("a node of a tree has an unknown child")
def tree_with_a_negative_child(source, place):
    change = in_trees(lambda tree: tree["left_children"].__setitem__(0, -5))
    return consistent(source, place, change=change, part="model")


@case("the nodes of a tree form a circle")
def tree_that_never_ends(source, place):
    change = in_trees(lambda tree: tree["left_children"].__setitem__(0, 0))
    return consistent(source, place, change=change, part="model")


@case("a tree splits an unknown column")
def tree_with_a_column_far_away(source, place):
    change = in_trees(lambda tree: tree["split_indices"].__setitem__(0, 10**6))
    return consistent(source, place, change=change, part="model")


@case("declares another number of nodes")
def tree_of_declared_gigabytes(source, place):
    change = in_trees(lambda tree: tree["tree_param"].__setitem__("num_nodes", "1000000000"))
    return consistent(source, place, change=change, part="model")


def with_classes(source, place, count):
    def edit(found):
        found["learner"]["learner_model_param"]["num_class"] = count

    return consistent(source, place, change=in_json(edit), part="model")


@case("it declares 1000000000 classes for 5 trees")
def model_of_very_many_classes(source, place):
    return with_classes(source, place, "1000000000")


@case("it declares 9999 classes for 5 trees")
def model_of_classes_without_a_tree(source, place):
    return with_classes(source, place, "9999")


def with_rounds(source, place, starts):
    def edit(found):
        found["learner"]["attributes"]["best_iteration"] = "1"
        found["learner"]["gradient_booster"]["model"]["iteration_indptr"] = starts

    return consistent(source, place, change=in_json(edit), part="model")


@case("its rounds start at the trees .* expected numbers that rise from 0 to 5")
def model_of_rounds_before_its_first_tree(source, place):
    return with_rounds(source, place, [-100_000, 1, 2, 3, 4, 5])


@case("its rounds start at the trees")
def model_of_rounds_beyond_its_last_tree(source, place):
    return with_rounds(source, place, [0, 1, 2, 3, 4, 10**6])


@case("its rounds start at the trees")
def model_of_rounds_that_fall(source, place):
    return with_rounds(source, place, [0, 4, 3, 2, 4, 5])


@case("does not read safely")
def model_in_the_other_format_of_xgboost(source, place):
    return with_model(source, place, b"{L", ".ubj", "xgboost")
