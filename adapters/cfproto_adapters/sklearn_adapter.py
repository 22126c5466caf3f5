"""scikit-learn: classifiers, and transformers or regressors as encoders and autoencoders.

    SklearnAdapter            any fitted model, through its own methods
    SklearnGradientAdapter    linear models and multi-layer perceptrons, also behind affine steps: exact gradients
    SklearnTreeAdapter        trees, forests, boosting, models made of them, also behind scalers: trees or thresholds

The class with the largest probability is the class `model.predict` returns, or the adapter has `labels`:
`sklearn_parts.probabilities` says where.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cfproto_adapters.files import SKLEARN
from cfproto_adapters.sklearn_parts.inputs import Rows, kind, name, unwrap
from cfproto_plugin import AdapterSpec, hookimpl
from cfproto_plugin.errors import InputError, ModelError, NotFittedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cfproto_adapters.numpy_chain import Chain
    from cfproto_plugin.protocols import Array, Pullback, Role, TreeEnsemble

    Function = Callable[[Any], Array]


@hookimpl
def cfproto_adapters() -> list[AdapterSpec]:
    # BaseEstimator and no mixin: XGBClassifier has it too, and its own class stands nearer in its MRO.
    claims = ("sklearn.base:BaseEstimator",)
    return [AdapterSpec("sklearn", claims=claims, factory=sklearn_adapter, files=SKLEARN)]


def sklearn_adapter(model: Any, *, role: Role = "classifier") -> SklearnAdapter:
    """Return the adapter that fits the model: with gradients where they are exact, with thresholds for trees."""
    return _classifier(model) if role == "classifier" else _transform(model)


class SklearnAdapter:
    """A fitted model through a function of its rows.

    function: rows -> the output of the model's own methods. quick: the same recomputed, None where it is not. labels,
    scores: rows -> the columns of its decisions, and probabilities whose largest lead to them; None where the largest
    probability decides. source: the classifier, which names its classes.
    images: the output of an autoencoder trained on flattened images gets their shape back.
    """

    def __init__(
        self,
        rows: Rows,
        function: Function,
        *,
        quick: Function | None = None,
        labels: Function | None = None,
        scores: Function | None = None,
        source: Any = None,
        images: bool = False,
    ) -> None:
        self._rows = rows
        self._function = function
        self._images = images
        self.quick = quick
        self.labels = labels
        self.scores = scores
        self.accepts_frames = rows.accepts_frames
        self.feature_names = rows.names
        self.scored = source is not None and not hasattr(unwrap(source), "predict_proba")
        self._source = source

    @property
    def classes(self) -> Array:
        """The labels that a classifier names now: fitted again, it may name others."""
        return np.asarray(unwrap(self._source).classes_)

    def predict(self, x: Array) -> Array:
        with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite, which the model reports
            return self._shaped(self._function(x), x)

    def _shaped(self, y: Array, x: Array) -> Array:
        return y.reshape(x.shape) if self._images and y.size == x.size else y


class SklearnGradientAdapter(SklearnAdapter):
    """A model that can be recomputed as a chain of stages, so that gradients pass back through it."""

    def __init__(
        self,
        rows: Rows,
        function: Function,
        chain: Chain,
        *,
        source: Any = None,
        images: bool = False,
    ) -> None:
        super().__init__(rows, function, quick=self._recomputed, source=source, images=images)
        self._chain = chain

    def vjp(self, x: Array) -> tuple[Array, Pullback]:
        y, pull = self._chain.vjp(self._rows.array(x))
        y = self._shaped(y, x)
        n, shape, flat = len(y), x.shape, y.ndim == x.ndim == 2  # noqa: PLR2004
        return y, (pull if flat else lambda g: pull(g.reshape(n, -1)).reshape(shape))

    def _recomputed(self, x: Array) -> Array:
        rows = self._rows.array(x)
        if not np.isfinite(rows).all():
            raise InputError("the rows hold missing or infinite values, which this model cannot use: fill them in.")
        return self._shaped(self._chain(rows), x)


class SklearnTreeAdapter(SklearnAdapter):
    """A model of trees, which split on the columns of its input.

    thresholds: of models that are made of trees but are no sum of them. row_by_row: nothing but the row matters.
    """

    def __init__(
        self,
        rows: Rows,
        function: Function,
        *,
        quick: Function | None,
        thresholds: list[Array] | None,
        source: Any,
        labels: Function | None = None,
        scores: Function | None = None,
        row_by_row: bool = False,
    ) -> None:
        super().__init__(rows, function, quick=quick, labels=labels, scores=scores, source=source)
        self._thresholds = thresholds
        self.row_by_row = row_by_row

    def trees(self) -> TreeEnsemble | None:
        """Return the model as a sum of trees; None if it is a model made of such models."""
        from cfproto_adapters.sklearn_parts.trees import Walk

        return self.quick.ensemble() if isinstance(self.quick, Walk) else None

    def thresholds(self) -> list[Array] | None:
        """Return the t of all splits x <= t by column; None if `trees` tells them."""
        return self._thresholds


def _classifier(source: Any) -> SklearnAdapter:
    """source: as the user passed it. Fitting it again may make a new model inside."""
    from cfproto_adapters.sklearn_parts.chains import classifier_chain
    from cfproto_adapters.sklearn_parts.probabilities import answers, recomputed, scores
    from cfproto_adapters.sklearn_parts.splits import splits
    from cfproto_adapters.sklearn_parts.trees import Walk

    model = unwrap(source)
    _require_classifier(model)
    rows, (function, labels) = Rows(model), answers(source)
    chain = classifier_chain(model)
    if chain is not None and labels is None:
        return SklearnGradientAdapter(rows, function, chain, source=source)
    quick = recomputed(model)
    thresholds = None if isinstance(quick, Walk) else splits(model)
    if labels is not None:
        leading = quick or scores(model)
        if thresholds is None:
            return SklearnAdapter(rows, function, labels=labels, scores=leading, source=source)
        return SklearnTreeAdapter(
            rows, function, quick=None, thresholds=thresholds, labels=labels, scores=leading, source=source
        )
    if isinstance(quick, Walk) or thresholds is not None:
        # several threads add up the trees of a forest in the order in which they finish
        steady = isinstance(quick, Walk) and getattr(model, "n_jobs", None) in {None, 1}
        return SklearnTreeAdapter(rows, function, quick=quick, thresholds=thresholds, source=source, row_by_row=steady)
    return SklearnAdapter(rows, function, quick=quick, source=source)


def _transform(model: Any) -> SklearnAdapter:
    model = unwrap(model)
    from sklearn.base import is_regressor

    from cfproto_adapters.sklearn_parts.chains import transform_chain

    _require_fitted(model)
    regressor = not hasattr(model, "transform")
    if regressor and not is_regressor(model):
        raise ModelError(
            f"{name(model)} has no transform method and is no regressor; an encoder is a fitted transformer such as "
            "PCA, an autoencoder a regressor fitted to return its input."
        )
    rows, chain = Rows(model), transform_chain(model)
    function = partial(_dense_output, model.predict if regressor else model.transform, rows)
    if chain is not None:
        return SklearnGradientAdapter(rows, function, chain, images=regressor)
    return SklearnAdapter(rows, function, images=regressor)


def _dense_output(method: Callable[[Any], Any], rows: Rows, x: Any) -> Array:
    """Sparse matrices and frames as arrays, one column as (n, 1)."""
    y = method(rows.native(x))
    values: Array = np.asarray(y.toarray() if hasattr(y, "toarray") else y)
    return values.reshape(-1, 1) if values.ndim == 1 else values


def _require_classifier(model: Any) -> None:
    from sklearn.base import is_classifier, is_regressor

    if is_regressor(model):
        raise ModelError(f"{name(model)} is a regressor: its predictions have no classes. Pass a classifier.")
    _require_fitted(model)
    if not hasattr(model, "classes_") or not (is_classifier(model) or hasattr(model, "predict_proba")):
        raise ModelError(f"{name(model)} is not a classifier. Pass one, or a function x -> probabilities.")
    if _has_several_outputs(model):
        raise ModelError(f"{name(model)} predicts several outputs at once. Pass the classifier of one of them.")
    if len(model.classes_) < 2:  # noqa: PLR2004
        raise ModelError(f"{name(model)} knows only the class {model.classes_[0]!r}; a counterfactual needs another.")


def _require_fitted(model: Any) -> None:
    from sklearn.exceptions import NotFittedError as SklearnNotFittedError
    from sklearn.utils.validation import check_is_fitted

    prefit = kind(model) == "FixedThresholdClassifier" and not hasattr(model, "estimator_")
    try:
        check_is_fitted(model.estimator if prefit else model)
    except SklearnNotFittedError as error:
        raise NotFittedError(f"{name(model)} is not fitted: call its fit(X, y) first.") from error


def _has_several_outputs(model: Any) -> bool:
    """Several label columns: lists of classes, or a binarizer that saw an indicator matrix."""
    last = unwrap(model.steps[-1][1]) if kind(model) == "Pipeline" else model
    binarizer = getattr(last, "label_binarizer_", getattr(last, "_label_binarizer", None))
    return isinstance(model.classes_, list) or str(getattr(binarizer, "y_type_", "")).startswith("multilabel")
