"""`CounterfactualProto`: the calls of alibi's explainer of that name, answered by this package."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np

from cfproto_plugin.checks import shown
from cfproto_plugin.errors import ConfigError, FileError, NotFittedError
from cfproto_plugin.integrations.alibi.answers import answers, together
from cfproto_plugin.integrations.alibi.asking import (
    check_prototypes,
    check_search,
    classes_of,
    labels_of,
    row_shape,
    rows_of,
)
from cfproto_plugin.integrations.alibi.categories import Categories, Layout, Measure
from cfproto_plugin.integrations.alibi.descent import Descent, Rows
from cfproto_plugin.integrations.alibi.explanation import Explanation
from cfproto_plugin.integrations.alibi.models import Networks, probabilities
from cfproto_plugin.integrations.alibi.prototypes import ClassTrees, EncodedClasses, Guide, TrustOptions
from cfproto_plugin.integrations.alibi.settings import Settings, feature_bounds
from cfproto_plugin.integrations.alibi.trust import trust_of
from cfproto_plugin.integrations.alibi.verbose import Printer
from cfproto_plugin.plugins import adapted
from cfproto_plugin.protocols import Array

log = logging.getLogger(__name__)
_ENDLESS = 1e6  # width of a range in which categories would have no sensible distance
_NO_FILES = (
    "CounterfactualProto is not saved or loaded; make it again and fit it, or use CounterfactualExplainer of "
    "cfproto_plugin, which has save(path) and load(path)"
)


class Learned(NamedTuple):
    """What `fit` learned."""

    networks: Networks
    bounds: tuple[Array, Array]  # of the search, flat (D,)
    guide: Guide | None


class CounterfactualProto:
    """Counterfactuals guided by prototypes, called as in alibi.

    The search minimises c·L_pred + beta·L1 + L2 + gamma·L_AE + theta·L_proto.

    predict: a model of any kind that an installed plugin claims, or a function x -> probabilities (n, k). ae_model,
        enc_model: autoencoder and encoder, likewise. Models that give gradients (Keras, PyTorch) are differentiated,
        others asked at steps of eps.
    shape: of the rows, starting with the batch.
    kappa: by how much the new class must lead. beta, gamma, theta: weights of the terms; 0 switches a term off.
    feature_range: lowest and highest value, numbers or one for each feature.
    cat_vars: column to number of categories, for codes 0, 1, ...; with ohe the first of that many one-hot columns.
    use_kdtree: prototypes are training rows, if there is no encoder. Without either theta has no effect.
    learning_rate_init, max_iterations: of the iteration. c_init, c_steps: first value of c, and how many are tried.
    eps: steps of differences, of probabilities and of features. clip: bounds of every entry of a gradient.
    write_dir, sess, update_num_grad: ignored, with a warning if they are given.
    """

    def __init__(
        self,
        predict: Any,
        shape: tuple[int, ...],
        kappa: float = 0.0,
        beta: float = 0.1,
        feature_range: tuple[Any, Any] = (-1e10, 1e10),
        gamma: float = 0.0,
        ae_model: Any = None,
        enc_model: Any = None,
        theta: float = 0.0,
        cat_vars: Mapping[int, int] | None = None,
        ohe: bool = False,
        use_kdtree: bool = False,
        learning_rate_init: float = 1e-2,
        max_iterations: int = 1000,
        c_init: float = 10.0,
        c_steps: int = 10,
        eps: tuple[Any, Any] = (1e-3, 1e-3),
        clip: tuple[float, float] = (-1000.0, 1000.0),
        update_num_grad: int = 1,
        write_dir: str | None = None,
        sess: Any = None,
    ) -> None:
        given = {name: value for name, value in locals().items() if name != "self"}
        self._row = row_shape(shape)
        self._settings = Settings(
            kappa, beta, gamma, theta, learning_rate_init, max_iterations, c_init, c_steps, eps, clip
        )
        self._layout = None if cat_vars is None else Layout.of(cat_vars, self._row, ohe=ohe)
        self._given_range = feature_range
        self._learned: Learned | None = None
        self.predict, self.enc_model, self.ae_model = predict, enc_model, ae_model
        self.shape, self.feature_range = shape, self._bounds()
        self.enc_or_kdtree = enc_model is not None or use_kdtree
        self.d_abs: dict[int, Array] = {}
        self.meta = _meta(given, enc_or_kdtree=self.enc_or_kdtree)
        _warn_of_ignored(given)

    def fit(
        self,
        train_data: Any,
        trustscore_kwargs: Mapping[str, Any] | None = None,
        d_type: str = "abdm",
        w: float | None = None,
        disc_perc: Sequence[float] = (25, 50, 75),
        standardize_cat_vars: bool = False,
        smooth: float = 1.0,
        center: bool = True,
        update_feature_range: bool = True,
    ) -> Self:
        """Learn prototypes, and the numbers of categories, from training rows; their classes come from the model.

        trustscore_kwargs: which training rows are left out as outliers: alpha, filter_type, k_filter, dist_filter_type;
        also metric and leaf_size of the k-d trees. d_type: distance between categories: "abdm", "mvdm", or "abdm-mvdm"
        with w the weight of the first. disc_perc: percentiles between which numbers are binned for it.
        standardize_cat_vars: mean 0 and standard deviation 1 for the numbers of a column's categories. smooth: exponent
        of the distances. center: whether these numbers lie around 0 or begin at the lower end of feature_range.
        update_feature_range: whether their extremes bound the search.
        """
        given = {name: value for name, value in locals().items() if name not in {"self", "train_data"}}
        options = TrustOptions.of(trustscore_kwargs)
        measure = Measure(d_type, w, disc_perc, standardize_cat_vars, smooth, center)
        rows = rows_of(train_data, self._row, "train_data")
        if self._layout is not None:
            self._layout.check(rows, "train_data")
        networks, bounds = self._networks(None), self._bounds()
        labels = probabilities(networks.classifier, rows).argmax(axis=1)
        if self._layout is not None:
            values = self._values(self._layout, measure, rows, labels, bounds)
            networks = self._networks(Categories(self._layout, values))
            bounds = _around(bounds, values) if update_feature_range else bounds
            self.d_abs, self.feature_range = values, bounds
        self._learned = Learned(networks, bounds, self._guide(networks, rows, labels, options))
        self.meta["params"] |= given
        return self

    def explain(
        self,
        X: Any,  # noqa: N803 alibi's names
        Y: Any = None,  # noqa: N803
        target_class: Sequence[int] | None = None,
        k: int | None = None,
        k_type: str = "mean",
        threshold: float = 0.0,
        verbose: bool = False,
        print_every: int = 100,
        log_every: int = 100,  # noqa: ARG002 there is no log of TensorFlow's
    ) -> Explanation:
        """Find the counterfactuals of one row or many.

        Y: labels of X as one-hot rows; default: what the model says. target_class: the classes that
        the counterfactual may have; default: any other. k: the prototype is the k-th nearest
        training row, with an encoder the mean of the k nearest codes; default: 1, with an encoder all of the class.
        k_type: "point" takes the k-th nearest code instead of the mean.
        threshold: the least trust score. verbose, print_every: whether and how often the losses are printed.
        """
        check_search(k, k_type, threshold, print_every)
        learned = self._ready()
        networks, guide = learned.networks, learned.guide
        given = rows_of(X, self._row, "X", one=True)
        proba = probabilities(networks.classifier, given)
        label = labels_of(Y, proba)
        z = self._points(networks, given)
        networks.settings.check_sizes(z.shape[1], proba.shape[1])
        wanted = classes_of(target_class, label, proba.shape[1])
        rows = Rows(z, label, wanted & (np.arange(proba.shape[1]) != label[:, None]), None)
        trust, id_proto = None, None
        if guide is not None:
            check_prototypes(wanted, guide.classes)
            encode = None if networks.encoder is None else networks.encode
            found = guide.prototypes(z if encode is None else encode(z), k, k_type)
            prototype, id_proto = found.nearest(wanted)
            rows, trust = rows._replace(prototype=prototype), trust_of(guide, encode, label, found)
        elif threshold > 0:
            warnings.warn(
                "threshold is ignored: trust scores need training rows, and there is neither enc_model nor "
                "use_kdtree=True",
                stacklevel=2,
            )
        watch = Printer(print_every) if verbose else None
        search = Descent(networks, learned.bounds, threshold, trust, watch)
        data = answers(search, rows, search.run(rows), proba, id_proto)
        for row, each in enumerate(data):
            if each["cf"] is None:
                log.warning("no counterfactual found for row %d", row)
        return Explanation(self.meta, data[0] if len(data) == 1 else together(data), data)

    def reset_predictor(self, predictor: Any) -> None:
        """Explain another model, with what `fit` learned."""
        self.predict = predictor
        if self._learned is not None:
            self._learned = self._learned._replace(networks=self._networks(self._learned.networks.categories))

    def save(self, *_args: Any, **_options: Any) -> NoReturn:
        """Not there: an error that says what is."""
        raise FileError(_NO_FILES)

    @classmethod
    def load(cls, *_args: Any, **_options: Any) -> NoReturn:
        """Not there: an error that says what is."""
        raise FileError(_NO_FILES)

    def _ready(self) -> Learned:
        """What was learned; without prototypes and categories there is nothing to learn."""
        if self._learned is not None:
            return self._learned
        if self._layout is not None or self.enc_or_kdtree:
            raise NotFittedError("prototypes and categories come from training data; call fit(train_data) first")
        return Learned(self._networks(None), self._bounds(), None)

    def _networks(self, categories: Categories | None) -> Networks:
        encoder, autoencoder = (
            None if model is None else adapted(model, role="transform") for model in (self.enc_model, self.ae_model)
        )
        shape = self._row if categories is None else (len(categories.layout.starts),)
        return Networks(adapted(self.predict), encoder, autoencoder, categories, shape, self._settings)

    def _bounds(self) -> tuple[Array, Array]:
        """The bounds of the search as they were given."""
        if self._layout is None:
            low, high = feature_bounds(self._given_range, self._row)
            return low.reshape(-1), high.reshape(-1)
        given = tuple(self._layout.bounds(bound) for bound in self._given_range)
        return feature_bounds(given, (len(self._layout.starts),))

    def _values(
        self, layout: Layout, measure: Measure, rows: Array, labels: Array, bounds: tuple[Array, Array]
    ) -> dict[int, Array]:
        widest = max(float(bounds[1][column] - bounds[0][column]) for column in layout.sizes)
        if widest > _ENDLESS and not measure.standardize:
            raise ConfigError(
                f"feature_range is {shown(self._given_range)}, and categories get numbers in it; give a range as wide "
                "as those of the numeric columns, such as (-1, 1), or standardize_cat_vars=True"
            )
        return measure.values(layout, layout.to_ordinal(rows), labels, bounds)

    def _points(self, networks: Networks, rows: Array) -> Array:
        if networks.categories is None:
            return rows.reshape(len(rows), -1)
        networks.categories.layout.check(rows, "X")
        return networks.categories.encode(rows)

    def _guide(self, networks: Networks, rows: Array, labels: Array, options: TrustOptions) -> Guide | None:
        if not self.enc_or_kdtree:
            return None
        z = self._points(networks, rows)
        if networks.encoder is None:
            return ClassTrees(z, labels, options)
        return EncodedClasses(networks.encode(z), labels)


def _around(bounds: tuple[Array, Array], values: dict[int, Array]) -> tuple[Array, Array]:
    """The bounds with those of the categories' numbers."""
    low, high = bounds[0].copy(), bounds[1].copy()
    for column, numbers in values.items():
        low[column], high[column] = numbers.min(), numbers.max()
    return low, high


