"""The impact of K on losses C, D and E: `CFPROTO_DATA=... python benchmarks/paper/mnist_sweep.py`.

K, the number of nearest encodings whose mean is the prototype of a class, is 2, 5, 20 and the whole class, as in the
paper, which shows loss D; what it says about sparsity and about L_AE at large K needs C and E. Takes the networks and
the results of K = 5 from the main experiment if they are there. What stands in the committed mnist_k_rows.csv is not
searched again, unless `--fresh` says so. Writes benchmarks/results/paper/mnist_k*.csv, docs/paper-mnist-k.md and its
pictures.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from dataclasses import asdict, replace
from functools import partial

import breast_cancer_pictures as bars
import claims
import mnist
import mnist_rows
import numpy as np
import torch
from claims import Claim, compared
from common import Places, about, markdown, number, plus_minus, write_csv, write_page
from mnist_networks import DIGITS, apply
from mnist_searches import LOSSES, Setting, Size, rows_of_chunk
from mnist_tables import claim_of, pooled
from store import Arrays, Store

from cfproto_plugin import SearchConfig
from cfproto_plugin.metrics import MetricTable
from cfproto_plugin.search.objective.fista import soft_threshold

COMMAND = "python benchmarks/paper/mnist_sweep.py"
VALUES = (2, 5, 20, None)
SWEPT = ("D", "C", "E")
TICKS = tuple(str(k or "all") for k in VALUES)
SETTINGS = {
    loss: tuple(Setting(loss if k == 5 else f"{loss}, K {k or 'all'}", loss, k=k) for k in VALUES) for loss in SWEPT
}
TEXT = """# MNIST: the impact of K

Losses C, D and E with prototypes that are the mean of the K encodings of a class nearest to the image, {images} images;
the rest is as in [the main experiment](paper-mnist.md), the time of a step included. The paper shows loss D as a figure
without numbers: interpretability "initially improves with increasing K" and "worsens" if all instances of a class are
included. In words it adds that at large K L_AE "improves IM2", and that the prototype's gain in sparsity over L_AE
"diminishes"."""
READING = """The claims of the paper's figure and words. A larger K takes the prototype away from the image, towards the
middle of its class."""
STARTS = """At the beginning of a search: how far the nearest prototype of another class lies from the code of the
image, and how far the first iterate of loss E lies from the image, means of the same images."""
ABOUT = " The time is that of all parts of this run, networks included; what was on record was not searched again."
BEGUN = {"distance": "distance to the prototype", "first_step": "size of the first step"}
METRICS = (("seconds", 1), ("n_steps", 1), ("im1", 1), ("im2", 10), ("im2_ink", 10), ("elastic_net", 1))
HEAD = ["loss", "K", "found", "time, s", "gradient steps", "IM1", "IM2 (x10), x in [-0.5, 0.5]", "x in [0, 1]", "EN"]


def all_claims(lines: dict[str, list[Arrays]]) -> list[Claim]:
    """The directions of the paper's figure and of its words about large K."""
    im2 = (("im2", "IM2 (norm of x in [-0.5, 0.5])"), ("im2_ink", "IM2 (norm of x in [0, 1])"))
    wanted = [
        (f"{word} of D with K = {one} against {other}", metric, f"D, K {one}", f"D, K {other}", direction)
        for one, other, direction in (("20", "2", -1), ("all", "20", 1))
        for metric, word in (("im1", "IM1"), *im2)
    ]
    wanted += [
        (f"{word} of D against C, all K: L_AE improves it", metric, "D, K all", "C, K all", -1) for metric, word in im2
    ]
    wanted += [
        (f"EN of {loss} with K = all against 5: less sparse", "elastic_net", f"{loss}, K all", loss, 1) for loss in "CE"
    ]
    return [
        claim_of(lines, name, metric, ours, base, direction=direction) for name, metric, ours, base, direction in wanted
    ]


