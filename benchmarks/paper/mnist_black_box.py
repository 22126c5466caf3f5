"""100 steps of A', E and F for a black box: `CFPROTO_DATA=... python benchmarks/paper/mnist_black_box.py`.

The classifier is only a function from images to probabilities. A' is loss A with gradients by central differences, 2
· 784 predictions a step; E and F do without L_pred and ask the classifier only whether the class has changed. One
test image of each class, one at a time, as in the paper. What stands in the committed mnist_black_box_rows.csv is not
timed again, unless `--fresh` says so. Writes benchmarks/results/paper/mnist_black_box*.csv and
docs/paper-mnist-black-box.md.
"""

from __future__ import annotations

import csv
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import claims
import mnist
import numpy as np
import torch
from claims import compared
from common import Places, about, markdown, number, plus_minus, write_csv, write_page
from mnist_networks import DIGITS, apply
from mnist_searches import PIXELS, SAMPLE, Size, rows_of_chunk
from store import Arrays, Store
from tqdm import tqdm

from cfproto_plugin import CounterfactualExplainer, Features, SearchConfig
from cfproto_plugin.metrics import MetricTable, summarise

COMMAND = "python benchmarks/paper/mnist_black_box.py"
STEPS = 100
C = 1e5  # large enough that no image rests at its start, where the engine would stop early
PAPER = {"A'": 54.64, "E": 0.53, "F": 0.72}
METRICS = ("seconds", "predicted")
TEXT = """# MNIST: a black box

Time of {steps} steps of the search, one image at a time ({images} images of different classes), if the classifier is
a function from images to probabilities and no more. A' needs its gradient: 2 · 784 + 1 predictions a step, which the
engine asks for in one batch. E and F need none; the iterates are predicted together at the end, and only those nearer
than the best so far. Of the first images of a class it is the one about which the classifier is least sure: where its
float32 probability is exactly 1, all differences are 0 and A' does not leave the image. Processor time of one core."""


def explainer(of: mnist.Experiment, loss: str, steps: int) -> CounterfactualExplainer:
    """The classifier as a function; encoder and autoencoder are our own and keep their gradients."""
    a = loss == "A"
    config = SearchConfig.paper(loss, max_iterations=steps, c_steps=1, k=None, **({"c_init": C} if a else {}))
    nets = of.networks
    return CounterfactualExplainer(
        lambda x: apply(nets.classifier, np.asarray(x, dtype=np.float32)),
        encoder=None if a else nets.encoder,
        autoencoder=nets.autoencoder if loss == "F" else None,
        prototypes="kdtree" if a else of.searches.prototypes,
        features=Features(ranges=dict.fromkeys(range(PIXELS), (-0.5, 0.5))),
        search=config,
    ).fit(of.train[0][:SAMPLE])


def doubtful(of: mnist.Experiment) -> np.ndarray:
    """Of the first images of each class the one about which the classifier is least sure.

    Where it is certain, differences of its float32 probabilities are zero: A' would rest and its steps cost nothing.
    """
    rows = rows_of_chunk(of.test[1], 0, of.size)
    sure = apply(of.networks.classifier, of.test[0][rows]).max(axis=1).reshape(len(DIGITS), -1)
    return np.asarray(rows.reshape(sure.shape)[np.arange(len(DIGITS)), sure.argmin(axis=1)])


def timed(of: mnist.Experiment, name: str, index: Any, steps: int) -> Arrays:
    """Seconds and predictions of one image, after two steps that nobody counts."""
    explainer(of, name[0], 2).explain(of.test[0][index], progress=False)
    made = explainer(of, name[0], steps)
    start = time.process_time()
    e = made.explain(of.test[0][index], progress=False)
    return {"seconds": time.process_time() - start, "predicted": e.meta["n_predicted_rows"]}


def main(places: Places, size: Size, steps: int = STEPS, images: int = len(DIGITS), *, fresh: bool = False) -> None:
    """Time what is not there yet, then write the results and the page."""
    torch.set_num_threads(1)
    of = mnist.Experiment(size, Store(places.cache))
    file = places.results / "mnist_black_box_rows.csv"
    lines = [] if fresh or not size.is_full or steps != STEPS else read(file)
    if len(lines) < len(PAPER) * images:
        write_csv(file, all_timed(of, steps, images))
        lines = read(file)
    values = {
        name: {metric: np.array([line[metric] for line in lines if line["name"] == name]) for metric in METRICS}
        for name in PAPER
    }
    records = [record for name, numbers in values.items() for record in summarise(numbers, name=name)]
    table = MetricTable(tuple(records), 0.95)
    write_csv(places.results / "mnist_black_box.csv", [asdict(record) for record in records])
    times = {name: numbers["seconds"] for name, numbers in values.items()}
    parts = page(table, times, steps, of.store.seconds, size)
    write_page(places.docs / "paper-mnist-black-box.md", parts, kept=not of.store.seconds)


def read(file: Path) -> list[dict[str, Any]]:
    """What an earlier run wrote; nothing if there is no such file."""
    if not file.exists():
        return []
    with file.open() as opened:
        return [{**line, **{metric: float(line[metric]) for metric in METRICS}} for line in csv.DictReader(opened)]


def all_timed(of: mnist.Experiment, steps: int, images: int) -> list[dict[str, Any]]:
    """Every loss on every image."""
    lines = []
    for name in PAPER:
        for digit, index in enumerate(tqdm(doubtful(of)[:images], desc=name, disable=None)):
            place = f"mnist/seed{of.size.seed}/black-box/{name[0]}-{digit}"
            settings = {"index": int(index), "steps": steps, "epochs": of.size.epochs}
            kept = of.store.get(place, settings, lambda n=name, i=index: timed(of, n, i, steps))
            lines.append({"name": name, "image": int(index), **{metric: float(kept[metric]) for metric in METRICS}})
    return lines


def page(table: MetricTable, times: Arrays, steps: int, seconds: float, size: Size) -> list[str]:
    """The parts of the page."""
    base = table.select("A'", "seconds")
    body, judged = [], []
    for name, paper in PAPER.items():
        record, asked = table.select(name, "seconds"), table.select(name, "predicted")
        faster = [number(base.mean / record.mean), number(PAPER["A'"] / paper)]
        body.append([name, plus_minus(record), number(paper), *faster, number(asked.mean)])
        if name != "A'":
            rows, change = np.arange(base.n), paper / PAPER["A'"] - 1
            judged.append(compared(f"time of {name} against A'", times[name], times["A'"], rows, paper=change))
    head = ["loss", "time, s", "paper", "times faster than A'", "paper", "images predicted"]
    opening = TEXT.format(steps=steps, images=base.n)
    return [
        opening,
        markdown(head, body),
        claims.RULE,
        claims.table(judged),
        about(f"{COMMAND}{size.flags} --images {base.n}", seconds),
    ]


if __name__ == "__main__":
    parser = mnist.arguments(__doc__ or "")
    parser.add_argument("--images", type=int, default=len(DIGITS), help="images of as many classes")
    parser.add_argument("--fresh", action="store_true", help="do not go on from the committed rows")
    given = parser.parse_args()
    main(Places(cache=given.cache), Size.of(given.per_class), images=given.images, fresh=given.fresh)
