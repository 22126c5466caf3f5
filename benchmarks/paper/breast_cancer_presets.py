"""The product's settings beside loss A on the paper's Breast Cancer rows.

`python benchmarks/paper/breast_cancer_presets.py`: the 19 rows of the experiment with networks of seeds 5 to 9, which
no setting was chosen with. Resumable like breast_cancer.py. Writes benchmarks/results/paper/breast_cancer_presets.json
and docs/paper-breast-cancer-presets.md.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from breast_cancer import Method, Size, measured, methods, search
from breast_cancer_networks import Data, networks
from common import Places, about, markdown, number, write_page
from paired import Difference, mean, paired, plain
from store import Arrays, Store
from tqdm import tqdm

from cfproto_plugin import SearchConfig

FIRST_SEED = 5
MEASURES = {"im1": "IM1", "im2": "IM2 (x10)", "elastic_net": "EN", "l0": "changed features", "alone_seconds": "seconds"}
TEXT = """# Breast Cancer: the product's settings beside loss A

The last 19 rows of [the paper's experiment](paper-breast-cancer.md) with networks of seeds {first} to {last}, with
which nothing was chosen: {n} counterfactuals each. A is as in the first table of that page. *typical* is
`SearchConfig.typical()`, *default* the settings of `CounterfactualExplainer(model)`. Seconds are of the processor, one
row alone (A: three rows per seed, all values of c up to the first that works)."""
PAIRED = """Row by row, ours minus A's, with 95 % bounds by Student's t; rows that A does not find are left out. The
five networks share the 19 rows, so the bounds are of these rows, not of rows in general."""


def settings(size: Size) -> list[Method]:
    """Loss A and the product's."""
    typical = {key: value for key, value in asdict(SearchConfig.typical()).items() if key in {"theta", "few_changes"}}
    return [methods(size)[0], Method("typical", None, typical, size.rows), Method("default", None, {}, size.rows)]


def run(store: Store, size: Size, first: int = FIRST_SEED, *, progress: bool = True) -> dict[str, Arrays]:
    """Every measure (seeds * rows,) of every setting."""
    data, found = Data.load(size.rows), {}
    seeds = tqdm(range(first, first + size.seeds), desc="seeds", disable=not progress)
    for seed in seeds:
        nets = networks(store, data, seed, size.epochs)
        for method in settings(size):
            about_it = {"epochs": size.epochs, "rows": size.rows, "powers": method.powers, **asdict(method.search())}
            kept = store.get(
                f"seed{seed}/{method.name}", about_it, lambda m=method, n=nets: search(data, n.classifier, m)
            )
            values = measured(kept, data, nets, None)
            found.setdefault(method.name, []).append({**values, "im2": 10 * values["im2"]})
    return {
        name: {measure: np.concatenate([part[measure] for part in parts]) for measure in (*MEASURES, "validity")}
        for name, parts in found.items()
    }


def write(lines: dict[str, Arrays], size: Size, places: Places, seconds: float, first: int = FIRST_SEED) -> None:
    """The JSON file and the page."""
    pairs = {
        name: {measure: paired(lines[name][measure], lines["A"][measure]) for measure in MEASURES}
        for name in lines
        if name != "A"
    }
    places.results.mkdir(parents=True, exist_ok=True)
    result = {
        "size": asdict(size),
        "first_seed": first,
        "differences": _plain(pairs),
        "rows": {name: plain(line) for name, line in lines.items()},
    }
    (places.results / "breast_cancer_presets.json").write_text(json.dumps(result, indent=1) + "\n")
    n = len(lines["A"]["validity"])
    body = [
        [name, f"{line['validity'].sum():.0f} of {n}", *(number(mean(line[m])) for m in MEASURES)]
        for name, line in lines.items()
    ]
    gaps = [
        [MEASURES[measure], name, number(gap.other), number(gap.ours), gap.text, str(gap.n)]
        for name, part in pairs.items()
        for measure, gap in part.items()
    ]
    page = [
        TEXT.format(first=first, last=first + size.seeds - 1, n=n),
        markdown(["setting", "found", *MEASURES.values()], body),
        PAIRED,
        markdown(["measure", "setting", "A", "ours", "difference (95 % bounds)", "n"], gaps),
        about("python benchmarks/paper/breast_cancer_presets.py", seconds),
    ]
    write_page(places.docs / "paper-breast-cancer-presets.md", page)


def _plain(pairs: dict[str, dict[str, Difference]]) -> dict[str, dict[str, dict[str, float]]]:
    return {name: {measure: gap._asdict() for measure, gap in part.items()} for name, part in pairs.items()}


def main(places: Places, size: Size, *, progress: bool = True) -> None:
    """Search what is not there yet, then write the results and the page."""
    torch.set_num_threads(1)
    store = Store(places.cache / "breast_cancer_presets")
    lines = run(store, size, progress=progress)
    write(lines, size, places, store.seconds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--cache", type=Path, default=Places().cache, help="folder of networks and single results")
    main(Places(cache=parser.parse_args().cache), Size())
