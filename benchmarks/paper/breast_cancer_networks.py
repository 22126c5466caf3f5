"""The data of the Breast Cancer experiment and the networks of its appendix, trained once per seed and kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import dense
import numpy as np
import torch
from store import Arrays, Store

TRAIN = 550  # of 569 rows, as in the paper


class Data(NamedTuple):
    """Standardised rows, with labels: those of training and those to explain."""

    train: Any
    labels: Any
    x: Any
    y: Any
    attributes: list[str]  # of every feature: radius, texture, ...

    @classmethod
    def load(cls, rows: int) -> Data:
        """The first 550 rows to train, the last 19 to explain."""
        from sklearn.datasets import load_breast_cancer

        found = load_breast_cancer()
        x = ((found.data - found.data.mean(axis=0)) / found.data.std(axis=0)).astype(np.float32)
        chosen = slice(TRAIN, TRAIN + rows)
        words = ("mean ", "worst ", " error")
        attributes = [str(name) for name in found.feature_names]
        for word in words:
            attributes = [name.replace(word, "") for name in attributes]
        return cls(x[:TRAIN], found.target[:TRAIN], x[chosen], found.target[chosen], attributes)


@dataclass(frozen=True)
class Networks:
    """The classifier with softmax, an autoencoder per class and one for all."""

    classifier: torch.nn.Module
    autoencoders: dict[int, torch.nn.Module]
    autoencoder: torch.nn.Module


Start = Literal["keras", "torch"]  # whose first weights the networks have


def train_classifier(data: Data, seed: int, epochs: int, start: Start = "keras") -> Arrays:
    """Stochastic gradient descent at rate 0.01."""
    torch.manual_seed(seed)
    net = dense.classifier(start)
    return dense.weights(dense.train(net, data.train, data.labels, epochs=epochs, rate=0.01, adam=False))


def train_autoencoders(data: Data, seed: int, epochs: int, start: Start = "keras") -> Arrays:
    """Adam at rate 0.001: one for the rows of each class, one for all."""
    torch.manual_seed(seed)
    kept: Arrays = {}
    groups = {"0.": data.train[data.labels == 0], "1.": data.train[data.labels == 1], "all.": data.train}
    for name, rows in groups.items():
        net = dense.autoencoder(start)
        kept |= dense.weights(dense.train(net, rows, rows, epochs=epochs, rate=0.001, adam=True), name)
    return kept


def networks(store: Store, data: Data, seed: int, epochs: int, start: Start = "keras") -> Networks:
    """Trained now or read."""
    settings, place = {"epochs": epochs}, f"seed{seed}" if start == "keras" else f"{start}-seed{seed}"
    kept = store.get(f"{place}/classifier", settings, lambda: train_classifier(data, seed, epochs, start))
    codes = store.get(f"{place}/autoencoders", settings, lambda: train_autoencoders(data, seed, epochs, start))
    one, two, every = (dense.loaded(dense.autoencoder(), codes, prefix) for prefix in ("0.", "1.", "all."))
    logits = dense.loaded(dense.classifier(), kept)
    return Networks(torch.nn.Sequential(logits, torch.nn.Softmax(dim=1)).eval(), {0: one, 1: two}, every)


def accuracy(nets: Networks, data: Data) -> float:
    """Of the classifier, on the rows that are explained."""
    with torch.no_grad():
        return float((nets.classifier(torch.from_numpy(data.x)).argmax(dim=1).numpy() == data.y).mean())
