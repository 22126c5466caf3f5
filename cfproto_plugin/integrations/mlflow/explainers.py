"""Explainers as MLflow models: a pyfunc model from code, with a signature and an example, and without pickles."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any

from cfproto_plugin.errors import InputError
from cfproto_plugin.explainer import CounterfactualExplainer
from cfproto_plugin.integrations.mlflow.loading import load_mlflow
from cfproto_plugin.integrations.mlflow.signature import example_of, signature_of
from cfproto_plugin.plugins.versions import versions

_CODE = Path(__file__).with_name("explainer_model.py")
_ALWAYS = ("cfproto-plugin", "mlflow", "numpy", "scipy", "scikit-learn", "pandas")


def save_explainer(
    explainer: CounterfactualExplainer, path: Any, *, model_uri: str | None = None, **options: Any
) -> None:
    """Write a fitted explainer as an MLflow model into a new folder. Arguments are those of `log_explainer`."""
    _hand_over("save_model", explainer, model_uri, {"path": str(path), **options})


def log_explainer(
    explainer: CounterfactualExplainer, name: str | None = "explainer", *, model_uri: str | None = None, **options: Any
) -> Any:
    """Log a fitted explainer as an MLflow model in the active run; return its ModelInfo.

    name: of the model. model_uri: where the explained model lies, such as "models:/loans/3", if it is not to be stored
    with the explainer, or cannot be without a pickle: it is loaded from there. options: all others go to
    `mlflow.pyfunc.log_model`, registered_model_name, input_example, signature, pip_requirements, metadata and tags
    among them. Without them the example is the first three training rows, the signature is made from it, and the
    requirements are the installed versions of what explainer and models come from.
    """
    return _hand_over("log_model", explainer, model_uri, {"name": name, **options})


def load_explainer(model_uri: str, *, model: Any = None) -> CounterfactualExplainer:
    """The explainer of a logged or saved model, by any URI or path that MLflow reads.

    model: the explained model, where it was not stored; default: that of the URI given to `log_explainer`.
    """
    mlflow = load_mlflow()
    folder = Path(mlflow.artifacts.download_artifacts(model_uri))
    flavor = mlflow.models.Model.load(folder).flavors.get("python_function", {})
    place = flavor.get("artifacts", {}).get("explainer")
    if place is None:
        raise InputError(f"{model_uri} holds no explainer; expected a model that log_explainer or save_explainer wrote")
    return explainer_of(folder / place["path"], flavor.get("config"), model)


def explainer_of(path: Any, config: Mapping[str, Any] | None = None, model: Any = None) -> CounterfactualExplainer:
    """The explainer in this file, with the given model or that of config["model_uri"] if there is one."""
    uri = (config or {}).get("model_uri")
    if model is None and uri is not None:
        model = load_mlflow().pyfunc.load_model(uri).get_raw_model()
    return CounterfactualExplainer.load(path, model=model)


def _hand_over(function: str, explainer: CounterfactualExplainer, model_uri: str | None, options: Any) -> Any:
    """Write the explainer to a folder of its own and give it to save_model or log_model."""
    mlflow = load_mlflow()
    options = dict(options)
    if options.get("input_example") is None:
        options["input_example"] = example_of(explainer)
    if options.get("signature") is None:
        options["signature"] = signature_of(explainer, options["input_example"])
    if options.get("pip_requirements") is None and options.get("conda_env") is None:
        options["pip_requirements"] = requirements_of(explainer)
    if model_uri is not None:
        options["model_config"] = {"model_uri": model_uri, **options.get("model_config", {})}
    with tempfile.TemporaryDirectory() as folder:
        stored = Path(folder) / "explainer.cfproto"
        explainer.save(stored)
        artifacts = {"explainer": str(stored)}
        return getattr(mlflow.pyfunc, function)(python_model=str(_CODE), artifacts=artifacts, **options)


def requirements_of(explainer: CounterfactualExplainer) -> list[str]:
    """Installed versions of this package and of what the models come from, as pip takes them."""
    found = packages_distributions()
    models = (explainer.model, explainer.encoder, explainer.autoencoder)
    imported = {name for model in models if model is not None for name in versions(model)}
    named = {found[name][0] for name in imported if name in found}
    return sorted(f"{name}=={version(name)}" for name in named.union(_ALWAYS))
