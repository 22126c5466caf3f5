"""What requests took, in the metrics that MLServer shows.

`mlserver.register` is not used: what it registers is not shown if MLServer has no processes of its own.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from prometheus_client import Counter, Histogram

from cfproto_plugin.integrations.service.service import Facts

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_MODEL = ("model_name",)


class Metrics(NamedTuple):
    """Of all models of a process; those that end in _total only grow."""

    requests: Any
    rows: Any
    found: Any
    predict_calls: Any
    seconds: Any
    waited: Any

    def answered(self, model: str, facts: Facts) -> None:
        """Add a request that was answered."""
        self.requests.labels(model, "200").inc()
        self.rows.labels(model).inc(facts.rows)
        self.found.labels(model).inc(facts.found)
        self.predict_calls.labels(model).inc(facts.predict_calls / facts.together)
        self.seconds.labels(model).observe(facts.seconds)
        self.waited.labels(model).observe(facts.waited)

    def refused(self, model: str, status: int) -> None:
        """Add a request that was not."""
        self.requests.labels(model, str(status)).inc()


@cache
def metrics() -> Metrics:
    """Made when a model is loaded: MLServer decides before where numbers are kept."""
    return Metrics(
        Counter("cfproto_requests", "Requests by status", (*_MODEL, "status")),
        Counter("cfproto_rows", "Rows of requests that were answered", _MODEL),
        Counter("cfproto_found", "Rows that have a counterfactual", _MODEL),
        Counter("cfproto_predict_calls", "Calls of the explained model", _MODEL),
        Histogram("cfproto_seconds", "Seconds from the arrival of a request to its answer", _MODEL, buckets=_SECONDS),
        Histogram("cfproto_waited_seconds", "Seconds that a request waited in line", _MODEL, buckets=_SECONDS),
    )
