"""MLflow, imported when it is needed."""

from __future__ import annotations

from typing import Any

from cfproto_plugin.errors import MissingPackageError


def load_mlflow() -> Any:
    """Import MLflow, or say how to install it."""
    try:
        import mlflow
    except ImportError as error:
        raise MissingPackageError(
            "this needs MLflow, which is not installed: pip install 'cfproto-plugin[mlflow]'"
        ) from error
    return mlflow
