"""The networks of the paper's MNIST experiment, trained with torch as its appendix says.

Images are (n, 28, 28, 1) in [-0.5, 0.5]. The layers, optimisers, epochs and batch sizes are the paper's; where it is
silent (weights at the start, last activations) they are Keras' defaults and linear layers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import dense
import numpy as np
import torch
from store import Store
from torch import Tensor, nn

DIGITS = range(10)
AT_ONCE = 128  # rows; the activations of more do not stay in the processor's cache, those of all not in memory


class Digits(nn.Module):
    """Layers over images with the channel last, as the data has them."""

    def __init__(self, layers: nn.Module, *, image: bool = True) -> None:
        super().__init__()
        self.layers = layers
        self.image = image

    def forward(self, x: Tensor) -> Tensor:
        if len(x) > AT_ONCE and not torch.is_grad_enabled():
            return torch.cat([self(part) for part in x.split(AT_ONCE)])
        y: Tensor = self.layers(x.permute(0, 3, 1, 2))
        return y.permute(0, 2, 3, 1) if self.image else y


class Chain(nn.Module):
    """The decoder after the encoder."""

    def __init__(self, encoder: nn.Module, decoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.decoder(self.encoder(x))
        return y


def classifier() -> nn.Module:
    """64 and 32 filters 2x2 with pooling, a dense layer of 256, softmax over the digits."""
    return Digits(
        nn.Sequential(
            *_pooled(1, 64, 2),
            nn.Dropout(0.3),
            *_pooled(64, 32, 2),
            nn.Dropout(0.3),
            nn.Flatten(),
            nn.Linear(32 * 7 * 7, 256),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(256, len(DIGITS)),
            nn.Softmax(dim=1),
        ),
        image=False,
    )


def other_classifier() -> nn.Module:
    """Another architecture, to judge counterfactuals: 16 filters 5x5 and 32 filters 3x3, stride 2, no pooling."""
    return Digits(
        nn.Sequential(
            nn.Conv2d(1, 16, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * 7 * 7, 128),
            nn.ReLU(),
            nn.Dropout(0.3),
            nn.Linear(128, len(DIGITS)),
            nn.Softmax(dim=1),
        ),
        image=False,
    )


def before_softmax(model: nn.Module) -> nn.Module:
    """The 256 activations of the dense layer of a classifier."""
    return Digits(nn.Sequential(*list(model.layers)[:11]), image=False)  # type: ignore[arg-type, call-overload]


def autoencoder() -> nn.Module:
    """AE of L_AE: 14x14 numbers in the middle. Its encoder is ENC of L_proto."""
    encoder = nn.Sequential(*_conv(1, 16), *_pooled(16, 16), _plain(16, 1))
    decoder = nn.Sequential(*_conv(1, 16), nn.Upsample(scale_factor=2), *_conv(16, 16), _plain(16, 1))
    return Chain(Digits(encoder), Digits(decoder))


def small_autoencoder() -> nn.Module:
    """AE_i of the metrics: 16, 8 and 8 filters, each pooled, 4x4x8 numbers in the middle, then the same backwards.

    Three doublings of 4 are 32, not 28: the last but one convolution has no padding, which makes 14 of 16.
    """
    encoder = nn.Sequential(*_pooled(1, 16), *_pooled(16, 8), *_pooled(8, 8))
    double = nn.Upsample(scale_factor=2)
    decoder = nn.Sequential(
        *_conv(8, 8), double, *_conv(8, 8), double, nn.Conv2d(8, 16, 3), nn.ReLU(), double, _plain(16, 1)
    )
    return Chain(Digits(encoder), Digits(decoder))


class EvenConv(nn.Conv2d):
    """Filters of size 2 with padding "same": the extra row and column come last, as in Keras."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(nn.functional.pad(x, (0, 1, 0, 1)))


def _plain(before: int, after: int, size: int = 3) -> nn.Conv2d:
    return EvenConv(before, after, size) if size == 2 else nn.Conv2d(before, after, size, padding="same")


def _conv(before: int, after: int, size: int = 3) -> tuple[nn.Module, nn.Module]:
    return _plain(before, after, size), nn.ReLU()


