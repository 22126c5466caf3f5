"""The pictures of the MNIST experiment, in the paper's form."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from mnist_networks import apply
from mnist_searches import DEFAULTS, LOSSES, Found, Setting

from cfproto_plugin.metrics import im1, im2

if TYPE_CHECKING:
    from mnist import Experiment

WITH_COPIES = (2, 5, 7)  # originals that are shown with reconstructions


def grid(
    of: Experiment,
    file: Path,
    settings: tuple[Setting, ...] = (*LOSSES, *DEFAULTS),
    copies: Sequence[int] = WITH_COPIES,
) -> None:
    """A column for the original and every setting; below the digits `copies` what AE makes of them."""
    found = of.find(settings, chunks=(0,))
    x, y = of.test
    rows: list[list[tuple[np.ndarray | None, str]]] = []
    first = next(iter(found.values()))
    for digit in range(10):
        at = int(np.flatnonzero(y[first.index] == digit)[0])
        new = [_shown(part, at) for part in found.values()]
        rows.append([(x[first.index[at]], str(first.original_class[at])), *new])
        if digit in copies:
            again = [None if image is None else apply(of.networks.autoencoder, image[None])[0] for image, _ in new]
            rows.append([(None, ""), *((copy, "AE") for copy in again)])
    _images(rows, ["original", *(name.replace(", ", ",\n") for name in found)], file)


def reconstructions(of: Experiment, file: Path) -> None:
    """The original, a counterfactual x of A and of C, and AE_new(x), AE_old(x), AE(x): what IM1 and IM2 see."""
    found = of.find((LOSSES[0], LOSSES[2]), chunks=(0,))
    both = np.flatnonzero(np.logical_and.reduce([part.valid for part in found.values()]))
    nets, rows = of.networks, []
    for loss, part in found.items():
        for at in both[:: max(1, len(both) // 2)][:2]:
            old, new = nets.of_class[part.original_class[at]], nets.of_class[part.counterfactual_class[at]]
            image = part.x[at][None]
            ratio, gap = im1(image, new, old)[0], 10 * im2(image, new, nets.autoencoder)[0]
            copies = [(apply(ae, image)[0], "") for ae in (new, old, nets.autoencoder)]
            label = f"{loss}: {part.counterfactual_class[at]}, IM1 {ratio:.2f}, IM2 {gap:.2f}"
            rows.append([(of.test[0][part.index[at]], str(part.original_class[at])), (image[0], label), *copies])
    _images(rows, ["original", "counterfactual", "AE_new", "AE_old", "AE"], file)


def failure_and_success(of: Experiment, file: Path) -> None:
    """The paper's figure 2: of one image a counterfactual of B that reads as its old class, and one of D that does not.

    Chosen among the images of the first chunk that both losses found and whose counterfactual of B is better
    reconstructed by the autoencoder of the old class (IM1 above 1): the one with the largest fall of IM1 from B to D.
    """
    found = of.find((LOSSES[1], LOSSES[3]), chunks=(0,))
    parts = {name: (part, _ratios(of, part)) for name, part in found.items()}
    fall = parts["B"][1] - parts["D"][1]
    rank = np.where(np.isnan(fall), -np.inf, np.where(parts["B"][1] > 1, fall, fall - 1e3))
    at = int(rank.argmax())
    rows = []
    for name, (part, ratios) in parts.items():
        original = (of.test[0][part.index[at]], str(part.original_class[at]))
        if not part.valid[at]:
            rows.append([original, *[(None, "none")] * 4])
            continue
        old, new = part.original_class[at], part.counterfactual_class[at]
        image = part.x[at][None]
        gap = im2(image, of.networks.of_class[new], of.networks.autoencoder)[0]
        copies = [
            (apply(model, image)[0], label)
            for model, label in (
                (of.networks.of_class[new], f"AE_{new}"),
                (of.networks.of_class[old], f"AE_{old}"),
                (of.networks.autoencoder, "AE"),
            )
        ]
        label = f"{name}: {new}\nIM1 {ratios[at]:.2f}, IM2 x10 {10 * gap:.2f}"
        rows.append([original, (image[0], label), *copies])
    _images(rows, ["original", "counterfactual", "AE_new", "AE_old", "AE"], file)


def _ratios(of: Experiment, part: Found) -> np.ndarray:
    """IM1 (n,) of every image; NaN where there is no counterfactual."""
    out, nets = np.full(len(part.index), np.nan), of.networks.of_class
    for at in np.flatnonzero(part.valid):
        out[at] = im1(part.x[at][None], nets[part.counterfactual_class[at]], nets[part.original_class[at]])[0]
    return out


def _shown(part: Found, at: int) -> tuple[np.ndarray | None, str]:
    return (part.x[at], str(part.counterfactual_class[at])) if part.valid[at] else (None, "none")


def _images(rows: Sequence[Sequence[tuple[Any, str]]], heads: Sequence[str], file: Path) -> None:
    figure, axes = plt.subplots(
        len(rows), len(heads), figsize=(1.15 * len(heads), 1.28 * len(rows)), layout="constrained", squeeze=False
    )
    for i, row in enumerate(rows):
        for j, (image, label) in enumerate(row):
            place = axes[i, j]
            place.set_xticks([])
            place.set_yticks([])
            place.spines[:].set_visible(image is not None)
            if image is not None:
                place.imshow(np.squeeze(image), cmap="gray", vmin=-0.5, vmax=0.5)
            place.set_xlabel(label, fontsize=7, labelpad=1)
            if i == 0:
                place.set_title(heads[j], fontsize=9)
    figure.savefig(file, dpi=110)
    plt.close(figure)
