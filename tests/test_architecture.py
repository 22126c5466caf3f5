"""The direction of imports and who may ask what, read from the source.

Each rule is a function from the top of a source tree to a list of complaints, empty if the rule is kept. The tests at
the end hand small trees that break a rule to the same functions.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

TOP = Path(__file__).parent.parent
CORE, ADAPTERS = "cfproto_plugin", "adapters/cfproto_adapters"

# A part may import the parts on the lines above its own, and nothing else; inside a part everything but a cycle is
# allowed. "search" stands for the modules at the ground of that package: those of SEARCH. An integration that is called
# by the result of `explain` has a line of its own.
ALLOWED = """
errors protocols checks
config features hookspecs helpers
plugins distances prototypes arguments
tables
search
search.objective
search.methods search.refine
search.incumbent search.solved
search.driver
search.solve
search.portions
search.proofs
search.several
report files
integrations.shap integrations.notebook
answers
explanation
fitted
lines saving asking
call result
explainer
cfproto_plugin
metrics datasets integrations
testing
cli
"""
RANK = {part: rank for rank, line in enumerate(ALLOWED.split("\n")) for part in line.split()}
SEARCH = {"task", "judge", "clock", "candidates", "targets", "intervals", "model", "plan", "tuning", "guide", "how"}
SEARCH |= {"failures", "first", "floors", "copies", "typicality", "shortfall", "lookup"}
SEARCH |= {"noise", "boundary", "fingerprint", "parts", "training", "reached", "opinion"}

MODULES = {
    *("explainer", "explanation", "fitted", "config", "features", "errors", "protocols", "hookspecs", "datasets"),
    *("checks", "answers", "arguments", "asking", "call", "lines", "result", "saving"),
}
PACKAGES = {part for part in RANK if "." not in part} - MODULES - {CORE}
PUBLIC = {CORE, f"{CORE}.protocols", f"{CORE}.errors", f"{CORE}.helpers"}  # what adapters see

FRAMEWORKS = {"torch", "tensorflow", "keras", "xgboost", "lightgbm", "onnxruntime", "catboost", "jax"}
OPTIONAL = FRAMEWORKS | {"pandas", "matplotlib"}
# what a folder or module of integrations is made for
TOOLS = {"mlflow", "shap", "captum", "anywidget", "mlserver", "kserve", "ray", "dask", "pyspark"}
HOMES = {"anywidget": "notebook"}  # of a tool whose integration has another name
IMPORTERS = {"import_module", "__import__", "find_spec"}
PROTOCOLS = {"ModelAdapter", "GradientAdapter", "Capabilities", "PrototypeProvider", "CategoryDistance"}
CAPABILITIES = {
    *("vjp", "quick", "trees", "thresholds", "labels", "classes", "accepts_frames", "feature_names", "max_rows"),
    "fixed_rows",
    *("row_by_row", "scores", "scored", "session"),
    *("space", "cfproto_origin"),
}


class Source(NamedTuple):
    """A file of a package, under the name it is imported by."""

    module: str
    path: Path
    tree: ast.Module


class Edge(NamedTuple):
    """`source` imports `target` in that line."""

    source: str
    target: str
    line: int

    def __str__(self) -> str:
        return f"{self.source} imports {self.target} (line {self.line})"


@functools.cache
def sources(top: Path, package: str = CORE) -> list[Source]:
    """The files of a package below top, in order."""
    found, folder = [], top / package
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.append(Source(module, path, ast.parse(path.read_text(encoding="utf-8"))))
    return found


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node, those inside functions too; not what is imported for the type checker only."""
    yield tree
    for child in ast.iter_child_nodes(tree):
        if isinstance(tree, ast.If) and child in tree.body and ast.unparse(tree.test).endswith("TYPE_CHECKING"):
            continue
        yield from statements(child)


