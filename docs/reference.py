"""Writes hooks.md and api.md from the code itself: `python docs/reference.py`."""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

from cfproto_plugin import (
    CounterfactualExplainer,
    Explanation,
    Features,
    SearchConfig,
    helpers,
    hookspecs,
    plugins,
    protocols,
)
from cfproto_plugin.integrations import mlflow
from cfproto_plugin.integrations.alibi import CounterfactualProto
from cfproto_plugin.report.cohorts import Action, Actions, FeatureRecord, GroupRecord, Summary
from cfproto_plugin.search.clock import Done
from cfproto_plugin.search.proofs.certificate import Certificate

FOLDER = Path(__file__).parent
LONG = 70  # characters of parameters in one line
API = """# Classes and settings

Written from the code by `python docs/reference.py`. How to use them: [overview](index.md),
[the result](explanation.md), [tables with categories](adult.md). What plugins use is in
[hooks and protocols](hooks.md).
"""
HEAD = """# Hooks and protocols

Written from the code by `python docs/reference.py`. How to use them: [write a plugin](write-a-plugin.md).
"""
LATER = """## What may change

Specs carry the version of this contract in `contract`, which is checked when a plugin is loaded. It rises when a plugin
written for the old version would no longer work. Everything else is added so that no plugin has to change:

- **Arguments of factories.** The core passes an argument only if the signature of the factory takes it. Name the
  arguments you use, each with a default, and leave out the others. A factory with `**options` gets all arguments that
  this page lists; those of later versions will go only to factories that name them.
- **Options of users**, as in `adapt(model, output="logits")`, are passed to the factory. One that its signature does
  not take is an error with a suggestion, so do not take `**options` and ignore them.
- **Methods of providers and distances** keep their arguments. What they need in later versions is passed to their
  factory, or to a new optional method that is found by its name.
- **Members of adapters** are optional and found by their name; so will be new ones.
- **Fields of records** such as `AdapterSpec`, `ModelFile` and `TreeEnsemble` are added at the end, with defaults.
"""


def api_page() -> str:
    """The text of api.md."""
    return "\n".join(
        [
            API,
            _part(CounterfactualExplainer, "The rules and settings given here hold for every call of `explain`."),
            _part(Features, "Pass it as `CounterfactualExplainer(..., features=...)`, or to `explain` for one call."),
            _part(SearchConfig, "Pass it as `CounterfactualExplainer(..., search=...)`."),
            _part(Explanation, "What `explain` returns. `e[i]` takes a number, a slice, a list or a mask."),
            _part(Summary, "What `e.summary()` returns."),
            _part(GroupRecord, "A line of `summary.groups`."),
            _part(FeatureRecord, "A line of `summary.features`."),
            _part(Actions, "What `e.actions()` returns; it has a length and can be iterated over."),
            _part(Action, "One of them."),
            _part(Done, "What a function given as `progress` is called with: a float."),
            _part(Certificate, "What `certificate` returns."),
            _functions(mlflow, "MLflow", "In `cfproto_plugin.integrations.mlflow`: [how to use them](mlflow.md)."),
            _part(CounterfactualProto, "In `cfproto_plugin.integrations.alibi`: [coming from alibi](coming-from.md)."),
        ]
    )


def _functions(module: Any, title: str, intro: str) -> str:
    """The functions that a module offers."""
    parts = [f"## {title}\n\n{intro}\n"]
    for name in module.__all__:
        parts += [_code(_called(getattr(module, name))), _listed(getattr(module, name))]
    return "\n".join(parts)


