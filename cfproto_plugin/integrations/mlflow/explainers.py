"""Explainers as MLflow models: a pyfunc model from code, with a signature and an example, and without pickles."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any

from cfproto_plugin.checks import shown
from cfproto_plugin.errors import FileError, InputError
from cfproto_plugin.explainer import CounterfactualExplainer
from cfproto_plugin.integrations.mlflow.loading import load_mlflow
from cfproto_plugin.integrations.mlflow.signature import example_of, signature_of
from cfproto_plugin.plugins.versions import versions

_CODE = Path(__file__).with_name("explainer_model.py")
_ALWAYS = ("cfproto-plugin", "mlflow", "numpy", "scipy", "scikit-learn", "pandas", "skops")


def save_explainer(
    explainer: CounterfactualExplainer,
    path: str | os.PathLike[str],
    *,
    model_uri: str | None = None,
    trusted: Sequence[str] = (),
    **options: Any,
) -> None:
    """Write a fitted explainer as an MLflow model into a new folder. Arguments are those of `log_explainer`."""
    _hand_over("save_model", explainer, model_uri, trusted, {"path": str(path), **options})


def log_explainer(
    explainer: CounterfactualExplainer,
    name: str = "explainer",
    *,
    model_uri: str | None = None,
    trusted: Sequence[str] = (),
    **options: Any,
) -> Any:
    """Log a fitted explainer as an MLflow model in the active run; return its ModelInfo.

    name: of the model. model_uri: where MLflow finds the explained model, such as "models:/loans/3", if it is not to be
    stored with the explainer, or cannot be without a pickle. trusted: names of functions (module:name) in relations
    that may be imported when the model is loaded. options: all others go to `mlflow.pyfunc.log_model`, among them
    registered_model_name, input_example (rows, or rows and params), signature, pip_requirements, metadata and tags.
    Without them the example is the first three training rows, the signature is made from it, and the requirements are
    the installed versions of what explainer and models come from.
    """
    return _hand_over("log_model", explainer, model_uri, trusted, {"name": name, **options})


def load_explainer(model_uri: str, *, model: Any = None, trusted: Sequence[str] = ()) -> CounterfactualExplainer:
    """The explainer of a logged or saved model, by any URI or path that MLflow reads. No code in it is run.

    model: the explained model, where it was not stored; default: that of the URI given to `log_explainer`. trusted:
    names of types that the file of a scikit-learn model may restore, and of functions in relations.
    """
    mlflow = load_mlflow()
    if not isinstance(model_uri, (str, os.PathLike)):
        raise InputError(f"model_uri is {shown(model_uri)}; expected text such as 'models:/loans-explainer@champion'")
    folder = Path(mlflow.artifacts.download_artifacts(model_uri))
    flavor = mlflow.models.Model.load(folder).flavors.get("python_function", {})
    place = flavor.get("artifacts", {}).get("explainer")
    if place is None:
        raise InputError(f"{model_uri} holds no explainer; expected a model that log_explainer or save_explainer wrote")
    config: Mapping[str, Any] = flavor.get("config") or {}
    return explainer_of(folder / place["path"], config.get("model_uri"), model=model, trusted=trusted)


def explainer_of(
    path: Any, model_uri: str | None, *, model: Any = None, trusted: Sequence[str]
) -> CounterfactualExplainer:
    """The explainer in this folder, with the given model, or that of the URI if there is one, or its own."""
    if model is None and model_uri is not None:
        model = load_mlflow().pyfunc.load_model(model_uri).get_raw_model()
    return CounterfactualExplainer.load(path, model=model, trusted=trusted)


def requirements_of(explainer: CounterfactualExplainer) -> list[str]:
    """Installed versions of this package and of what the models come from, as pip takes them."""
    found = packages_distributions()
    models = (explainer.model, explainer.encoder, explainer.autoencoder)
    imported = {name for model in models if model is not None for name in versions(model)}
    named = {found[name][0] for name in imported if name in found}
    return sorted(f"{name}=={version(name)}" for name in named.union(_ALWAYS))


def _hand_over(
    function: str,
    explainer: CounterfactualExplainer,
    model_uri: str | None,
    trusted: Sequence[str],
    options: dict[str, Any],
) -> Any:
    """Write the explainer to a folder and give that to save_model or log_model of MLflow's pyfunc."""
    mlflow = load_mlflow()
    if not isinstance(explainer, CounterfactualExplainer):
        raise InputError(f"explainer is {shown(explainer)}; expected a fitted CounterfactualExplainer")
    if options.get("input_example") is None:
        options["input_example"] = example_of(explainer)
    if options.get("signature") is None:
        example = options["input_example"]
        options["signature"] = signature_of(explainer, example[0] if isinstance(example, tuple) else example)
    if options.get("pip_requirements") is None and options.get("conda_env") is None:
        options["pip_requirements"] = requirements_of(explainer)
    with tempfile.TemporaryDirectory() as folder:
        stored = Path(folder) / "explainer"
        trusted = _stored(explainer, stored, model_uri, trusted)
        config = {"model_uri": model_uri, "trusted": trusted, **(options.pop("model_config", None) or {})}
        return getattr(mlflow.pyfunc, function)(
            python_model=str(_CODE),
            artifacts={"explainer": str(stored)},
            model_config={name: value for name, value in config.items() if value},
            **options,
        )


def _stored(
    explainer: CounterfactualExplainer, folder: Path, model_uri: str | None, trusted: Sequence[str]
) -> list[str]:
    """Save the explainer and make sure that it can be loaded; return the names that must be trusted for that."""
    alone = explainer.encoder is None and explainer.autoencoder is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of models that are not stored: an error here, if not expected
        saved = explainer.save(folder, model="reference" if model_uri is not None and alone else "auto")
    names = [*dict.fromkeys((*saved.trusted, *trusted))]
    try:
        CounterfactualExplainer.load(folder, model=None if model_uri is None else explainer.model, trusted=names)
    except FileError as error:
        raise FileError(
            f"the explainer would not load: {error}\n  Log a model that cannot be stored with MLflow's own flavor and "
            "pass model_uri=; name functions of relations in trusted=."
        ) from error
    return names
