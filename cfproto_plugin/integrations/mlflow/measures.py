"""What is measured of explanations, in a table with a line for all rows and one for each group of them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from cfproto_plugin.explanation import Explanation
from cfproto_plugin.helpers.kinds import load_pandas
from cfproto_plugin.protocols import Array
from cfproto_plugin.report.cohorts import Groups

MEASURES = ("validity", "distance", "changed_columns", "typicality", "stability", "seconds")


def measures_by_group(explanation: Explanation, groups: Groups | None = None) -> Any:
    """A DataFrame: group (None for all rows), value, rows and the mean of each measure, NaN where nothing was measured.

    validity: the share of lines that have a counterfactual; the other measures are those of these lines, seconds the
    time per row.
    """
    lines = [("", "", np.ones(len(explanation), dtype=bool))]
    if groups is not None:
        lines += [(groups.name, value, mask) for value, mask in groups.take(explanation.row).masks()]
    found = [{"group": name, "value": value, **_measured(explanation[mask])} for name, value, mask in lines]
    return load_pandas().DataFrame(found)


def as_metrics(table: Any, prefix: str = "") -> dict[str, float]:
    """The table as MLflow's metrics: cfproto/validity for all rows, cfproto/validity/sex/female for a group."""
    metrics: dict[str, float] = {}
    for record in table.to_dict("records"):
        group = "".join(f"/{_allowed(record[part])}" for part in ("group", "value") if record["group"])
        for name in ("rows", *MEASURES):
            if np.isfinite(record[name]):
                metrics[_new(f"{prefix}cfproto/{name}{group}", metrics)] = float(record[name])
    return metrics


def _measured(explanation: Explanation) -> dict[str, Any]:
    found, rows = explanation.found, len(set(explanation.row.tolist()))
    values = {
        "distance": explanation.distance,
        "changed_columns": explanation.n_changes,
        "typicality": explanation.typicality,
        "stability": explanation.stability,
    }
    return {
        "rows": rows,
        "validity": float(found.mean()),
        **{name: _mean(np.asarray(each, dtype=float)[found]) for name, each in values.items()},
        "seconds": float(explanation.seconds.sum()) / rows,
    }


def _mean(values: Array) -> float:
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else float("nan")


def _allowed(text: str) -> str:
    """With the signs only that MLflow takes in the name of a metric."""
    return re.sub(r"[^\w.\- ]", "_", text) or "_"


def _new(name: str, taken: Any) -> str:
    """A name that is not taken: "<50" and ">50" are the same to MLflow."""
    number = 2
    found = name
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found
