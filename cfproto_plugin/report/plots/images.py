"""Rows that are images: original, counterfactual, difference, and what the autoencoder makes of the counterfactual."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from cfproto_plugin.checks import is_count, shown
from cfproto_plugin.errors import InputError
from cfproto_plugin.report.pictures import image_of
from cfproto_plugin.report.plots import canvas as c
from cfproto_plugin.report.words import counted, percent

if TYPE_CHECKING:
    from cfproto_plugin.explanation import Explanation
    from cfproto_plugin.protocols import Array
    from cfproto_plugin.report.source import Source

_LINES = 8
_SIZE, _FRAME = 2.1, 1.9  # inches of an image with its title, and of what is above and below


def plot_images(explanation: Explanation, source: Source | None, shape: Any = None, figure: Any = None) -> Any:
    """A row of images for each of the first lines. shape: of an image, where rows are vectors."""
    lines = explanation[:_LINES]
    before, after = (_images(x, shape) for x in (lines.original, lines.counterfactual))
    copies = None if source is None else _copies(lines, source, shape)
    columns = 3 if copies is None else 4
    figure = c.canvas(figure, max(_SIZE * columns + 0.9, 7.5), _FRAME + (_SIZE + 0.1) * len(lines))
    grid = figure.subplots(len(lines), columns, squeeze=False)
    low, high = _limits([*before, *after])
    reach = max(
        float(np.nanmax(np.abs(b - a))) if there else 0.0
        for a, b, there in zip(before, after, lines.found, strict=True)
    )
    drawn = None
    for at, (line, axes) in enumerate(zip(lines, grid, strict=True)):
        for each in axes:
            each.axis("off")
        said = c.shortened(line.class_name(line.original_class[0]), 14)
        _show(axes[0], before[at], f"row {line.row[0]}: “{said}”", low, high)
        if not line.found[0]:
            axes[1].text(0.5, 0.5, "no counterfactual", ha="center", va="center", transform=axes[1].transAxes)
            continue
        proba = percent(float(line.new_class_proba[1][0]))
        label = c.shortened(line.class_name(line.counterfactual_class[0]), 14)
        _show(axes[1], after[at], f"counterfactual: “{label}” {proba}", low, high)
        delta = (after[at] - before[at]).mean(axis=-1)
        drawn = axes[2].imshow(delta, cmap="cividis", vmin=-(reach or 1), vmax=reach or 1)
        axes[2].set_title(f"difference: {counted(int(line.n_changes[0]), 'value')}", fontsize=c.SMALL)
        if copies is not None:
            _show(axes[3], copies[at], "reconstruction", low, high)
    if drawn is not None:
        bar = figure.colorbar(drawn, ax=grid[:, 2].tolist(), location="bottom", shrink=0.9, ticks=[-reach, 0, reach])
        bar.ax.set_xticklabels(
            [f"darker\n{c.signed(-reach, '.2g')}", "same", f"lighter\n{c.signed(reach, '.2g')}"], fontsize=c.SMALL
        )
    c.entitle(figure, _title(lines), _caption(len(explanation) - len(lines), copies=copies is not None))
    return c.finish(figure)


def _show(axes: Any, image: Array, title: str, low: float, high: float) -> None:
    scaled = np.nan_to_num(np.clip((image - low) / (high - low or 1), 0, 1))
    axes.imshow(scaled[..., 0] if scaled.shape[-1] == 1 else scaled, cmap="gray", vmin=0, vmax=1)
    axes.set_title(title, fontsize=c.SMALL)


def _copies(lines: Explanation, source: Source, shape: Any) -> list[Array] | None:
    """What the autoencoder makes of the counterfactuals; None without one."""
    found = np.flatnonzero(lines.found)
    made = source.reconstructed(lines[found].counterfactual) if len(found) else None
    if made is None:
        return None
    every = np.full((len(lines), *made.shape[1:]), np.nan)
    every[found] = made
    return _images(every, shape)


def _images(x: Any, shape: Any) -> list[Array]:
    """(h, w, 1 or 3) each."""
    array = np.asarray(x)
    if shape is not None:
        sizes = shape.tolist() if isinstance(shape, np.ndarray) else shape
        if (
            not isinstance(sizes, (tuple, list))
            or not all(map(is_count, sizes))
            or math.prod(map(int, sizes)) != math.prod(array.shape[1:])
        ):
            raise InputError(
                f"shape is {shown(shape)}; expected that of an image of {int(np.prod(array.shape[1:]))} values, such "
                "as (8, 8)"
            )
        if array.dtype.kind not in "iufb":
            raise InputError("shape= is for rows of pixels, all numbers, and these hold other values: leave it out")
        array = array.reshape(len(array), *sizes)
    images = [image_of(array[at : at + 1]) for at in range(len(array))]
    found = [image for image in images if image is not None]
    if len(found) < len(images) or array.dtype.kind not in "iufb":
        raise InputError(
            f"kind='images' is for rows of shape (height, width) with 1 or 3 channels; these have shape "
            f"{array.shape[1:]}: pass shape=(height, width) for vectors of pixels, or another kind"
        )
    return found


def _limits(images: list[Array]) -> tuple[float, float]:
    values = np.concatenate([image.ravel() for image in images])
    values = values[np.isfinite(values)]
    return (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)


def _title(lines: Explanation) -> str:
    if len(lines) > 1:
        return "Images as they are, and changed ones that the model takes for another class"
    if not lines.found[0]:
        said = lines.class_name(lines.original_class[0])
        return f"Row {lines.row[0]}: no counterfactual was found; the model says “{said}”"
    old, new = (
        c.shortened(lines.class_name(label[0]), 20) for label in (lines.original_class, lines.counterfactual_class)
    )
    return f"Row {lines.row[0]}: the model says “{old}”; with these changes it would say “{new}”"


def _caption(hidden: int, *, copies: bool) -> str:
    made = (
        " Reconstruction: what the autoencoder, trained on real images, makes of the counterfactual." if copies else ""
    )
    more = f" {counted(hidden, 'line')} not shown." if hidden else ""
    return f"Difference: counterfactual minus original, light where it has more and dark where it has less.{made}{more}"