def imports(source: Source, known: set[str] | None = None) -> Iterator[Edge]:
    """What a file imports; `from a import b` imports a.b if that is a module, else a."""
    modules = known or set()
    for node in statements(source.tree):
        if isinstance(node, ast.Import):
            yield from (Edge(source.module, alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(source, node)
            targets = {f"{base}.{a.name}" if f"{base}.{a.name}" in modules else base for a in node.names}
            yield from (Edge(source.module, target, node.lineno) for target in sorted(targets))


def _absolute(source: Source, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = source.module.split(".") if source.path.name == "__init__.py" else source.module.split(".")[:-1]
    return ".".join([*package[: len(package) - node.level + 1], *filter(None, [node.module])])


def own_edges(top: Path) -> list[Edge]:
    """The imports of the core from itself."""
    found = sources(top)
    known = {source.module for source in found}
    edges = (edge for source in found for edge in imports(source, known))
    return [edge for edge in edges if edge.target.split(".")[0] == CORE]


def part(module: str) -> str:
    """The part of the table that a module belongs to."""
    names = module.split(".")[1:]
    if not names:
        return CORE
    if names[0] == "search" and len(names) > 1:
        return "search" if names[1] in SEARCH else f"search.{names[1]}"
    return ".".join(names[:2]) if ".".join(names[:2]) in RANK else names[0]


def wrong_edges(top: Path) -> list[str]:
    """Imports that the table does not allow, and modules that it does not know."""
    wrong = [f"{source.module} has no place in the table" for source in sources(top) if part(source.module) not in RANK]
    for edge in own_edges(top):
        here, there = part(edge.source), part(edge.target)
        if here in RANK and here != there and RANK.get(there, len(RANK)) >= RANK[here]:
            wrong.append(str(edge))
    return wrong


def cycles(top: Path) -> list[str]:
    """Modules that import each other, directly or by way of others."""
    graph: dict[str, set[str]] = {}
    for edge in own_edges(top):
        graph.setdefault(edge.source, set()).add(edge.target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [" -> ".join(reversed(error.args[1]))]
    return []


def framework_imports(top: Path) -> list[str]:
    """Frameworks that the core imports, by a statement or by a string; adapters count among them."""
    foreign = FRAMEWORKS | {"cfproto_adapters"}
    wrong = []
    for source in sources(top):
        wrong += [str(edge) for edge in imports(source) if edge.target.split(".")[0] in foreign]
        wrong += [f"{source.module} imports {name!r} by a string (line {n})" for name, n in _by_string(source, foreign)]
    return wrong


def tools_outside_integrations(top: Path) -> list[str]:
    """Imports of outside tools that are not in their own integration."""
    return [
        str(edge)
        for source in sources(top)
        for edge in imports(source)
        if (tool := edge.target.split(".")[0]) in TOOLS
        and source.module.split(".")[1:3] != ["integrations", HOMES.get(tool, tool)]
    ]


def _by_string(source: Source, foreign: set[str]) -> Iterator[tuple[str, int]]:
    """Names of frameworks in calls that import; anywhere in the file if a call imports what a variable names."""
    calls = [n for n in ast.walk(source.tree) if isinstance(n, ast.Call) and _called(n) in IMPORTERS]
    by_variable = any(not isinstance(a, ast.Constant) for call in calls for a in call.args[:1])
    for node in [source.tree] if by_variable else calls:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                name = inner.value.partition(".")[0]
                if name in foreign:
                    yield inner.value, inner.lineno


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def asked_capabilities(top: Path) -> list[str]:
    """Where the core asks what an adapter or provider can do, outside the one place that finds it out."""
    return [
        f"{source.module} asks {ast.unparse(node)} (line {node.lineno})"
        for source in sources(top)
        if part(source.module) != "plugins"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and len(node.args) > 1 and _asks(_called(node), node.args[1])
    ]


def _asks(function: str, argument: ast.expr) -> bool:
    if function in {"isinstance", "issubclass"}:
        names = {getattr(node, "attr", getattr(node, "id", None)) for node in ast.walk(argument)}
        return bool(names & PROTOCOLS)
    by_name = function in {"getattr", "hasattr"} and isinstance(argument, ast.Constant)
    return by_name and argument.value in CAPABILITIES


def adapters_see_too_much(top: Path) -> list[str]:
    """Imports of an adapter from the core that are not public."""
    edges = (edge for source in sources(top, ADAPTERS) for edge in imports(source))
    return [str(edge) for edge in edges if edge.target.split(".")[0] == CORE and edge.target not in PUBLIC]


def borrowed_from_tests(top: Path) -> list[str]:
    """Imports of a benchmark that are found in tests/ only."""
    found = sources(top, "benchmarks")
    own = {source.path.stem for source in found}
    borrowed = {path.stem for path in (top / "tests").rglob("*.py")} - own | {"tests"}
    edges = (edge for source in found for edge in imports(source))
    return [str(edge) for edge in edges if edge.target.split(".")[0] in borrowed]


LIBRARY = [*sources(TOP), *sources(TOP, ADAPTERS)]
every_file = pytest.mark.parametrize("source", LIBRARY, ids=[source.module for source in LIBRARY])


def assert_kept(rule: Callable[[Path], list[str]]) -> None:
    complaints = rule(TOP)
    assert not complaints, "\n".join(complaints)


def test_imports_go_up_the_table():
    assert_kept(wrong_edges)


def test_no_modules_import_each_other_not_even_inside_functions():
    assert_kept(cycles)


def test_the_core_imports_no_framework_neither_by_a_statement_nor_by_a_string():
    assert_kept(framework_imports)


def test_an_outside_tool_is_imported_by_its_own_integration_only():
    assert_kept(tools_outside_integrations)


def test_what_an_adapter_can_do_is_asked_in_one_place():
    assert_kept(asked_capabilities)


def test_adapters_see_only_public_names_protocols_and_helpers():
    assert_kept(adapters_see_too_much)


def test_benchmarks_import_nothing_from_the_tests():
    assert_kept(borrowed_from_tests)


def test_the_folder_lists_the_modules_of_the_design_and_packages():
    entries = [entry for entry in (TOP / CORE).iterdir() if not entry.name.startswith("__")]
    assert {entry.stem for entry in entries if entry.suffix == ".py"} == MODULES
    assert {entry.name for entry in entries if entry.is_dir()} <= PACKAGES


@every_file
def test_nothing_optional_is_imported_at_module_level(source):
    body = ast.Module([node for node in source.tree.body if isinstance(node, ast.Import | ast.ImportFrom)], [])
    assert not {edge.target.split(".")[0] for edge in imports(source._replace(tree=body))} & OPTIONAL


@every_file
def test_library_code_has_no_assert_and_no_print(source):
    nodes = list(ast.walk(source.tree))
    assert not [node.lineno for node in nodes if isinstance(node, ast.Assert)]
    assert not [node.lineno for node in nodes if isinstance(node, ast.Call) and _called(node) == "print"]


# Tests of the rules: small trees that break them


@pytest.fixture
def tree(tmp_path):
    def write(**files: str) -> Path:
        """Files of the core by their names, with __ for a folder."""
        for name, text in {"__init__": "", **files}.items():
            path = tmp_path / CORE / f"{name if name == '__init__' else name.replace('__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path

    return write


def test_an_edge_that_the_table_does_not_allow_is_named(tree):
    top = tree(tables__space="\nfrom cfproto_plugin.search import solve\n", search__solve="")
    assert wrong_edges(top) == ["cfproto_plugin.tables.space imports cfproto_plugin.search.solve (line 2)"]


def test_a_lazy_edge_counts_like_any_other(tree):
    top = tree(search__methods__path="def f():\n    from ..solve import run\n", search__solve="")
    assert wrong_edges(top) == ["cfproto_plugin.search.methods.path imports cfproto_plugin.search.solve (line 2)"]


def test_parts_on_one_line_of_the_table_do_not_import_each_other(tree):
    top = tree(search__methods__beam="import cfproto_plugin.search.refine.points", search__refine__points="")
    assert len(wrong_edges(top)) == 1


def test_edges_that_go_up_the_table_and_those_for_the_type_checker_are_allowed(tree):
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from cfproto_plugin.explainer import Explainer\n"
    top = tree(explainer="from cfproto_plugin import errors\n", errors=typed, search__judge="from . import task")
    assert wrong_edges(top) == cycles(top) == []


def test_a_module_that_the_table_does_not_know_is_named(tree):
    assert wrong_edges(tree(utilities="", search__bag="")) == [
        "cfproto_plugin.search.bag has no place in the table",
        "cfproto_plugin.utilities has no place in the table",
    ]


def test_a_cycle_inside_a_part_is_named_with_its_way(tree):
    top = tree(
        tables__a="from cfproto_plugin.tables.b import f",
        tables__b="def f():\n    from cfproto_plugin.tables.c import g\n",
        tables__c="from cfproto_plugin.tables import a",
    )
    assert wrong_edges(top) == []
    (way,) = cycles(top)
    assert sorted(way.replace("cfproto_plugin.tables.", "").split(" -> ")[1:]) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    import torch.nn\n",
        "from importlib import import_module\nimport_module('torch')",
        "import importlib\nimportlib.import_module(name='torch.nn')",
        "__import__('torch')",
        "import importlib.util as u\nu.find_spec('torch')",
        "from importlib import import_module\nNEEDED = {'.pt': 'torch'}\ndef f(p): return import_module(NEEDED[p])",
        "from cfproto_adapters.torch_adapter import TorchAdapter",
    ],
)
def test_a_framework_is_found_however_it_is_imported(tree, text):
    (complaint,) = framework_imports(tree(report__page=text))
    assert complaint.startswith("cfproto_plugin.report.page imports")
    assert "torch" in complaint


def test_the_name_of_a_framework_that_is_not_imported_is_no_import(tree):
    assert framework_imports(tree(cli__show="HINT = 'torch'\n__import__('json')\n")) == []


def test_a_tool_that_is_imported_elsewhere_than_in_its_integration_is_named(tree):
    top = tree(report__page="def f():\n    import mlflow\n", integrations__mlflow__files="from mlflow import models")
    assert tools_outside_integrations(top) == ["cfproto_plugin.report.page imports mlflow (line 2)"]


@pytest.mark.parametrize(
    "question",
    ["isinstance(a, protocols.GradientAdapter)", "isinstance(a, (int, ModelAdapter))", "getattr(a, 'trees', None)"],
)
def test_asking_for_a_capability_is_named_outside_of_plugins_only(tree, question):
    top = tree(search__judge=question, plugins__capabilities=question, report__text="getattr(dtype, 'kind', 'O')")
    (complaint,) = asked_capabilities(top)
    assert complaint.startswith("cfproto_plugin.search.judge asks")


def test_what_adapters_and_benchmarks_may_not_see_is_named(tree):
    top = tree()
    for path, text in {
        f"{ADAPTERS}/a.py": "from cfproto_plugin.helpers import softmax\nfrom cfproto_plugin.tables import space",
        "benchmarks/b.py": "import common, networks",
        "benchmarks/paper/common.py": "",
        "tests/networks.py": "",
    }.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(text, encoding="utf-8")
    assert adapters_see_too_much(top) == ["cfproto_adapters.a imports cfproto_plugin.tables (line 2)"]
    assert borrowed_from_tests(top) == ["benchmarks.b imports networks (line 1)"]
