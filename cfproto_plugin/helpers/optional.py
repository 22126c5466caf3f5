"""Packages that may be missing."""

from __future__ import annotations

from typing import Any


def load_pandas() -> Any:
    """Import pandas, or say how to install it."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            "data frames need pandas, which is not installed: pip install 'cfproto-plugin[pandas]'"
        ) from error
    return pd
