"""pyarrow, imported when it is needed."""

from __future__ import annotations

from typing import Any

from cfproto_plugin.errors import MissingPackageError


def load_pyarrow() -> Any:
    """Import pyarrow with its Parquet reader, or say how to install it."""
    try:
        import pandas as pd  # noqa: F401 pyarrow makes its frames
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError as error:
        raise MissingPackageError(
            "data sets need pandas and pyarrow, which are not installed: pip install 'cfproto-plugin[parquet]'"
        ) from error
    return pa
