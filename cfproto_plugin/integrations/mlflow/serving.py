"""An explainer that answers requests: rows and params in, a frame of counterfactuals out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cfproto_plugin.config import SearchConfig
from cfproto_plugin.errors import ConfigError, did_you_mean
from cfproto_plugin.explainer import CounterfactualExplainer
from cfproto_plugin.fitted import Fitted, require_fitted
from cfproto_plugin.integrations.mlflow.requests import PARAMS, read_n, read_preset, read_rules, read_target
from cfproto_plugin.report import as_table
from cfproto_plugin.saving import settings_of


class ServedExplainer:
    """Answers requests. Explainers with a preset are fitted when one is asked for, and kept."""

    def __init__(self, explainer: CounterfactualExplainer) -> None:
        self.explainer = explainer
        self._presets: dict[str, CounterfactualExplainer] = {}

    def answer(self, rows: Any, params: Mapping[str, Any] | None = None) -> Any:
        """A pandas DataFrame with a line per answer, missing values as None; params as in `requests`."""
        given = {name: value for name, value in (params or {}).items() if value is not None}
        for name in given:
            if name not in PARAMS:
                raise ConfigError(f"there is no param {name!r}.{did_you_mean(name, PARAMS)} Known: {', '.join(PARAMS)}")
        explainer = self._with(given.get("preset"))
        explanation = explainer.explain(
            rows,
            target=read_target(given.get("target"), known(explainer).classes),
            n=read_n(given.get("n", 1)),
            features=read_rules(given.get("rules")),
            time_budget=given.get("time_budget"),
            progress=False,
        )
        return without_nan(as_table(explanation))

    def _with(self, preset: str | None) -> CounterfactualExplainer:
        search = read_preset(preset, self.explainer.search)
        if preset is None or search is None:
            return self.explainer
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