def main(places: Places, size: Size, *, fresh: bool = False) -> None:
    """Search what is not there yet, then write the results and the page."""
    torch.set_num_threads(1)
    rows, starts = places.results / "mnist_k_rows.csv", places.results / "mnist_k_starts.csv"
    goes_on = size.is_full and not fresh
    recorded = mnist_rows.Recorded.read(rows) if goes_on else mnist_rows.Recorded()
    size = replace(size, chunks=mnist.chunks_of(size, recorded, size.seed, "D"))
    of = mnist.Experiment(size, Store(places.cache))
    timed = {setting.loss: setting for setting in LOSSES}
    lines: dict[str, list[Arrays]] = {}
    for loss, settings in SETTINGS.items():
        lines |= {name: [of.timed(part, timed[loss])] for name, part in of.lines(settings, recorded).items()}
    lines = mnist_rows.as_written(lines)
    begun = mnist_rows.as_written(all_starts(of, mnist_rows.Recorded.read(starts) if goes_on else recorded))
    table = pooled(lines)
    write_csv(places.results / "mnist_k.csv", [asdict(record) for record in table.records])
    mnist_rows.write(rows, lines)
    mnist_rows.write(starts, begun)
    parts = [TEXT.format(images=table.select("D", "validity").n), markdown(HEAD, body(table))]
    for loss in SWEPT:
        names = [setting.name for setting in SETTINGS[loss]]
        picture = f"paper-mnist-k{'' if loss == 'D' else '-' + loss.lower()}.png"
        bars.measures(table, names, TICKS, places.picture(picture), {}, f"MNIST, loss {loss} by K")
        parts.append(f"![Time, steps, IM1, IM2 and EN of loss {loss} for K from 2 to all](pictures/{picture})")
    parts += [STARTS, begun_table(begun)]
    judged = all_claims(lines) + start_claims(begun)
    parts += [READING, claims.RULE, claims.table(judged), about(COMMAND + size.flags, of.store.seconds) + ABOUT]
    write_page(places.docs / "paper-mnist-k.md", parts, kept=not of.store.seconds)


def all_starts(of: mnist.Experiment, recorded: mnist_rows.Recorded) -> dict[str, list[Arrays]]:
    """By K: the distance of an image's code to the nearest prototype of another class, and the first step of loss E."""
    index = np.concatenate([rows_of_chunk(of.test[1], chunk, of.size) for chunk in range(of.size.chunks)])
    found = {}
    for k, tick in zip(VALUES, TICKS, strict=True):
        known = recorded.taken(f"K {tick}", of.size.seed, index)
        about_it = {"images": index.tolist(), "epochs": of.size.epochs}
        place = f"mnist/seed{of.size.seed}/starts/{tick}"
        found[f"K {tick}"] = [known or of.store.get(place, about_it, partial(start, of, index, k))]
    return found


def start(of: mnist.Experiment, index: np.ndarray, k: int | None) -> Arrays:
    """Of one K. The first iterate is that of the paper's iteration: a step of 0.01 that shrinks by beta."""
    x, nets = of.test[0][index], of.networks
    own = apply(nets.classifier, x).argmax(axis=1)
    points, _ = of.searches.prototypes.with_k(k).nearest(x, np.arange(len(DIGITS)) != own[:, None])
    y, goal = torch.from_numpy(x).requires_grad_(), torch.from_numpy(points[:, 0]).float()
    gap = (nets.encoder(y) - goal).square().flatten(1).sum(dim=1)
    config = SearchConfig.paper("E")
    (gradient,) = torch.autograd.grad(config.theta * gap.sum(), y)
    moved = np.clip(soft_threshold(x - config.learning_rate * gradient.numpy(), x, config.beta), -0.5, 0.5)
    step = np.linalg.norm((moved - x).reshape(len(x), -1), axis=1)
    about_it = {"image": index, "seed": np.full(len(index), of.size.seed)}
    return {**about_it, "distance": gap.sqrt().detach().numpy(), "first_step": step}


def begun_table(begun: dict[str, list[Arrays]]) -> str:
    """A line per K."""
    means = [[f"{part[name].mean():.3g}" for name in BEGUN] for (part,) in begun.values()]
    return markdown(["K", *BEGUN.values()], [[tick, *line] for tick, line in zip(TICKS, means, strict=True)])


def start_claims(begun: dict[str, list[Arrays]]) -> list[Claim]:
    """What the paper says about large K and the beginning of a search."""
    (most,), (usual,) = begun["K all"], begun["K 5"]
    return [
        compared(f"{words}, K = all against 5", most[name], usual[name], most["image"], direction=1)
        for name, words in BEGUN.items()
    ]


def body(table: MetricTable) -> list[list[str]]:
    """A line per loss and K."""
    return [
        [loss, tick, number(100 * table.select(setting.name, "validity").mean) + " %"]
        + [plus_minus(table.select(setting.name, metric), factor) for metric, factor in METRICS]
        for loss in SWEPT
        for tick, setting in zip(TICKS, SETTINGS[loss], strict=True)
    ]


if __name__ == "__main__":
    parser = mnist.arguments(__doc__ or "")
    parser.add_argument("--fresh", action="store_true", help="do not go on from the committed rows")
    given = parser.parse_args()
    main(Places(cache=given.cache), Size.of(given.per_class), fresh=given.fresh)
