"""Table 1 of the MNIST experiment and the verdicts, from one number per image and measure; no search, no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from claims import Claim, compared
from common import markdown, number, plus_minus
from mnist_rows import ABOUT, joined
from protocol import TEXT, Protocol
from store import Arrays

from cfproto_plugin.metrics import MetricTable, summarise

PAPER: dict[str, dict[str, float]] = {  # its table 1; IM2 is written times ten there, and here
    "A": {"seconds": 13.06, "n_steps": 5158, "im1": 1.56, "im2": 1.65},
    "B": {"seconds": 8.40, "n_steps": 2380, "im1": 1.36, "im2": 1.60},
    "C": {"seconds": 3.06, "n_steps": 835, "im1": 1.16, "im2": 1.09},
    "D": {"seconds": 2.31, "n_steps": 497, "im1": 1.21, "im2": 1.26},
    "E": {"seconds": 1.93, "n_steps": 777, "im1": 1.10, "im2": 1.10},
    "F": {"seconds": 4.01, "n_steps": 1116, "im1": 1.19, "im2": 1.27},
}
MEASURED = (  # a measure, its name in claims, and that of the paper's column
    ("seconds", "time", "seconds"),
    ("n_steps", "gradient steps", "n_steps"),
    ("im1", "IM1", "im1"),
    ("im2", "IM2 (norm of x in [-0.5, 0.5])", "im2"),
    ("im2_ink", "IM2 (norm of x in [0, 1])", "im2"),
)
NAMES = tuple("ABCDEF")


def pooled(lines: Mapping[str, Sequence[Arrays]]) -> MetricTable:
    """All seeds and images of a setting together, as in the paper."""
    records = []
    for name, parts in lines.items():
        whole = {metric: values for metric, values in joined(parts).items() if metric not in ABOUT}
        records += summarise(whole, name=name)
    return MetricTable(tuple(records), 0.95)


def claim_of(
    lines: Mapping[str, Sequence[Arrays]], name: str, metric: str, ours: str, base: str, **other: Any
) -> Claim:
    """One setting against another on the images that both found."""
    values = [np.concatenate([part[metric] for part in lines[setting]]) for setting in (ours, base)]
    images = np.concatenate([part["image"] for part in lines[ours]])
    return compared(name, *values, images, **other)


def all_claims(lines: Mapping[str, Sequence[Arrays]], protocol: Protocol = TEXT) -> list[Claim]:
    """What the paper says about losses A to F, beside what was found."""

    def against(claim: str, metric: str, loss: str, base: str = "A", **other: Any) -> Claim:
        return claim_of(lines, claim, metric, loss + protocol.suffix, base + protocol.suffix, **other)

    found = []
    for metric, word, of_paper in MEASURED:
        for loss in NAMES[1:]:
            paper = PAPER[loss][of_paper] / PAPER["A"][of_paper] - 1
            found.append(against(f"{word} of {loss} against A", metric, loss, paper=paper))
    found += [
        against(f"EN of {loss} against A: A is the sparsest", "elastic_net", loss, direction=1) for loss in NAMES[1:]
    ]
    for loss in NAMES[1:]:
        paper = PAPER[loss]["seconds"] / PAPER["A"]["seconds"] - 1
        found.append(against(f"waiting time of {loss} against A, images alone", "alone_seconds", loss, paper=paper))
    return found + [
        against(f"EN of {loss} against B: L_proto is sparser than L_AE", "elastic_net", loss, "B", direction=-1)
        for loss in ("C", "E")
    ]


def table_one(table: MetricTable, protocol: Protocol = TEXT, others: Sequence[str] = ()) -> str:
    """Ours beside the paper's, with both readings of the norm in IM2, and others."""
    body = []
    for loss in (*NAMES, *others):
        name = loss + protocol.suffix * (loss in NAMES)
        valid = table.select(name, "validity")
        line = [loss, f"{valid.mean * valid.n:.0f} of {valid.n}"]
        for metric, factor in (("seconds", 1), ("n_steps", 1), ("im1", 1), ("im2", 10), ("im2_ink", 10)):
            steps = metric == "n_steps" and not table.select(name, metric).mean
            line += ["-" if steps else plus_minus(table.select(name, metric), factor)]
            if metric != "im2":  # the paper's IM2 stands once, behind both readings
                line += [number(PAPER[loss][metric.removesuffix("_ink")]) if loss in PAPER else ""]
        body.append([*line, plus_minus(table.select(name, "elastic_net")), number(table.select(name, "l0").mean)])
    columns = ("time, s", "paper", "gradient steps", "paper", "IM1", "paper")
    im2 = ("IM2 (x10), norm of x in [-0.5, 0.5]", "IM2 (x10), norm of x in [0, 1]", "paper")
    return markdown(["loss", "found", *columns, *im2, "EN", "L0"], body)
