"""The default with an encoder beside losses A and E: `CFPROTO_DATA=... python benchmarks/paper/mnist_encoder.py`.

Networks and images of seed 2, with which no constant of the product was chosen; classifiers of seed 1 judge whether the
counterfactuals read as their class. 100 images, resumable; `--others` adds loss A and other settings. Writes
benchmarks/results/paper/mnist_encoder.json, docs/paper-mnist-encoder.md and its picture.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict

os.environ.setdefault("OMP_NUM_THREADS", "1")

import mnist_pictures as pictures
import numpy as np
import torch
from common import Places, about, markdown, number, write_page
from mnist import Experiment, arguments, quality
from mnist_networks import apply, judges
from mnist_searches import Found, Setting, Size, rows_of_chunk
from paired import Difference, mean, paired, plain
from store import Arrays, Store

SEED, JUDGES = 2, 1
ALONE = 10  # images that are timed alone
E = Setting("E", "E")
OURS = Setting("default, encoder", "encoder", kind="default")
FEWER = Setting("k 5", "encoder", kind="default", changes=(("k", 5),))
SURER = Setting("min_proba 0.9", "encoder", kind="default", changes=(("min_proba", 0.9),))
A = Setting("A", "A")
OTHERS = (A, FEWER, SURER)
MEASURES = {
    "im1": "IM1",
    "im2": "IM2 (x10)",
    "elastic_net": "EN",
    "l0": "changed pixels",
    "judged": "both judges agree",
}

TEXT = """# MNIST with an encoder: the default beside losses A and E

