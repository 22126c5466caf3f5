"""Before an explainer is pickled: functions that pickle cannot find again are named, with what to do instead."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import FunctionType
from typing import Any

from cfproto_plugin.errors import UnpicklableError

_BY_VALUE = {"copy", "cloudpickle", "dill"}  # these take functions as they are


def check_functions(parts: Mapping[str, Any]) -> None:
    """Refuse lambdas and functions inside functions, which pickle stores by name and cannot look up.

    parts: what the explainer was given, by how to call it in a message; anything but functions is left to pickle.
    """
    for what, part in parts.items():
        if isinstance(part, FunctionType) and {"<lambda>", "<locals>"} & set(part.__qualname__.split(".")):
            if _asked_by_value():
                return
            raise UnpicklableError(
                f"{what} is {part.__qualname__}, which cannot be pickled: pickle stores the name of a function, and "
                "this one cannot be found by its name. Define it with def at the top level of a module, write a "
                "relation as text such as 'a <= b', or use cloudpickle."
            )


def _asked_by_value() -> bool:
    frame = inspect.currentframe()
    while frame is not None:
        if _BY_VALUE & set(str(frame.f_globals.get("__name__")).split(".")):
            return True
        frame = frame.f_back
    return False
