"""With which versions an explainer was saved, and which of them are others now."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from cfproto_plugin.plugins.versions import versions

_ALSO = ("scipy", "scikit-learn", "narwhals")  # what the search itself calculates with


def versions_of(*objects: Any) -> dict[str, str]:
    """The versions behind models and data."""
    found = {name: version(name) for name in _ALSO}
    for each in objects:
        if each is not None:
            found |= versions(each)
    return found


def differences(saved: Mapping[str, Any], now: Mapping[str, str]) -> list[str]:
    """Such as "numpy 1.26.4, now 2.4.6", for every version that is another. Of Python the first two numbers count."""
    found = []
    for name, then in saved.items():
        here = now.get(name) or _installed(name)
        if not _same(name, str(then), here):
            found.append(f"{name[:60]} {str(then)[:40]}, now {here or 'not installed'}")
    return found


def _same(name: str, then: str, here: str | None) -> bool:
    if name == "python" and here is not None:
        return then.split(".")[:2] == here.split(".")[:2]
    return then == here


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except (PackageNotFoundError, ValueError):
        return None
