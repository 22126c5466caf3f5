"""The code of a logged explainer. MLflow copies this file into the model's folder and runs it to load the model."""

from typing import Any

import numpy as np
from mlflow.exceptions import MlflowException
from mlflow.models import set_model
from mlflow.pyfunc import PythonModel

from cfproto_plugin.errors import CfprotoError
from cfproto_plugin.integrations.mlflow.explainers import explainer_of
from cfproto_plugin.integrations.serving import ServedExplainer


class ExplainerModel(PythonModel):  # type: ignore[misc]  # MLflow is not seen by the type checker
    """Rows in, counterfactuals out."""

    def load_context(self, context: Any) -> None:
        """Read the explainer, and the model it explains if that lies elsewhere.

        The types that log_explainer noted are trusted: who loads this model runs the code of its folder already.
        """
        config = context.model_config or {}
        self.served = ServedExplainer(
            explainer_of(context.artifacts["explainer"], config.get("model_uri"), trusted=config.get("trusted", ()))
        )

    def predict(
        self,
        context: Any,  # noqa: ARG002
        model_input: np.ndarray,  # or a frame; MLflow warns of any other annotation
        params: dict[str, Any] | None = None,
    ) -> Any:
        """A line per answer. What is wrong with a request is the client's error, not the server's."""
        try:
            return self.served.answer(model_input, params)
        except CfprotoError as error:
            raise MlflowException.invalid_parameter_value(str(error)) from error


set_model(ExplainerModel())
