"""Explanations as artifacts of a run: JSON that `Explanation.from_json` reads, a page to look at, and a plot."""

from __future__ import annotations

import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cfproto_plugin.checks import shown
from cfproto_plugin.errors import InputError
from cfproto_plugin.explanation import Explanation
from cfproto_plugin.integrations.mlflow.loading import load_mlflow
from cfproto_plugin.report import write_report

_IMAGES = 8  # that a plot shows
_DPI = 150


def log_explanation(
    explanation: Explanation,
    artifact_path: str = "counterfactuals",
    *,
    title: str = "Counterfactual explanations",
    run_id: str | None = None,
) -> str:
    """Log `explanation.json`, `explanation.html` and `explanation.png` below artifact_path; return that folder's URI.

    The plot is left out if no row has a counterfactual, or matplotlib is not installed.

    title: of the page. run_id: of the run; default: the active one, or a new one if there is none.
    """
    if not isinstance(explanation, Explanation):
        raise InputError(f"explanation is {shown(explanation)}; expected an Explanation, what explain returns")
    mlflow = load_mlflow()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "explanation.json").write_text(explanation.to_json(), encoding="utf-8")
        write_report(explanation, Path(folder) / "explanation.html", title=title)
        if explanation.found.any() and find_spec("matplotlib") is not None:
            _drawn(explanation).savefig(Path(folder) / "explanation.png", dpi=_DPI)
        mlflow.log_artifacts(folder, artifact_path, run_id=run_id)
    run = run_id or mlflow.active_run().info.run_id
    return f"{mlflow.get_run(run).info.artifact_uri}/{artifact_path}"


def _drawn(explanation: Explanation) -> Any:
    """The plot that fits; of images the first ones that were found."""
    is_table = explanation.column_names is not None
    return explanation.plot() if is_table else explanation[explanation.found][:_IMAGES].plot()
