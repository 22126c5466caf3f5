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

import breast_cancer_pictures as bars
import claims
import mnist
import mnist_rows
import torch
from claims import Claim
from common import Places, about, markdown, number, plus_minus, write_csv, write_page
from mnist_searches import LOSSES, Setting, Size
from mnist_tables import claim_of, pooled
from store import Arrays, Store

from cfproto_plugin.metrics import MetricTable

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
    file = places.results / "mnist_k_rows.csv"
    recorded = mnist_rows.Recorded() if fresh or not size.is_full else mnist_rows.Recorded.read(file)
    size = replace(size, chunks=mnist.chunks_of(size, recorded, size.seed, "D"))
    of = mnist.Experiment(size, Store(places.cache))
    timed = {setting.loss: setting for setting in LOSSES}
    lines: dict[str, list[Arrays]] = {}
    for loss, settings in SETTINGS.items():
        lines |= {name: [of.timed(part, timed[loss])] for name, part in of.lines(settings, recorded).items()}
    lines = mnist_rows.as_written(lines)
    table = pooled(lines)
    write_csv(places.results / "mnist_k.csv", [asdict(record) for record in table.records])
    mnist_rows.write(file, lines)
    parts = [TEXT.format(images=table.select("D", "validity").n), markdown(HEAD, body(table))]
    for loss in SWEPT:
        names = [setting.name for setting in SETTINGS[loss]]
        file = f"paper-mnist-k{'' if loss == 'D' else '-' + loss.lower()}.png"
        bars.measures(table, names, TICKS, places.picture(file), {}, f"MNIST, loss {loss} by K")
        parts.append(f"![Time, steps, IM1, IM2 and EN of loss {loss} for K from 2 to all](pictures/{file})")
    parts += [READING, claims.RULE, claims.table(all_claims(lines)), about(COMMAND + size.flags, of.store.seconds)]
    write_page(places.docs / "paper-mnist-k.md", parts, kept=not of.store.seconds)


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