Networks and images of a seed with which nothing was chosen: {images} test images, as many of each class. *Both judges
agree* is the share of counterfactuals that two other classifiers give the same new class: one of the paper's
architecture and one of another, both of another seed (accuracy {accuracy}). EN is with beta 0.1 for all. Means of the
images that a setting found."""

PAIRED = """Default minus the other, on the images that both found, with 95 % bounds by Student's t. Seconds are of the
processor, for one image alone and a whole search: E runs its 1,000 iterations as `SearchConfig.paper("E")` does."""

ABOUT_OTHERS = """The first {images} images. A surer class reads as such more often, at a larger distance; `min_proba`
is a rule, so images that do not reach it on a path come from the paths to training images. With `k=5`, the paper's K,
the prototype is the mean of fewer encodings."""


def values(of: Experiment, found: Found, judging: list[torch.nn.Module]) -> Arrays:
    """One number per image and measure; NaN where there is no counterfactual."""
    good = found.valid
    part = found.taken(good)
    measured = quality(part, of)
    agree = [apply(judge, part.x).argmax(axis=1) == part.counterfactual_class for judge in judging]
    measured["judged"] = np.logical_and.reduce(agree).astype(float)
    measured["im2"] = 10 * measured["im2"]
    out: Arrays = {"image": found.index, "found": good.astype(float)}
    for name in MEASURES:
        out[name] = np.full(len(good), np.nan)
        out[name][good] = measured[name]
    return out


def alone(of: Experiment, setting: Setting) -> np.ndarray:
    """Processor seconds (n,) of single images."""
    x, y = of.test
    index = rows_of_chunk(y, 0, of.size)[:: of.size.per_class][:ALONE]

    def take() -> Arrays:
        solve = of.searches.solver(setting)
        solve(index[:1], x[index[:1]])
        return {"seconds": [solve(index[i : i + 1], x[index[i : i + 1]]).seconds[0] for i in range(len(index))]}

    name = setting.place(of.size, 0).rsplit("/", 1)[0] + "/alone"
    return np.asarray(of.store.get(name, {**setting.about(of.size), "images": index.tolist()}, take)["seconds"])


def cut(line: Arrays, images: np.ndarray) -> Arrays:
    """The images of a line that are among these."""
    at = np.isin(line["image"], images)
    return {name: part[at] for name, part in line.items()}


def compared(lines: dict[str, Arrays], ours: str, other: str) -> dict[str, Difference]:
    """Every measure of two settings on the images that both found."""
    one, two = cut(lines[ours], lines[other]["image"]), cut(lines[other], lines[ours]["image"])
    return {name: paired(one[name], two[name]) for name in MEASURES}


def table(lines: dict[str, Arrays]) -> str:
    """Means of settings."""
    body = []
    for name, line in lines.items():
        found = f"{line['found'].sum():.0f} of {len(line['found'])}"
        body.append([name, found, *(number(mean(line[measure])) for measure in MEASURES)])
    return markdown(["setting", "found", *MEASURES.values()], body)


def differences(pairs: dict[str, dict[str, Difference]]) -> str:
    """Paired differences with their bounds."""
    body = [
        [MEASURES.get(measure, measure), name, number(gap.other), number(gap.ours), gap.text, str(gap.n)]
        for name, measures in pairs.items()
        for measure, gap in measures.items()
    ]
    return markdown(["measure", "against", "other", "default", "difference (95 % bounds)", "n"], body)


def write(of: Experiment, lines: dict[str, Arrays], accuracy: list[float], places: Places) -> None:
    """The JSON file and the page."""
    pairs = {other.name: compared(lines, OURS.name, other.name) for other in (E, A) if other.name in lines}
    pairs[E.name]["seconds"] = paired(alone(of, OURS), alone(of, E))
    result = {
        "size": asdict(of.size),
        "accuracy_of_judges": accuracy,
        "differences": {name: {m: gap._asdict() for m, gap in part.items()} for name, part in pairs.items()},
        "rows": {name: plain(line) for name, line in lines.items()},
    }
    places.results.mkdir(parents=True, exist_ok=True)
    (places.results / "mnist_encoder.json").write_text(json.dumps(result, indent=1) + "\n")
    page = [
        TEXT.format(images=len(lines[E.name]["image"]), accuracy=" and ".join(f"{100 * a:.1f} %" for a in accuracy)),
        table({setting.name: lines[setting.name] for setting in (E, OURS)}),
        "## Paired differences",
        PAIRED,
        differences(pairs),
        *other_settings(lines),
        "## Pictures",
        "The first image of every class, its counterfactuals, and the class that the classifier sees.",
        "![Originals and their counterfactuals](pictures/paper-mnist-encoder.png)",
        about("python benchmarks/paper/mnist_encoder.py" + of.size.flags, of.store.seconds),
    ]
    write_page(places.docs / "paper-mnist-encoder.md", page)


def other_settings(lines: dict[str, Arrays]) -> list[str]:
    """The part of the page about settings that were run on fewer images, if they were."""
    if A.name not in lines:
        return []
    few = lines[A.name]["image"]
    return [
        "## Loss A and other settings",
        ABOUT_OTHERS.format(images=len(few)),
        table({setting.name: cut(lines[setting.name], few) for setting in (A, E, OURS, FEWER, SURER)}),
    ]


def main(places: Places, size: Size, *, others: bool = False) -> None:
    """Search what is not there yet, then write the results and the page. others: loss A and other settings, too."""
    torch.set_num_threads(1)
    of = Experiment(size, Store(places.cache))
    judging = judges(of.store, *of.train, JUDGES, size.epochs)
    x, y = of.test
    accuracy = [float((apply(judge, x).argmax(axis=1) == y).mean()) for judge in judging]
    found = of.find((E, OURS))
    if others:
        found |= of.find(OTHERS, chunks=1)
    shown = (A, E, OURS, SURER) if others else (E, OURS)
    pictures.grid(of, places.picture("paper-mnist-encoder.png"), shown, copies=())
    write(of, {name: values(of, part, judging) for name, part in found.items()}, accuracy, places)


if __name__ == "__main__":
    parser = arguments(__doc__ or "")
    parser.add_argument("--others", action="store_true", help="loss A, k 5 and min_proba 0.9 on 50 images, too")
    given = parser.parse_args()
    main(Places(cache=given.cache), Size(seed=SEED, chunks=given.chunks), others=given.others)
