"""The impact of K on loss D: `CFPROTO_DATA=... python benchmarks/paper/mnist_sweep.py`.

K, the number of nearest encodings whose mean is the prototype of a class, is 2, 5, 20 and the whole class, as in the
paper. Takes the networks and the results of K = 5 from the main experiment if they are there. Writes
benchmarks/results/paper/mnist_k.csv, docs/paper-mnist-k.md and its picture.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from dataclasses import asdict

import breast_cancer_pictures as bars
import claims
import mnist
import torch
from claims import Claim, compared
from common import Places, about, markdown, number, plus_minus, write_csv, write_page
from mnist_report import pooled
from mnist_searches import LOSSES, Setting, Size
from store import Store

from cfproto_plugin.metrics import MetricTable

COMMAND = "python benchmarks/paper/mnist_sweep.py"
VALUES = (2, 5, 20, None)
SETTINGS = tuple(Setting("D" if k == 5 else f"D, K {k or 'all'}", "D", k=k) for k in VALUES)
NAMES = tuple(setting.name for setting in SETTINGS)
TICKS = tuple(str(k or "all") for k in VALUES)
TEXT = """# MNIST: the impact of K

Loss D with prototypes that are the mean of the K encodings of a class nearest to the image, {images} images; the rest
is as in [the main experiment](paper-mnist.md), the time of a step included. The paper shows this as a figure without
numbers: interpretability "initially improves with increasing K" and "worsens" if all instances of a class are
included."""
READING = """The claims of the paper's figure, judged by the same rule. A larger K takes the prototype away from the
image, towards the middle of its class."""


def all_claims(table: MetricTable) -> list[Claim]:
    """The directions of the paper's figure."""
    pairs = (("20", "2", -1), ("all", "20", 1))
    return [
        compared(
            f"{word} with K = {one} against {other}",
            table.select(f"D, K {one}", metric),
            table.select(f"D, K {other}", metric),
            direction=direction,
        )
        for one, other, direction in pairs
        for metric, word in (("im1", "IM1"), ("im2", "IM2"))
    ]


def main(places: Places, size: Size) -> None:
    """Search what is not there yet, then write the results and the page."""
    torch.set_num_threads(1)
    of = mnist.Experiment(size, Store(places.cache))
    found = of.find(SETTINGS)
    table = pooled({name: [of.values(part, LOSSES[3])] for name, part in found.items()})
    write_csv(places.results / "mnist_k.csv", [asdict(record) for record in table.records])
    bars.measures(table, NAMES, TICKS, places.picture("paper-mnist-k.png"), {})
    metrics = (("seconds", 1), ("n_steps", 1), ("im1", 1), ("im2", 10), ("elastic_net", 1), ("neighbour_distance", 1))
    body = [
        [tick, number(100 * table.select(name, "validity").mean) + " %"]
        + [plus_minus(table.select(name, metric), factor) for metric, factor in metrics]
        for tick, name in zip(TICKS, NAMES, strict=True)
    ]
    judged = all_claims(table)
    head = ["K", "found", "time, s", "gradient steps", "IM1", "IM2 (x10)", "EN", "distance to 5 nearest"]
    parts = [TEXT.format(images=table.select("D", "validity").n), markdown(head, body)]
    parts += ["![Time, steps, IM1, IM2 and EN of loss D for K from 2 to all](pictures/paper-mnist-k.png)"]
    parts += [READING, claims.table(judged), about(COMMAND + size.flags, of.store.seconds)]
    write_page(places.docs / "paper-mnist-k.md", parts)


if __name__ == "__main__":
    given = mnist.arguments(__doc__ or "").parse_args()
    main(Places(cache=given.cache), Size(chunks=given.chunks))
