"""Where an explainer is saved: what is there already and is not ours is never lost, and odd paths work or are named."""

from __future__ import annotations

import json
import os
import shutil
import time
import zipfile

import pytest
from saved_cases import by_first, numbers

from cfproto_plugin import CounterfactualExplainer
from cfproto_plugin.errors import FileError, InputError, WriteError
from cfproto_plugin.files import writing

load = CounterfactualExplainer.load


@pytest.fixture(scope="module")
def explainer():
    return CounterfactualExplainer(by_first).fit(numbers(60)[0])


def zip_of(path, **files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"{name}.json", text)


@pytest.mark.parametrize(
    "make",
    [
        lambda path: zip_of(path, thesis="{}"),
        lambda path: zip_of(path, manifest='{"manifest_version": 3}'),
        lambda path: zip_of(path, manifest="[1]"),
        lambda path: path.write_text("my notes"),
    ],
)
def test_a_file_of_somebody_else_is_not_replaced_whatever_its_name(explainer, tmp_path, make):
    path = tmp_path / "thesis.zip"
    make(path)
    before = path.read_bytes()
    with pytest.raises(FileError, match=r"thesis.zip' is there already and is no saved explainer; nothing was written"):
        explainer.save(path, model="reference")
    assert path.read_bytes() == before


def test_a_pipe_is_not_replaced(explainer, tmp_path):
    os.mkfifo(tmp_path / "a.zip")
    with pytest.raises(FileError, match="is no saved explainer"):
        explainer.save(tmp_path / "a.zip", model="reference")
    with pytest.raises(FileError, match="there is no saved explainer"):
        load(tmp_path / "a.zip", by_first)


def test_an_empty_file_such_as_a_temporary_one_is_replaced(explainer, tmp_path):
    (tmp_path / "a.zip").touch()
    explainer.save(tmp_path / "a.zip", model="reference")
    assert load(tmp_path / "a.zip", by_first).fitted_ is not None


@pytest.mark.parametrize(
    "files",
    [
        {"manifest.json": '{"manifest_version": 3}', "background.js": ""},
        {"manifest.json": '{"manifest_version": 3}'},
        {"manifest.json": "not JSON"},
        {"model.json": "{}", "arrays.npz": ""},
    ],
)
def test_a_folder_whose_files_have_names_like_ours_is_not_touched(explainer, tmp_path, files):
    folder = tmp_path / "a"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
        os.utime(folder / name, (time.time() - 10**6,) * 2)
    with pytest.raises(FileError, match=r"holds '.*' and is no saved explainer; nothing was written"):
        explainer.save(folder, model="reference")
    assert {each.name: each.read_text() for each in folder.iterdir()} == files


def test_files_of_others_in_the_folder_of_an_explainer_are_kept_however_old_they_are(explainer, tmp_path):
    explainer.save(tmp_path / "a", model="reference")
    (tmp_path / "a" / "model.json").write_text("{}")
    os.utime(tmp_path / "a" / "model.json", (time.time() - 10**6,) * 2)
    explainer.save(tmp_path / "a", model="reference")
    assert (tmp_path / "a" / "model.json").read_text() == "{}"


def test_a_file_that_was_unpacked_by_hand_is_a_folder_that_loads_and_can_be_saved_to(explainer, tmp_path):
    explainer.save(tmp_path / "a.zip", model="reference")
    zipfile.ZipFile(tmp_path / "a.zip").extractall(tmp_path / "a")
    assert load(tmp_path / "a", by_first).fitted_ is not None
    explainer.save(tmp_path / "a", model="reference")
    assert load(tmp_path / "a", by_first).fitted_ is not None
    assert len(list((tmp_path / "a").iterdir())) == 3


@pytest.mark.parametrize("path", ["", "a\0b", b"bytes", 3, None])
def test_what_is_no_path_is_named(explainer, path):
    with pytest.raises(InputError, match="path is"):
        explainer.save(path)
    with pytest.raises(InputError, match="path is"):
        load(path)


@pytest.mark.parametrize("name", ["x" * 300, f"{'x' * 300}.zip"])
def test_a_name_that_the_system_does_not_take_is_our_error(explainer, tmp_path, name):
    with pytest.raises(WriteError, match="File name too long"):
        explainer.save(tmp_path / name, model="reference")


@pytest.mark.parametrize("name", ["a b\nc ü☃", "a b\nc ü☃.cfproto", ".hidden", "x.zip.d"])
def test_spaces_lines_and_letters_of_any_script_may_be_in_a_path(explainer, tmp_path, name):
    explainer.save(tmp_path / name, model="reference")
    assert load(tmp_path / name, by_first).fitted_ is not None
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_a_relative_path_is_that_of_the_current_folder_and_an_explainer_can_be_moved(explainer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    explainer.save("a", model="reference")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    shutil.move(tmp_path / "a", "b")
    assert load("b", by_first).fitted_ is not None
    (tmp_path / "elsewhere" / "here").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere" / "here")
    explainer.save(".", model="reference")
    assert load(".", by_first).fitted_ is not None


@pytest.mark.parametrize("name", ["a", "a.zip"])
@pytest.mark.parametrize(("number", "words"), [(28, "No space left on device"), (13, "Permission denied")])
def test_a_full_disk_and_a_folder_that_is_read_only_leave_what_was_there(
    explainer, tmp_path, monkeypatch, name, number, words
):
    path = tmp_path / name
    explainer.save(path, model="reference")
    before = {each.name: each.read_bytes() for each in [*path.parent.iterdir(), *path.glob("*")] if each.is_file()}

    def fails(handle):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(writing.os, "fsync", fails)
    other = CounterfactualExplainer(by_first).fit(numbers(70)[0])
    with pytest.raises(WriteError, match=rf"{words}\); what was there before is unchanged") as caught:
        other.save(path, model="reference")
    assert isinstance(caught.value, OSError)
    after = {each.name: each.read_bytes() for each in [*path.parent.iterdir(), *path.glob("*")] if each.is_file()}
    assert after == before


def test_the_manifest_of_a_folder_says_so_if_it_is_a_link(explainer, tmp_path):
    explainer.save(tmp_path / "a", model="reference")
    manifest = tmp_path / "a" / "manifest.json"
    manifest.rename(tmp_path / "kept.json")
    manifest.symlink_to(tmp_path / "kept.json")
    with pytest.raises(FileError, match="is a link"):
        load(tmp_path / "a", by_first)
    with pytest.raises(FileError, match="is no saved explainer"):
        explainer.save(tmp_path / "a", model="reference")
    assert json.loads((tmp_path / "kept.json").read_text())["format"] == "cfproto-explainer"