def _pooled(before: int, after: int, size: int = 3) -> tuple[nn.Module, ...]:
    """Convolution, ReLU, pooling. The last two commute, and four times fewer numbers are cheaper to cut off."""
    return _plain(before, after, size), nn.MaxPool2d(2, ceil_mode=True), nn.ReLU()


@dataclass(frozen=True)
class Recipe:
    """How a network is made. Without labels it learns to give back its input."""

    build: Callable[[], nn.Module]
    epochs: int
    batch: int


CLASSIFIER = Recipe(classifier, epochs=3, batch=64)
OTHER_CLASSIFIER = Recipe(other_classifier, epochs=2, batch=64)
AUTOENCODER = Recipe(autoencoder, epochs=4, batch=128)
SMALL = Recipe(small_autoencoder, epochs=30, batch=128)
SMALL_ALL = Recipe(small_autoencoder, epochs=4, batch=128)


def train(recipe: Recipe, x: np.ndarray, y: np.ndarray | None, seed: int) -> nn.Module:
    """Adam at its default rate on cross entropy of the labels, or on the squared error of the copy."""
    torch.manual_seed(seed)
    model = recipe.build()
    for layer in model.modules():
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias if layer.bias is not None else torch.empty(0))
    rows, goal = torch.from_numpy(x), torch.from_numpy(x if y is None else y)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(recipe.epochs):
        for at in torch.randperm(len(rows)).split(recipe.batch):
            out = model(rows[at])
            loss = nn.functional.mse_loss(out, goal[at]) if y is None else _cross_entropy(out, goal[at])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return model


def _cross_entropy(proba: Tensor, label: Tensor) -> Tensor:
    return nn.functional.nll_loss(torch.log(proba + 1e-7), label)


@dataclass(frozen=True)
class Networks:
    """All the networks of one seed; each is trained, or read from the store, when it is asked for.

    epochs: of all instead of the paper's, to try things out.
    """

    store: Store
    x: np.ndarray
    y: np.ndarray
    seed: int
    epochs: int | None = None

    @cached_property
    def classifier(self) -> nn.Module:
        return self._made("classifier", CLASSIFIER, self.x, self.y)

    @cached_property
    def autoencoder(self) -> nn.Module:
        return self._made("autoencoder", AUTOENCODER, self.x)

    @cached_property
    def of_class(self) -> Sequence[nn.Module]:
        return [self._made(f"class{digit}", SMALL, self.x[self.y == digit]) for digit in DIGITS]

    @cached_property
    def of_all(self) -> nn.Module:
        """The architecture of the class autoencoders, on all classes: AE of IM2."""
        return self._made("all", SMALL_ALL, self.x)

    @property
    def encoder(self) -> nn.Module:
        encoder = self.autoencoder.encoder
        if not isinstance(encoder, nn.Module):
            raise TypeError(f"the autoencoder has no encoder but {encoder!r}")
        return encoder

    def _made(self, name: str, recipe: Recipe, rows: np.ndarray, labels: np.ndarray | None = None) -> nn.Module:
        return network(self.store, name, recipe, rows, labels, seed=self.seed, epochs=self.epochs)


def judges(store: Store, x: np.ndarray, y: np.ndarray, seed: int, epochs: int | None = None) -> list[nn.Module]:
    """Two classifiers that had no part in a search: the paper's architecture and another."""
    made = partial(network, store, seed=seed, epochs=epochs)
    return [made("classifier", CLASSIFIER, x, y), made("other_classifier", OTHER_CLASSIFIER, x, y)]


def network(
    store: Store,
    name: str,
    recipe: Recipe,
    rows: np.ndarray,
    labels: np.ndarray | None = None,
    *,
    seed: int,
    epochs: int | None,
) -> nn.Module:
    """One network of a seed, trained now or read from the store; epochs: None for those of the recipe."""
    recipe = recipe if epochs is None else replace(recipe, epochs=epochs)
    settings = {"epochs": recipe.epochs, "batch": recipe.batch, "rows": len(rows)}
    kept = store.get(
        f"mnist/seed{seed}/networks/{name}", settings, lambda: dense.weights(train(recipe, rows, labels, seed))
    )
    return dense.loaded(recipe.build(), kept)


def apply(model: nn.Module, x: np.ndarray) -> np.ndarray:
    """The output of a network."""
    with torch.no_grad():
        return np.asarray(model(torch.from_numpy(x)).numpy())
