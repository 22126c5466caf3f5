"""An explainer that answers requests: rows and params in, a frame of counterfactuals out."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any

from cfproto_plugin.config import SearchConfig
from cfproto_plugin.explainer import CounterfactualExplainer
from cfproto_plugin.explanation import Explanation
from cfproto_plugin.fitted import Fitted, require_fitted
from cfproto_plugin.integrations.requests import Request, read_preset, read_request
from cfproto_plugin.report import as_table
from cfproto_plugin.saving import settings_of


class ServedExplainer:
    """Answers requests, from several threads too. Explainers with a preset are fitted when asked for, and kept."""

    def __init__(self, explainer: CounterfactualExplainer) -> None:
        self.explainer = explainer
        self._presets: dict[str, CounterfactualExplainer] = {}
        self._fitting = Lock()

    def answer(self, rows: Any, params: Mapping[str, Any] | None = None) -> Any:
        """A pandas DataFrame with a line per answer, missing values as None; params as in `requests`."""
        return without_nan(as_table(self.explain(rows, read_request(params, known(self.explainer).classes))))

    def explain(self, rows: Any, request: Request) -> Explanation:
        """The explanation that a request asks for."""
        return self._with(request.preset).explain(
            rows,
            target=request.target,
            n=request.n,
            features=request.features,
            time_budget=request.time_budget,
            progress=False,
        )

    def forget(self, preset: Any) -> None:
        """Fit the explainer with this preset anew when it is asked for again."""
        if isinstance(preset, str):
            with self._fitting:
                self._presets.pop(preset, None)

    def _with(self, preset: str | None) -> CounterfactualExplainer:
        search = read_preset(preset, self.explainer.search)
        if preset is None or search is None:
            return self.explainer
        with self._fitting:
            if preset not in self._presets:
                self._presets[preset] = _fitted_with(search, self.explainer)
            return self._presets[preset]


def known(explainer: CounterfactualExplainer) -> Fitted:
    """What `fit` learned, or an error."""
    return require_fitted(explainer.fitted_)


def without_nan(frame: Any) -> Any:
    """The frame with None for missing values, which JSON has a word for."""
    gaps = [name for name in frame.columns if frame[name].isna().any()]
    return frame.assign(**{name: frame[name].astype(object).where(frame[name].notna(), None) for name in gaps})


def _fitted_with(search: SearchConfig, explainer: CounterfactualExplainer) -> CounterfactualExplainer:
    """The same explainer with other settings."""
    return CounterfactualExplainer(**{**settings_of(explainer), "search": search}).fit(known(explainer).data)
