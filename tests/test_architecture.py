"""The direction of imports, read from the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
CORE = sorted((TOP / "cfproto_plugin").rglob("*.py"))
ADAPTERS = sorted((TOP / "adapters").rglob("*.py"))
FRAMEWORKS = {"torch", "tensorflow", "keras", "xgboost"}
OPTIONAL = FRAMEWORKS | {"pandas", "matplotlib"}
ENGINE = ("cfproto_plugin/search", "cfproto_plugin/prototypes", "cfproto_plugin/distances")
ABOVE_THE_ENGINE = {"explainer", "explanation", "cli", "testing"}


def imports(path: Path, *, top_level: bool = False) -> Iterator[str]:
    """The modules a file imports; with top_level only those imported when it is."""
    tree = ast.parse(path.read_text())
    for node in tree.body if top_level else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def named(path: Path) -> str:
    return path.relative_to(TOP).as_posix()


@pytest.mark.parametrize("path", CORE, ids=named)
def test_core_knows_no_framework(path):
    allowed = {"xgboost"} if path.name == "breast_cancer.py" else set()
    assert not {module.partition(".")[0] for module in imports(path)} & (FRAMEWORKS - allowed)


@pytest.mark.parametrize("path", CORE + ADAPTERS, ids=named)
def test_nothing_optional_is_imported_at_module_level(path):
    assert not {module.partition(".")[0] for module in imports(path, top_level=True)} & OPTIONAL


@pytest.mark.parametrize("path", ADAPTERS, ids=named)
def test_adapters_see_only_public_names_and_protocols(path):
    seen = {module for module in imports(path) if module.startswith("cfproto_plugin")}
    assert seen <= {"cfproto_plugin", "cfproto_plugin.protocols", "cfproto_plugin.errors"}


@pytest.mark.parametrize("path", [path for path in CORE if named(path).startswith(ENGINE)], ids=named)
def test_engine_does_not_import_what_stands_above_it(path):
    above = {f"cfproto_plugin.{name}" for name in ABOVE_THE_ENGINE}
    assert not set(imports(path)) & above


@pytest.mark.parametrize("path", CORE + ADAPTERS, ids=named)
def test_library_code_has_no_assert_and_no_print(path):
    tree = ast.parse(path.read_text())
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    calls = [node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    assert "print" not in calls
