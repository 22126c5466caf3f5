"""The page "Write a plugin" can be followed from an empty folder, and the hook reference is that of the code."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from cfproto_plugin import Explanation, Features, SearchConfig

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(python|toml|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (\S+\.\w+)(, continued)?\n")
NOT_OURS = {"PYTHONPATH", "CFPROTO_DISABLE_PLUGINS", "PYTEST_ADDOPTS"}
CFPROTO = "import sys; from cfproto_plugin.cli import main; sys.path.pop(0); main(prog_name='cfproto')"


@pytest.fixture
def python(tmp_path):
    """An environment that sees the product of this one and can be installed into."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    (site,) = (tmp_path / "env").glob("lib/python*/site-packages")
    parents = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    (site / "parent.pth").write_text("".join(f"import site; site.addsitedir({path!r})\n" for path in sorted(parents)))
    return tmp_path / "env" / "bin" / "python"


def commands(text):
    """The commands of a console block, each with what it should print."""
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)
    assert not parts[0], f"a console block starts with {parts[0]!r}"
    return [part.partition("\n")[::2] for part in parts[1:]]


def translated(command, python):
    """The command for an environment that has no commands of its own."""
    name, *arguments = shlex.split(command)
    known = {
        "python": [python],
        "sed": ["sed"],
        "pytest": [python, "-m", "pytest", "-p", "no:cacheprovider"],
        "cfproto": [python, "-c", CFPROTO],
        "pip": [sys.executable, "-m", "pip", "--python", python, "-q"],
    }
    return list(map(str, [*known[name], *arguments]))


def pattern(expected):
    """Three dots stand for anything, blanks for any blanks, and times differ."""
    words = re.escape(" ".join(expected.split())).replace(r"\ ", r"\s+")
    return re.sub(r"\d+\\s\+ms", r"\\d+\\s+ms", words.replace(r"\.\.\.", ".*"))


def run(command, expected, folder, python):
    env = {name: value for name, value in os.environ.items() if name not in NOT_OURS}
    done = subprocess.run(translated(command, python), cwd=folder, env=env, capture_output=True, text=True, check=False)
    told = f"$ {command}\n{done.stdout}{done.stderr}"
    assert done.returncode == int("failed" in expected), told
    assert not expected or re.fullmatch(pattern(expected), done.stdout.strip(), re.DOTALL), told


@pytest.mark.install
def test_page_can_be_followed_block_by_block(python, tmp_path):
    blocks = BLOCK.findall((DOCS / "write-a-plugin.md").read_text())
    assert len(blocks) > 15
    folder = tmp_path / "work"
    folder.mkdir()
    for kind, text in blocks:
        if kind == "console":
            for command, expected in commands(text):
                run(command, expected, folder, python)
        else:
            head = FILE.match(text)
            assert head, f"the block does not say which file it is:\n{text}"
            name, continued = head.groups()
            assert bool(continued) == (folder / name).exists(), (
                f"{name} is written twice, or continued before it exists"
            )
            with (folder / name).open("a") as file:
                file.write(text[head.end() :])
    written = sorted(path.name for path in (folder / "cfproto-mine").iterdir())
    assert written == ["README.md", "pyproject.toml", "src", "tests"]


def test_page_has_no_block_that_is_not_run():
    text = (DOCS / "write-a-plugin.md").read_text()
    assert len(re.findall(r"^```\w*$", text, re.MULTILINE)) == 2 * len(BLOCK.findall(text))


def test_hook_reference_and_classes_are_those_of_the_code():
    spec = importlib.util.spec_from_file_location("reference", DOCS / "reference.py")
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    for name, text in {"hooks.md": reference.page(), "api.md": reference.api_page()}.items():
        assert (DOCS / name).read_text() == text, f"{name}: run `python docs/reference.py`"


def test_every_setting_and_field_is_on_the_page_of_classes():
    text = (DOCS / "api.md").read_text()
    for kind in (SearchConfig, Features, Explanation):
        for field in dataclasses.fields(kind):
            if field.name.startswith("_"):
                continue
            assert f"\n    {field.name}: " in text, f"{kind.__name__}.{field.name}"
