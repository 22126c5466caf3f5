"""A tidy table of measures: one line per set of explanations and measure, with confidence bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cfproto_plugin.errors import InputError
from cfproto_plugin.helpers.kinds import load_pandas
from cfproto_plugin.protocols import Array
from cfproto_plugin.report import aligned

_HEAD = ["name", "group", "metric", "n", "mean", "std", "lower", "upper"]


@dataclass(frozen=True)
class MetricRecord:
    """One line of the table. group is None unless the table was split; lower and upper bound the mean."""

    name: str
    group: Any
    metric: str
    n: int
    mean: float
    std: float
    lower: float
    upper: float


@dataclass(frozen=True)
class MetricTable:
    """The lines, in the order in which the sets were given."""

    records: tuple[MetricRecord, ...]
    confidence: float

    def to_frame(self) -> Any:
        """A DataFrame with one line per record."""
        return load_pandas().DataFrame([asdict(record) for record in self.records])

    def select(self, name: str, metric: str, group: Any = None) -> MetricRecord:
        """The line of one set and measure."""
        for record in self.records:
            if (record.name, record.metric, record.group) == (name, metric, group):
                return record
        known = sorted({(record.name, record.metric) for record in self.records})
        raise InputError(f"the table has no line {name!r}, {metric!r}, {group!r}; there are {known}")

    def __len__(self) -> int:
        return len(self.records)

    def __str__(self) -> str:
        split = any(record.group is not None for record in self.records)
        lines = [_HEAD, *map(_line, self.records)]
        shown = lines if split else [line[:1] + line[2:] for line in lines]
        return "\n".join(aligned(shown))


def summarise(
    values: Mapping[str, Any], *, name: str = "", group: Any = None, confidence: float = 0.95
) -> list[MetricRecord]:
    """One record per measure: measure -> values (n,). NaN means that the row has no such value and is left out.

    Bounds are mean ± t · std / sqrt(n) with Student's t for n - 1 degrees of freedom and std of the sample; for
    `validity`, a share, they are Wilson's. With fewer than two values they are NaN.
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence is {confidence!r}; expected a number between 0 and 1, such as 0.95")
    return [_record(name, group, metric, np.asarray(v, dtype=float), confidence) for metric, v in values.items()]


def _line(record: MetricRecord) -> list[str]:
    numbers = (record.mean, record.std, record.lower, record.upper)
    group = "" if record.group is None else str(record.group)
    return [record.name, group, record.metric, str(record.n), *(f"{value:.4g}" for value in numbers)]


def _record(name: str, group: Any, metric: str, values: Array, confidence: float) -> MetricRecord:
    values = values[~np.isnan(values)]
    n = len(values)
    mean = float(values.mean()) if n else math.nan
    std = float(values.std(ddof=1)) if n > 1 else math.nan
    share = metric == "validity"
    bounds = _wilson(int(values.sum()), n, confidence) if share else _student(mean, std, n, confidence)
    return MetricRecord(name, group, metric, n, mean, std, *bounds)


def _student(mean: float, std: float, n: int, confidence: float) -> tuple[float, float]:
    """mean ± t · std / sqrt(n)."""
    from scipy.special import stdtrit

    if n < 2:  # noqa: PLR2004 one value has no spread
        return math.nan, math.nan
    half = float(stdtrit(n - 1, (1 + confidence) / 2)) * std / math.sqrt(n)
    return mean - half, mean + half


def _wilson(found: int, n: int, confidence: float) -> tuple[float, float]:
    """The shares p for which |found / n - p| <= z · sqrt(p (1 - p) / n)."""
    from scipy.stats import binomtest

    if n == 0:
        return math.nan, math.nan
    bounds = binomtest(found, n).proportion_ci(confidence, method="wilson")
    return float(bounds.low), float(bounds.high)


def join(parts: Sequence[Sequence[MetricRecord]], confidence: float) -> MetricTable:
    """One table of several summaries."""
    return MetricTable(tuple(record for part in parts for record in part), confidence)
