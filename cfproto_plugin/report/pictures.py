"""Rows that are images, as inline PNG."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from cfproto_plugin.protocols import Array
    from cfproto_plugin.report.records import Record

DIFFERENCE = "difference: blue is more, orange is less"


def figures(line: Record) -> list[tuple[str, str]]:
    """Caption and data URL of the original, the counterfactual and the difference of an image; none for other rows."""
    before, after = image_of(line.original), image_of(line.counterfactual)
    if before is None or after is None:
        return []
    values = np.array([before, after])
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    shown = [("original", _scaled(before, low, high))]
    if line.found[0]:
        shown += [("counterfactual", _scaled(after, low, high)), (DIFFERENCE, _blue_orange(after - before))]
    return [(caption, _png(image)) for caption, image in shown]


def image_of(x: Any) -> Array | None:
    """(h, w, 1 or 3) floats for a batch of one image, channels first or last; None for anything else."""
    image = x[0] if isinstance(x, np.ndarray) and x.ndim > 2 else np.empty(0)  # noqa: PLR2004 rows of a table
    if image.ndim == 2:  # noqa: PLR2004 height and width
        image = image[..., None]
    if image.ndim == 3 and image.shape[-1] not in {1, 3} and image.shape[0] in {1, 3}:  # noqa: PLR2004 channels first
        image = np.moveaxis(image, 0, -1)
    return image.astype(float) if image.ndim == 3 and image.shape[-1] in {1, 3} else None  # noqa: PLR2004 channels


def _scaled(image: Array, low: float, high: float) -> Array:
    """(h, w, 1 or 3) values from low to high as values from 0 to 255; 0 where one is missing."""
    return np.nan_to_num(np.clip((image - low) / (high - low or 1), 0, 1) * 255)


def _blue_orange(delta: Array) -> Array:
    """(h, w, 3): white where nothing changed, up to the colours of the bars at the largest change."""
    part = delta.mean(axis=-1, keepdims=True) / (np.abs(delta).max() or 1)
    hue = np.where(part > 0, np.array([63, 127, 208]), np.array([221, 122, 59]))
    return np.asarray(255 + np.abs(part) * (hue - 255))


def _png(image: Array) -> str:
    """A data URL with the PNG of (h, w, 1 or 3) values from 0 to 255 inside."""
    height, width, channels = image.shape
    rows = b"".join(b"\0" + row.tobytes() for row in image.round().astype(np.uint8))
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)  # noqa: PLR2004 colour
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    packed = [struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d)) for t, d in chunks]
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(packed)).decode()
    return f"data:image/png;base64,{data}"
