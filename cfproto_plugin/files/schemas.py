"""The JSON Schema of explanations, which is shipped in the package; its number is that of the format."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any


def explanation_schema() -> dict[str, Any]:
    """The schema of "cfproto-explanation/1"."""
    text = files("cfproto_plugin.files").joinpath("explanation-1.schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found