def _part(item: type, intro: str) -> str:
    """A class: its parameters or fields, its docstring as a list, and its public methods."""
    own = [base for base in item.__mro__[::-1] if base.__module__.startswith("cfproto_plugin")]
    parts = [f"## {item.__name__}\n\n{intro}\n", _code(_called(item)), *(_listed(base) for base in own[::-1])]
    for name, member in ((name, member) for base in own for name, member in vars(base).items()):
        method = getattr(member, "__func__", member)  # of a classmethod
        if isinstance(method, property) and _is_method(name, method):
            parts.append(_function(method))
        elif _is_method(name, method) and not name.startswith("_"):
            parts += [_code(_called(getattr(item, name))), _listed(getattr(item, name))]
    return "\n".join(parts)


def _called(item: Any) -> str:
    """The call with its parameters, one per line if they are many. An Explanation is not made by hand: no defaults."""
    lines, keywords = [], False
    for parameter in inspect.signature(item).parameters.values():
        if parameter.name == "self" or parameter.name.startswith("_"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not keywords and not dataclasses.is_dataclass(item):
            lines, keywords = [*lines, "*"], True
        lines.append(str(_shown(_made(item, parameter))))
    name = item.__qualname__ if inspect.ismethod(item) else item.__name__
    many = len(", ".join(lines)) > LONG
    given = "".join(f"\n    {line}," for line in lines) + "\n" if many else ", ".join(lines)
    return f"{name}({given})" + ("" if inspect.isclass(item) else f" -> {inspect.signature(item).return_annotation}")


def _made(item: Any, parameter: inspect.Parameter) -> inspect.Parameter:
    """The parameter with the default that a field makes, or none for a class that users do not make."""
    if item is Explanation:
        return parameter.replace(default=parameter.empty)
    fields = {field.name: field for field in dataclasses.fields(item)} if dataclasses.is_dataclass(item) else {}
    factory = fields[parameter.name].default_factory if parameter.name in fields else dataclasses.MISSING
    return parameter if factory is dataclasses.MISSING else parameter.replace(default=factory())


def _listed(item: Any) -> str:
    """The docstring with a list entry for each "name: meaning" or "name, name: meaning" of its parameters."""
    names = "|".join(name for name in inspect.signature(item).parameters if name != "self")
    entry = re.compile(rf"(?:^|(?<=\. ))((?:{names})(?:, (?:{names}))*): ")
    blocks = []
    for block in (inspect.getdoc(item) or "").split("\n\n"):
        text = " ".join(block.split())
        parts = entry.split(text) if names else [text]
        entries = zip(parts[1::2], parts[2::2], strict=True)
        lines = [f"- `{each.replace(', ', '`, `')}`: {meaning.strip()}" for each, meaning in entries]
        blocks.append(
            "\n".join([parts[0].strip()] * bool(parts[0].strip()) + [""] * bool(parts[0].strip() and lines) + lines)
        )
    return _prose_of("\n\n".join(blocks))


def page() -> str:
    """The text of hooks.md."""
    hooks = [hook for name, hook in vars(hookspecs).items() if name.startswith("cfproto_")]
    own = [item for item in vars(protocols).values() if getattr(item, "__module__", "") == protocols.__name__]
    trees = [protocols.Tree, protocols.TreeEnsemble]
    specs = [item for item in own if dataclasses.is_dataclass(item) and item not in trees]
    made = [item for item in own if item not in [*specs, *trees, protocols.Capabilities]]
    helping = [getattr(helpers, name) for name in helpers.__all__]
    helping = [item for item in helping if inspect.isfunction(item) or inspect.isclass(item)]
    return "\n".join(
        [
            HEAD,
            _section("Hooks", "Functions of a plugin, marked with `@hookimpl`. Implement one or more.", hooks),
            _section("What hooks return", "Records of `cfproto_plugin`.", specs),
            _section("What factories make", "Any object with these methods; no base class is needed.", made),
            _section(
                "What an adapter may add", "Found by its name; nothing has to be declared.", [protocols.Capabilities]
            ),
            _section("Trees", "What `trees()` returns: records of `cfproto_plugin.protocols`.", trees),
            LATER,
            _section("Making an adapter", "A function of `cfproto_plugin`.", [plugins.adapt]),
            _section("Helpers", "Functions and classes of `cfproto_plugin.helpers`, for plugins.", helping),
        ]
    )


def _section(title: str, intro: str, items: list[Any]) -> str:
    parts = [f"### {item.__name__}\n\n{_item(item)}" for item in items]
    return "\n".join([f"## {title}\n\n{intro}\n", *parts])


def _item(item: Any) -> str:
    """A function, a record with its fields, or a protocol with its methods."""
    if inspect.isfunction(item):
        return _function(item)
    if dataclasses.is_dataclass(item):
        fields = (f"{field.name}: {field.type}{_default(field)}" for field in dataclasses.fields(item))
        return _code(f"{item.__name__}({', '.join(fields)})") + "\n" + _prose(item)
    if not getattr(item, "_is_protocol", False):
        return _class(item)
    bases = [base.__name__ for base in item.__bases__ if base.__module__ == protocols.__name__]
    more = [f"It does everything that a `{base}` does, and:\n" for base in bases]
    attributes = [_code(f"{name}: {kind}") for name, kind in inspect.get_annotations(item).items()]
    methods = [_function(member) for name, member in vars(item).items() if _is_method(name, member)]
    return "\n".join([_prose(item), *more, *attributes, *methods])


def _class(item: type) -> str:
    """A class with its constructor and its methods; a named tuple with its fields and their comments."""
    if hasattr(item, "_fields"):
        fields = textwrap.dedent(inspect.getsource(item).partition('"""\n\n')[2]).rstrip()
        return _code(fields) + "\n" + _prose(item)
    methods = [_function(member) for name, member in vars(item).items() if _is_method(name, member)]
    return "\n".join([_code(f"{item.__name__}{_signature(item)}"), _prose(item), *methods])


def _signature(item: Any) -> str:
    """The parameters as they are written."""
    signature = inspect.signature(item)
    returned = "" if inspect.isclass(item) else f" -> {signature.return_annotation}"
    parameters = [_shown(parameter) for parameter in signature.parameters.values()]
    return f"{inspect.Signature(parameters)}{returned}"


def _shown(parameter: inspect.Parameter) -> inspect.Parameter:
    """Annotations are text already; a class as default is shown by its name."""
    if parameter.annotation is not parameter.empty:
        parameter = parameter.replace(annotation=_Text(parameter.annotation))
    is_class = inspect.isclass(parameter.default) and parameter.default is not parameter.empty
    return parameter.replace(default=_Text(parameter.default.__name__)) if is_class else parameter


class _Text(str):
    """Text that is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _is_method(name: str, member: Any) -> bool:
    documented = inspect.isfunction(member) or isinstance(member, property)
    return documented and (name == "__call__" or not name.startswith("_")) and bool(member.__doc__)


def _function(member: Any) -> str:
    """The signature and what it promises; a property as an attribute."""
    if isinstance(member, property):
        return (
            _code(f"{member.fget.__name__}: {inspect.signature(member.fget).return_annotation}") + "\n" + _prose(member)
        )
    return _code(f"def {member.__name__}{_signature(member)}") + "\n" + _prose(member)


def _default(field: dataclasses.Field[Any]) -> str:
    return "" if field.default is dataclasses.MISSING else f" = {field.default!r}"


def _code(text: str) -> str:
    return f"```python\n{text}\n```\n"


def _prose(item: Any) -> str:
    """The docstring as Markdown: names in single backticks, no emphasis by accident, "field: meaning" as a list."""
    return _prose_of(re.sub(r"^(\w+): ", r"- `\1`: ", inspect.getdoc(item) or "", flags=re.MULTILINE))


def _prose_of(text: str) -> str:
    return text.replace("``", "`").replace("*", r"\*") + "\n"


if __name__ == "__main__":
    (FOLDER / "hooks.md").write_text(page(), encoding="utf-8")
    (FOLDER / "api.md").write_text(api_page(), encoding="utf-8")
