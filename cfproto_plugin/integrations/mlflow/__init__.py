"""MLflow 3: explainers as models, explanations as artifacts, and an evaluator of counterfactuals.

`log_explainer`, `save_explainer`, `load_explainer` and `log_explanation` are named after those of `mlflow.shap`. A
logged explainer is a pyfunc model without pickles: `mlflow models serve` and Spark UDFs answer rows with
counterfactuals. `mlflow.models.evaluate(..., evaluators="cfproto")` finds `evaluator.CounterfactualEvaluator` by its
entry point. MLflow is imported when one of them is called.
"""

from cfproto_plugin.integrations.mlflow.explainers import load_explainer, log_explainer, save_explainer
from cfproto_plugin.integrations.mlflow.explanations import log_explanation

__all__ = ["load_explainer", "log_explainer", "log_explanation", "save_explainer"]
