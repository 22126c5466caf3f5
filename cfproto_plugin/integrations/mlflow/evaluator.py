"""An evaluator for `mlflow.models.evaluate`: how good the counterfactuals of a classifier are, also by groups of rows.

MLflow finds it by its entry point, as "cfproto", and only MLflow imports this module.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np
from mlflow.models.evaluation.base import EvaluationResult, ModelEvaluator

from cfproto_plugin.checks import is_count, shown
from cfproto_plugin.errors import ConfigError, InputError, NoAdapterError, did_you_mean
from cfproto_plugin.explainer import CounterfactualExplainer
from cfproto_plugin.explanation import Explanation
from cfproto_plugin.helpers.kinds import take
from cfproto_plugin.integrations.mlflow.explainers import load_explainer
from cfproto_plugin.integrations.mlflow.explanations import log_explanation
from cfproto_plugin.integrations.mlflow.loading import load_mlflow
from cfproto_plugin.integrations.mlflow.measures import as_metrics, measures_by_group
from cfproto_plugin.protocols import Array
from cfproto_plugin.report.cohorts import Groups

log = logging.getLogger(__name__)
SETTINGS = ("explainer", "train", "rows", "group", "target", "n", "time_budget", "features", "search", "metric_prefix")
_ROWS = 100
_FOLDER = "counterfactuals"


class CounterfactualEvaluator(ModelEvaluator):  # type: ignore[misc]  # MLflow is not seen by the type checker
    """Explains rows of the data set and logs the means of what is measured, JSON, a page and a table.

    Settings, in evaluator_config:
    explainer: a fitted CounterfactualExplainer, the URI of a logged one, or "auto" to make one from the evaluated model
        and the data. train: rows to fit that one with; default: those of the data set. features, search: its rules and
        settings.
    rows: how many rows to explain, evenly spaced; default 100. group: a feature, or an array or Series with one value
        per row of the data set: every measure is also logged for each of its values.
    target, n, time_budget: as in `explain`. metric_prefix: put before the names of the metrics.
    """

    @classmethod
    def can_evaluate(cls, *, model_type: str, evaluator_config: Mapping[str, Any], **_: Any) -> bool:
        """Classifiers, if a setting of this evaluator is given: nobody else waits for counterfactuals."""
        return model_type == "classifier" and bool({*evaluator_config} & {*SETTINGS[:-1]})

    def evaluate(
        self, *, model_type: str, dataset: Any, run_id: str, evaluator_config: Any, model: Any = None, **_: Any
    ) -> EvaluationResult:
        """Explain, measure and log. Arguments are MLflow's."""
        del model_type
        config = _checked(evaluator_config)
        data = dataset.features_data
        explainer = _explainer(config, model, data)
        chosen = _evenly(len(data), config.get("rows", _ROWS))
        groups = None if config.get("group") is None else Groups.of(config["group"], data).take(chosen)
        explanation = explainer.explain(
            take(data, chosen),
            target=config.get("target"),
            n=config.get("n", 1),
            time_budget=config.get("time_budget"),
            progress=False,
        )
        table = measures_by_group(explanation, groups)
        metrics = as_metrics(table, config.get("metric_prefix") or "")
        load_mlflow().log_metrics(metrics, run_id=run_id)
        return EvaluationResult(metrics, _logged(explanation, table, run_id), run_id)


def _checked(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings; those of other evaluators may be among them, so that unknown ones are only warned about."""
    for name in config:
        if name not in SETTINGS:
            log.warning(
                "cfproto does not use the setting %r of evaluator_config.%s", name, did_you_mean(name, SETTINGS)
            )
    if not is_count(config.get("rows", _ROWS)):
        raise ConfigError(f"rows is {shown(config['rows'])}; expected how many rows to explain, at least 1")
    return config


def _explainer(config: Mapping[str, Any], model: Any, data: Any) -> CounterfactualExplainer:
    """The explainer that was given, that of a URI, or a new one of the evaluated model."""
    given = config.get("explainer", "auto")
    if isinstance(given, CounterfactualExplainer) or (isinstance(given, str) and given != "auto"):
        for name in ("train", "features", "search"):
            if config.get(name) is not None:
                raise ConfigError(
                    f"{name} is for an explainer that is made here, and explainer is given; leave out one"
                )
        return load_explainer(given) if isinstance(given, str) else given
    if given != "auto":
        raise ConfigError(f"explainer is {shown(given)}; expected a CounterfactualExplainer, the URI of one, or 'auto'")
    train = config.get("train")
    explainer = CounterfactualExplainer(_raw(model), features=config.get("features"), search=config.get("search"))
    try:
        return explainer.fit(data if train is None else train)
    except NoAdapterError as error:
        raise InputError(f"no explainer can be made of the evaluated model: {error}\n  {_HINT}") from error


def _raw(model: Any) -> Any:
    """The model inside MLflow's."""
    try:
        return model.get_raw_model()
    except (AttributeError, NotImplementedError) as error:
        raise InputError(f"no explainer can be made of {shown(model)}, which holds no model. {_HINT}") from error


_HINT = "Give a fitted one: evaluator_config={'explainer': CounterfactualExplainer(...).fit(X_train)}."


def _evenly(n: int, most: int) -> Array:
    """At most so many of n rows, evenly spaced from the first to the last."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))


def _logged(explanation: Explanation, table: Any, run_id: str) -> dict[str, Any]:
    """Log the explanation and the table; return them as MLflow's artifacts."""
    from mlflow.models.evaluation.artifacts import CsvEvaluationArtifact, TextEvaluationArtifact

    mlflow = load_mlflow()
    uri = log_explanation(explanation, _FOLDER, run_id=run_id)
    mlflow.log_text(table.to_csv(index=False), f"{_FOLDER}/metrics.csv", run_id=run_id)
    return {
        "counterfactuals": TextEvaluationArtifact(f"{uri}/explanation.json", explanation.to_json()),
        "counterfactual_metrics": CsvEvaluationArtifact(f"{uri}/metrics.csv", table),
    }
