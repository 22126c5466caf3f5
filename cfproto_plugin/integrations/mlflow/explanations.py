"""Explanations as artifacts of a run: JSON that `Explanation.from_json` reads, and a page to look at."""

from __future__ import annotations

import tempfile
from pathlib import Path

from cfproto_plugin.checks import shown
from cfproto_plugin.errors import InputError
from cfproto_plugin.explanation import Explanation
from cfproto_plugin.integrations.mlflow.loading import load_mlflow
from cfproto_plugin.report import write_report


def log_explanation(
    explanation: Explanation,
    artifact_path: str = "counterfactuals",
    *,
    title: str = "Counterfactual explanations",
    run_id: str | None = None,
) -> str:
    """Log `explanation.json` and `explanation.html` below artifact_path; return the URI of that folder.

    title: of the page. run_id: of the run; default: the active one, or a new one if there is none.
    """
    if not isinstance(explanation, Explanation):
        raise InputError(f"explanation is {shown(explanation)}; expected an Explanation, what explain returns")
    mlflow = load_mlflow()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "explanation.json").write_text(explanation.to_json(), encoding="utf-8")
        write_report(explanation, Path(folder) / "explanation.html", title=title)
        mlflow.log_artifacts(folder, artifact_path, run_id=run_id)
    run = run_id or mlflow.active_run().info.run_id
    return f"{mlflow.get_run(run).info.artifact_uri}/{artifact_path}"
