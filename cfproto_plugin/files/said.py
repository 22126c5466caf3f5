"""What the model said at fit, as JSON and back; every shape is checked, for it decides what is looked up where."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cfproto_plugin.errors import FileError
from cfproto_plugin.files.exact_json import encode
from cfproto_plugin.helpers.kinds import in_memory
from cfproto_plugin.protocols import Array
from cfproto_plugin.search.fingerprint import Fingerprint
from cfproto_plugin.search.model import Answer
from cfproto_plugin.search.noise import Noise
from cfproto_plugin.search.opinion import Opinion
from cfproto_plugin.search.training import Said


def said_to(said: Said) -> Any:
    """JSON."""
    print_ = said.fingerprint
    return encode(
        {
            "labels": said.labels,
            "proba": said.proba,
            "noise": [[dtype, *noise] for dtype, noise in said.noise],
            "fingerprint": {
                "rows": print_.rows,
                "proba": print_.answer.proba,
                "label": print_.answer.label,
                "tolerance": print_.tolerance,
                "flips": print_.flips,
                "classes": print_.classes,
            },
            **({"opinions": [list(each) for each in said.opinions]} if said.opinions else {}),
        },
        "what the model said",
    )


def said_from(found: Any, shape: tuple[int, ...]) -> Said:
    """What it was; shape: of the training data."""
    n = shape[0]
    known = _entries(found, "what the model said", ("labels", "proba", "noise", "fingerprint"), ("opinions",))
    about = _entries(
        known["fingerprint"], "the fingerprint", ("rows", "proba", "label", "tolerance", "flips", "classes")
    )
    classes = about["classes"]
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2:  # noqa: PLR2004 fewer decide nothing
        raise FileError(f"the fingerprint names the classes {str(classes)[:80]}; expected at least two")
    k, rows = len(classes), in_memory(about["rows"])
    m = len(rows) if hasattr(rows, "__len__") and not isinstance(rows, (str, dict)) else -1
    proba = _numbers(about["proba"], "the probabilities of the fingerprint", (m, k), 1.0)
    tolerance, flips = about["tolerance"], about["flips"]
    if type(tolerance) is not float or not tolerance >= 0 or type(flips) is not int or flips < 0:
        raise FileError(f"the fingerprint has the tolerance {str(tolerance)[:40]} and {str(flips)[:40]} flips")
    answer = Answer(proba, _labels(about["label"], "the classes of the fingerprint", m, k))
    return Said(
        _labels(known["labels"], "the classes of the training rows", n, k),
        _numbers(known["proba"], "the probabilities of the training rows", (n,), 1.0),
        _noise(known["noise"]),
        Fingerprint(rows, answer, tolerance, flips, classes),
        _opinions(known.get("opinions", []), math.prod(shape[1:]), k),
    )


def _opinions(found: Any, columns: int, k: int) -> tuple[Opinion, ...]:
    """Small networks of rows (columns,) to k classes."""
    several: list[Any] = found if isinstance(found, list) else [found]
    for each in several:
        width = np.size(each[1]) if isinstance(each, list) and len(each) == len(Opinion._fields) else 0
        shapes = ((columns, width), (width,), (width, k), (k,))
        if not width or not all(_is_weight(*pair) for pair in zip(each, shapes, strict=True)):
            raise FileError(f"a second opinion is {str(each)[:80]}; expected weights of {columns} columns, {k} classes")
    return tuple(Opinion(*each) for each in several)


def _is_weight(found: Any, shape: tuple[int, ...]) -> bool:
    good = isinstance(found, np.ndarray) and found.shape == shape and found.dtype == np.float32
    return good and bool(np.isfinite(found).all())


def _entries(found: Any, what: str, names: tuple[str, ...], may: tuple[str, ...] = ()) -> dict[str, Any]:
    """The entries of these names, and those that it may have."""
    if not isinstance(found, dict) or set(found) - set(may) != set(names):
        raise FileError(f"{what} is {str(found)[:80]}; expected {', '.join(names)}")
    return found


def _numbers(found: Any, what: str, shape: tuple[int, ...], most: float) -> Array:
    """Floats of this shape, between 0 and most."""
    good = isinstance(found, np.ndarray) and found.shape == shape and found.dtype.kind == "f"
    if not good or not ((found >= 0) & (found <= most)).all():
        raise FileError(f"{what} are {_shown(found)}; expected {shape} numbers from 0 to {most:g}")
    return np.asarray(found)


def _labels(found: Any, what: str, n: int, k: int) -> Array:
    good = isinstance(found, np.ndarray) and found.shape == (n,) and found.dtype.kind == "i"
    if not good or not ((found >= 0) & (found < k)).all():
        raise FileError(f"{what} are {_shown(found)}; expected {n} whole numbers from 0 to {k - 1}")
    return np.asarray(found)


def _noise(found: Any) -> tuple[tuple[str, Noise], ...]:
    if not isinstance(found, list) or not found or not all(map(_is_noise, found)):
        raise FileError(f"the noise of the model is {str(found)[:80]}; expected a dtype and four numbers each")
    return tuple((each[0], Noise(*each[1:])) for each in found)


def _is_noise(each: Any) -> bool:
    kinds: tuple[Any, ...] = (str, (float, int), (float, int), bool, bool)
    return (
        isinstance(each, list)
        and len(each) == len(kinds)
        and all(isinstance(value, kind) for value, kind in zip(each, kinds, strict=True))
        and all(0 <= value < math.inf for value in each[1:3])
    )


def _shown(found: Any) -> str:
    return f"{found.dtype} of shape {found.shape}" if isinstance(found, np.ndarray) else str(found)[:80]
