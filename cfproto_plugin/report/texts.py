"""The style sheets and scripts of the HTML, and text that is safe inside it."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from importlib.resources import files
from typing import Any

_ESCAPED = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


@functools.cache
def asset(name: str) -> str:
    """The text of a file of the folder assets, with line feeds."""
    return files("cfproto_plugin.report").joinpath("assets", name).read_text(encoding="utf-8")


def as_data(value: Any) -> str:
    """JSON for a script element, in ASCII: nothing in it ends the element, begins a comment or breaks a line."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).translate(_ESCAPED)


def hash_of(text: str) -> str:
    """The source expression of an inline script or style sheet in a Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def without_surrogates(text: str) -> str:
    """The text with a question mark for halves of surrogate pairs, which UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8")
