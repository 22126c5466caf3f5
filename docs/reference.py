"""Writes hooks.md from the hooks and protocols themselves: `python docs/reference.py`."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path
from typing import Any

from cfproto_plugin import hookspecs, protocols

PAGE = Path(__file__).parent / "hooks.md"
HEAD = """# Hooks and protocols

Written from the code by `python docs/reference.py`. How to use them: [write a plugin](write-a-plugin.md).
"""


def page() -> str:
    """The text of hooks.md."""
    hooks = [hook for name, hook in vars(hookspecs).items() if name.startswith("cfproto_")]
    own = [item for item in vars(protocols).values() if getattr(item, "__module__", "") == protocols.__name__]
    functions = [item for item in own if inspect.isfunction(item)]
    specs = [item for item in own if dataclasses.is_dataclass(item)]
    optional = [item for item in own if item.__name__.startswith(("Has", "Accepts"))]
    made = [item for item in own if item not in [*functions, *specs, *optional]]
    return "\n".join(
        [
            HEAD,
            _section("Hooks", "Functions of a plugin, marked with `@hookimpl`. Implement one or more.", hooks),
            _section("What hooks return", "Records of `cfproto_plugin`.", specs),
            _section("What factories make", "Any object with these methods; no base class is needed.", made),
            _section("What an adapter may add", "Found by its name; nothing has to be declared.", optional),
            _section("Helpers", "Functions of `cfproto_plugin.protocols` for adapters.", functions),
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
    bases = [base.__name__ for base in item.__bases__ if base.__module__ == protocols.__name__]
    more = [f"It does everything that a `{base}` does, and:\n" for base in bases]
    attributes = [_code(f"{name}: {kind}") for name, kind in inspect.get_annotations(item).items()]
    methods = [_function(member) for name, member in vars(item).items() if _is_method(name, member)]
    return "\n".join([_prose(item), *more, *attributes, *methods])


def _is_method(name: str, member: Any) -> bool:
    documented = inspect.isfunction(member) or isinstance(member, property)
    return documented and (name == "__call__" or not name.startswith("_")) and bool(inspect.getdoc(member))


def _function(member: Any) -> str:
    """The signature and what it promises; a property as an attribute."""
    if isinstance(member, property):
        return (
            _code(f"{member.fget.__name__}: {inspect.signature(member.fget).return_annotation}") + "\n" + _prose(member)
        )
    return _code(f"def {member.__name__}{inspect.signature(member)}".replace("'", "")) + "\n" + _prose(member)


def _default(field: dataclasses.Field[Any]) -> str:
    return "" if field.default is dataclasses.MISSING else f" = {field.default!r}"


def _code(text: str) -> str:
    return f"```python\n{text}\n```\n"


def _prose(item: Any) -> str:
    """The docstring as Markdown: names in single backticks, no emphasis by accident, "field: meaning" as a list."""
    text = (inspect.getdoc(item) or "").replace("``", "`").replace("*", r"\*")
    return re.sub(r"^(\w+): ", r"- `\1`: ", text, flags=re.MULTILINE) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
