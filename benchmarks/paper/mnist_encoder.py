"""The default with an encoder beside losses A and E: `CFPROTO_DATA=... python benchmarks/paper/mnist_encoder.py`.

Networks and images of seed 2, with which no constant of the product was chosen; classifiers of seed 1 judge whether the
counterfactuals read as their class. 300 images, some 60 minutes, resumable; `--per-class 10` are 100. The page follows
from benchmarks/results/paper/mnist_encoder.json: as long as that has as many images and the product's default settings
are the same, nothing is searched. `--fresh` searches all of it again. Writes that file, docs/paper-mnist-encoder.md and
its picture.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import mnist_pictures as pictures
import numpy as np
import torch
from common import Places, about, markdown, number, write_page
from mnist import Experiment, arguments, quality
from mnist_networks import DIGITS, apply, judges
from mnist_searches import Found, Setting, Size, rows_of_chunk
from paired import Difference, mean, paired, plain
from store import Arrays, Store

from cfproto_plugin import SearchConfig
from cfproto_plugin.search.floors import sure_probabilities
from cfproto_plugin.search.plan import CODES_CONFIDENCE, Floor

SEED, JUDGES = 2, 1
PER_CLASS = 30  # of the committed page
ALONE = 10  # images that are timed alone
PICTURE = "paper-mnist-encoder.png"
E = Setting("E", "E")
OURS = Setting("default, encoder", "encoder", kind="default")
NEAREST = Setting("min_confidence 0", "encoder", kind="default", changes=(("min_confidence", 0.0),))
A = Setting("A", "A")
SETTINGS = (A, E, NEAREST, OURS)
MEASURES = {
    "im1": "IM1",
    "im2": "IM2 (x10)",
    "elastic_net": "EN",
    "l0": "changed pixels",
    "proba": "probability",
    "judged": "both judges agree",
}

TEXT = """# MNIST with an encoder: the default beside losses A and E

Networks and images of a seed with which nothing was chosen: {images} test images, as many of each class. *Both judges
agree* is the share of counterfactuals that two other classifiers give the same new class: one of the paper's
architecture and one of another, both of another seed (accuracy {accuracy}). EN is with beta 0.1 for all. Means of the
images that a setting found.

The default wishes for a class of which the classifier is as sure as of 95 % of its training images: of the digits here
that is a probability of {least}. {missed} of {images} images do not reach it and have the surest answer of their paths.
Answers are then brought nearer to their image as far as two small networks agree, which learnt the classifier's labels
at `fit` (`opinions=2`). `min_confidence=0` is the search without that wish and these: the nearest image of another
class on a path."""

PAIRED = """Default minus the other, on the images that both found, with 95 % bounds by Student's t. Seconds are of the
processor, for one image alone and a whole search: E runs its 1,000 iterations as `SearchConfig.paper("E")` does."""


def values(of: Experiment, found: Found, judging: list[torch.nn.Module]) -> Arrays:
    """One number per image and measure; NaN where there is no counterfactual."""
    good = found.valid
    part = found.taken(good)
    measured = quality(part, of)
    agree = [apply(judge, part.x).argmax(axis=1) == part.counterfactual_class for judge in judging]
    measured["proba"] = apply(of.networks.classifier, part.x).max(axis=1)
    measured["judged"] = np.logical_and.reduce(agree).astype(float)
    measured["im2"] = 10 * measured["im2"]
    out: Arrays = {"image": found.index, "found": good.astype(float)}
    for name in MEASURES:
        out[name] = np.full(len(good), np.nan)
        out[name][good] = measured[name]
    return out


def wished(of: Experiment) -> np.ndarray:
    """The probability of every class (10,) that the default wishes for."""
    proba = apply(of.networks.classifier, of.train[0]).max(axis=1)
    found = sure_probabilities(of.labels, proba, len(DIGITS), Floor(CODES_CONFIDENCE, is_rule=False))
    return np.zeros(len(DIGITS)) if found is None else found


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


def compared(lines: dict[str, Arrays], other: str) -> dict[str, Difference]:
    """Every measure of the default and another setting on the images that both found."""
    one, two = cut(lines[OURS.name], lines[other]["image"]), cut(lines[other], lines[OURS.name]["image"])
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


def searched(of: Experiment, places: Places) -> dict[str, Any]:
    """All that the page says, for the JSON file; draws the picture, too."""
    judging = judges(of.store, *of.train, JUDGES, of.size.epochs)
    x, y = of.test
    lines = {name: values(of, part, judging) for name, part in of.find(SETTINGS).items()}
    pictures.grid(of, places.picture(PICTURE), SETTINGS, copies=())
    least = wished(of)
    return {
        "size": asdict(of.size),
        "defaults": defaults(),
        "accuracy_of_judges": [float((apply(judge, x).argmax(axis=1) == y).mean()) for judge in judging],
        "wish": {
            "probability": float(least.max()),
            "missed": int((lines[OURS.name]["proba"] < least.min()).sum()),
        },
        "seconds": paired(alone(of, OURS), alone(of, E))._asdict(),
        "rows": {name: plain(line) for name, line in lines.items()},
    }


def defaults() -> dict[str, Any]:
    """The product's default settings, as JSON has them."""
    return dict(json.loads(json.dumps(asdict(SearchConfig()), default=str)))


def recorded(file: Path, size: Size) -> dict[str, Any] | None:
    """What the file says, unless that is of fewer images or of other default settings."""
    if not (size.is_full and file.exists()):
        return None
    known: dict[str, Any] = json.loads(file.read_text())
    same = known["size"] == {**asdict(size), "chunks": max(size.chunks, known["size"]["chunks"])}
    return known if same and known["defaults"] == defaults() else None


def report(result: dict[str, Any]) -> list[str]:
    """The page, but for its last line."""
    lines = {
        name: {measure: np.array(column, dtype=float) for measure, column in line.items()}
        for name, line in result["rows"].items()
    }
    pairs = {other.name: compared(lines, other.name) for other in (E, A, NEAREST)}
    pairs[E.name]["seconds"] = Difference(**result["seconds"])
    return [
        TEXT.format(
            images=len(lines[E.name]["image"]),
            accuracy=" and ".join(f"{100 * a:.1f} %" for a in result["accuracy_of_judges"]),
            least=number(result["wish"]["probability"]),
            missed=result["wish"]["missed"],
        ),
        table(lines),
        "## Paired differences",
        PAIRED,
        differences(pairs),
        "## Pictures",
        "The first image of every class, its counterfactuals, and the class that the classifier sees.",
        f"![Originals and their counterfactuals](pictures/{PICTURE})",
    ]


def main(places: Places, size: Size, *, fresh: bool = False) -> None:
    """Search unless that was done, then write the results and the page."""
    torch.set_num_threads(1)
    of, file = Experiment(size, Store(places.cache)), places.results / "mnist_encoder.json"
    known = None if fresh else recorded(file, size)
    result = known or searched(of, places)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(result, indent=1) + "\n")
    made = about("python benchmarks/paper/mnist_encoder.py" + size.flags, of.store.seconds)
    write_page(places.docs / "paper-mnist-encoder.md", [*report(result), made], kept=known is not None)


if __name__ == "__main__":
    parser = arguments(__doc__ or "", per_class=PER_CLASS)
    parser.add_argument("--fresh", action="store_true", help="do not go on from the committed file")
    given = parser.parse_args()
    main(Places(cache=given.cache), Size.of(given.per_class, seed=SEED, images=SEED), fresh=given.fresh)
