"""Which versions made a result."""

from __future__ import annotations

import functools
import platform
import sys
from importlib.metadata import version
from typing import Any

import numpy as np


def versions(model: Any) -> dict[str, str]:
    """The versions of this package, Python, NumPy and the packages the model's classes come from."""
    kind: Any = type(model)
    return dict(_versions(kind))


@functools.lru_cache(maxsize=64)
def _versions(kind: type) -> tuple[tuple[str, str], ...]:
    found = {"cfproto-plugin": version("cfproto-plugin"), "python": platform.python_version(), "numpy": np.__version__}
    for cls in kind.__mro__:
        package = cls.__module__.partition(".")[0]
        stated = getattr(sys.modules.get(package), "__version__", None)
        if package != "builtins" and isinstance(stated, str):
            found.setdefault(package, stated)
    return tuple(found.items())
