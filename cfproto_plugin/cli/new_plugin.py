"""`cfproto new-plugin`: a working package to start from."""

from __future__ import annotations

import importlib.util
import keyword
import re
import shlex
import sys
from importlib.metadata import entry_points, version
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import NamedTuple

import click

FILES = {
    "pyproject.toml.txt": "pyproject.toml",
    "README.md.txt": "README.md",
    "package.py.txt": "src/{package}/__init__.py",
    "model.py.txt": "src/{package}/model.py",
    "plugin.py.txt": "src/{package}/plugin.py",
    "test_plugin.py.txt": "tests/test_plugin.py",
}
_PREFIX = "cfproto-"


class Names(NamedTuple):
    """One name in its spellings."""

    name: str  # of the distribution: cfproto-acme-net
    package: str  # to import: cfproto_acme_net
    plugin: str  # of the plugin and its adapter: acme-net


_HELP = """Write a package NAME that adds a model type: pyproject, adapter, tests and README. It works as it is.

\b
Example:
    cfproto new-plugin cfproto-acme
    cd cfproto-acme
    pip install -e '.[test]'
    pytest

Exit status: 0 written, 2 the name cannot be used or the folder exists.
"""


@click.command("new-plugin", help=_HELP, short_help="Write a plugin package to start from.")
@click.argument("name")
@click.option(
    "--directory",
    default=".",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to write the folder NAME.",
)
def command(name: str, directory: Path) -> None:
    names = _checked(name)
    folder = directory / names.name
    if folder.exists():
        raise click.UsageError(f"{folder} exists already; nothing was written. Choose another name or --directory.")
    try:
        _write(folder, names)
    except OSError as error:
        raise click.UsageError(f"{folder} cannot be written: {error}") from error
    click.echo(f"Wrote {folder}: a plugin named {names.plugin!r} in the package {names.package}. Next:")
    for line in (f"cd {shlex.quote(str(folder))}", "pip install -e '.[test]'", "pytest", "cfproto plugins"):
        click.echo(f"  {line}")
    click.echo(f"Then put your model into src/{names.package}/plugin.py; README.md says how.")


def _write(folder: Path, names: Names) -> None:
    words = {**names._asdict(), "title": names.plugin, "version": version("cfproto-plugin")}
    for template, target in FILES.items():
        path = folder / target.format(package=names.package)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = files("cfproto_plugin").joinpath("cli", "templates", template).read_text(encoding="utf-8")
        path.write_text(Template(text).substitute(words), encoding="utf-8")


def _checked(name: str) -> Names:
    """The spellings of a name that a distribution, a package and a plugin can have."""
    names = _spelled(name)
    wrong = _what_is_wrong(name, names)
    if wrong:
        raise click.UsageError(f"{name!r} {wrong}. Use a name such as {_suggestion(name)!r}.")
    return names


def _spelled(name: str) -> Names:
    """Lower case with dashes, as package indexes compare names."""
    normal = re.sub(r"[-_.]+", "-", name).lower()
    return Names(normal, normal.replace("-", "_"), normal.removeprefix(_PREFIX))


def _what_is_wrong(name: str, names: Names) -> str:
    if not re.fullmatch(r"[A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9._-]*[A-Za-z0-9]", name):
        return "is no name of a package: letters a to z, digits, and single - _ . between them"
    if not names.package.isidentifier() or keyword.iskeyword(names.package):
        return f"gives the package {names.package!r}, which Python cannot import"
    if names.package in sys.stdlib_module_names or importlib.util.find_spec(names.package) is not None:
        return f"gives the package {names.package!r}, which is another that can be imported here already"
    for entry in entry_points(group="cfproto_plugin"):
        if entry.name == names.plugin:
            source = entry.dist.name if entry.dist else entry.value
            return f"gives the plugin {names.plugin!r}, and one of that name is installed ({source})"
    return ""


def _suggestion(name: str) -> str:
    """The nearest name that can be used."""
    base = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-").removeprefix(_PREFIX.strip("-")).strip("-") or "acme"
    candidates = (f"{_PREFIX}{base}", f"{_PREFIX}my-{base}", f"{_PREFIX}my-{base}-2")
    return next((c for c in candidates if not _what_is_wrong(c, _spelled(c))), f"{_PREFIX}acme")