def _meta(given: dict[str, Any], *, enc_or_kdtree: bool) -> dict[str, Any]:
    """What is known of the explainer; the models themselves are left out."""
    models = {"is_model": "predict", "is_ae": "ae_model", "is_enc": "enc_model"}
    params = {name: value for name, value in given.items() if name not in {*models.values(), "sess"}}
    has_gradient = adapted(given["predict"]).vjp is not None
    is_there = {name: given[model] is not None for name, model in models.items()}
    params |= is_there | {"is_model": has_gradient}
    params |= {"enc_or_kdtree": enc_or_kdtree, "is_cat": given["cat_vars"] is not None}
    return {
        "name": "CounterfactualProto",
        "type": ["blackbox", "tensorflow", "keras", "pytorch"],
        "explanations": ["local"],
        "params": params,
        "version": version("cfproto-plugin"),
    }


def _warn_of_ignored(given: dict[str, Any]) -> None:
    """Say which arguments have no effect."""
    reasons = {
        "sess": (None, "no TensorFlow session is used: the model runs itself"),
        "write_dir": (None, "nothing is logged for TensorBoard; explain(verbose=True) prints the losses"),
        "update_num_grad": (1, "differences are taken afresh in every step"),
    }
    for name, (default, reason) in reasons.items():
        if given[name] is not None and given[name] != default:
            warnings.warn(f"{name} is ignored: {reason}", stacklevel=3)
