"""The page docs/breadth.md, from the results alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from cells import OURS
from diagram import draw
from report import markdown, number
from verdicts import verdicts

Line = dict[str, Any]
COLUMNS = {  # of a table; the factor that the value is shown with
    "cpu": ("ms alone", 1),
    "fifty": ("ms in fifty", 1),
    "l0": ("columns", 1),
    "l1": ("L1", 1),
    "en": ("EN", 1),
    "nn5": ("5NN", 1),
    "im1": ("IM1", 1),
    "survival": ("refits agree, %", 100),
    "outlier": ("outliers, %", 100),
}
MODELS = {"xgboost": "XGBoost", "mlp": "the network", "forest": "the forest"}
FULL = 3 * 34  # thirty-four tables, three models of each
RANKED = ("en", "l1", "l0", "nn5", "im1", "survival", "cpu", "fifty")

INTRODUCTION = """# Many tables, three models, every tool

Written by `make bench-breadth`, which goes on where it was stopped. The protocol is that of NICE's published
comparison (coverage, time, columns changed, distance, 5NN, IM1), and the agreement of refitted models, which that
comparison lacks.

- **Cases.** A case is a table and a model: XGBoost (100 trees of depth 4), a neural network (scikit-learn, one layer of
  50) or a random forest (100 trees). There are {cases} cases: {models}.
  Of the {tables} tables {texts} have text columns; those of more than 7,500 rows are cut to a random 7,500.{missing}
  The split (seed {seed}) had no part in choosing a constant.
- **The same for everyone.** Each tool takes text columns in its own way, or not at all, so everyone gets numbers: a
  text column its codes in alphabetical order, a missing number the median. A code is a number like any other here, for
  ours too, and an answer may lie between two codes. The same fifty held-back rows of every case are explained by every
  tool.
- **What each tool is given.** treecf reads the trees, and so does ours. NICE, DiCE and alibi get the model as a
  function from rows to probabilities; `close, function` is ours with that function and nothing else.
- **Lines of ours.** The default and the four presets; `few with floors` is `SearchConfig(few_changes=3)`: few columns
  with the default's floors for typicality and stability. Several lines of ours are ranked together, so a peer's rank
  depends on how many there are; therefore the table below also counts cases in pairs.
- **Limits.** {row:g} s of processor time a row, {cell:g} s for all rows of a case (alibi {alibi:g},
  DiCE {dice:g} and in two cases 20); rows that were not answered for lack of time are not in `asked`.
- **Times.** `ms alone`: processor time of a row in a call of its own, the first not counted. `ms in fifty`: that of one
  call with all fifty rows, after a first call with two, divided by fifty. NICE, DiCE and alibi explain one row at a
  time: their `ms in fifty` is their `ms alone`. Ours is asked the first {alone} rows alone, for their time; its answers
  are those of the call with fifty, the same in {same} rows. All on one thread, on a machine that other work
  shared; ours, NICE and treecf were asked within two hours, DiCE and alibi at other times.
- **Measures.** `coverage`: rows asked to which the model gives another class after the change. `columns` changed,
  `L1`, `EN` = 0.1·L1 + L2 in standard deviations. `5NN`: mean distance to the five nearest training rows that the model
  gives the new class. `IM1`: error of an autoencoder of the new class divided by that of the old one, small networks
  (scikit-learn) on the training rows of a label. `refits agree`: share of ten models (five for networks and where there
  are more than 4,000 training rows), fitted to bootstraps with other seeds, that give the claimed class. `outliers` by
  the local outlier factor. In a case they are means over the rows that the tool solved, of `IM1` the median.
- **Ranks.** In every case every two tools are compared on the rows that both were asked, and a tool's rank is one plus
  the number of tools that are better, equal ones counting one half. A row that a tool left without an answer counts as
  the worst answer that any tool gave to it. The critical difference (Nemenyi, 5 %) counts tables, not cases, because
  three models of one table are not independent.
- **Settings of the peers.** NICE and treecf measure distances in standard deviations. With more than two classes NICE
  proximity and plausibility are told the class of their own nearest unlike row and DiCE the second most likely one:
  they need to be told. NICE plausibility has a small network as its autoencoder. alibi has 500 iterations and a few
  tables. `nearest training row` is no tool: the nearest row that the model gives another class, as it is.

Of CFProto itself, as alibi has it, the published comparison reports on its own 40 data sets a median coverage of 67 to
75 % at 17 s (network) and 499 s (forest) a row, and of NICE sparsity 100 % at 9.8 and 334 ms with 1.8 and 2.2 columns.

![Average ranks with critical differences](pictures/breadth.png)
"""
NAMES = {
    "all": "Ours and NICE",
    "numbers only": "Tables without text columns",
    "with NICE plausibility": "With NICE plausibility",
    "with DiCE": "With DiCE",
    "two classes, trees": "Two classes, XGBoost and forest: with treecf",
    "a few tables": "A few tables: with alibi",
}


def write(result: dict[str, Any], docs: Path) -> None:
    """The page and the picture."""
    lines = result["lines"]
    draw(result["groups"][0], docs / "pictures" / "breadth.png")
    cases = {(line["data"], line["model"]): line for line in lines}
    tables = {line["data"]: line["texts"] for line in lines}
    parts = [
        INTRODUCTION.format(
            tables=len(tables),
            texts=sum(texts > 0 for texts in tables.values()),
            cases=len(cases),
            models=_models(cases),
            missing=_missing(len(cases)),
            seed=result["seed"],
            same=_same(lines, result["limits"]["alone"]),
            **result["limits"],
        ),
        *_verdicts(verdicts(result)),
    ]
    for group in result["groups"]:
        parts += _group(group, lines) if group["cases"] else []
    parts += _cut(lines)
    versions = ", ".join(f"{name} {found}" for name, found in result["versions"].items())
    parts += [f"{result['date']}, `make bench-breadth`; {versions}.", ""]
    (docs / "breadth.md").write_text("\n".join(parts), encoding="utf-8")


def _models(cases: Any) -> str:
    kinds = [kind for _, kind in cases]
    return ", ".join(f"{kinds.count(kind)} with {name}" for kind, name in MODELS.items())


def _same(lines: list[Line], alone: int) -> str:
    """Of how many rows the answer does not depend on the others of the call."""
    ours = [line["same"] for line in lines if line["method"] in OURS]
    return f"{sum(ours):,} of {alone * len(ours):,}"


def _missing(cases: int) -> str:
    """Which part was measured; nothing if it is the whole."""
    return "" if cases == FULL else f" The other {FULL - cases} of {FULL} cases were not complete on this date."


def _verdicts(found: list[dict[str, Any]]) -> list[str]:
    body = [[one["what"], one["measured"], "yes" if one["met"] else "**no**"] for one in found]
    return ["## What holds", "", markdown(["what", "measured", "holds"], body), ""]


def members(group: dict[str, Any], lines: list[Line]) -> list[Line]:
    """The lines of the cases and tools of a group."""
    chosen = {tuple(case) for case in group["cases"]}
    return [line for line in lines if (line["data"], line["model"]) in chosen and line["method"] in group["tools"]]


def _group(group: dict[str, Any], lines: list[Line]) -> list[str]:
    """Means and medians over the cases, and the average ranks."""
    known = members(group, lines)
    head = ["tool", "asked", "coverage, %", *(f"{title}: mean, median" for title, _ in COLUMNS.values())]
    body = [_tool(tool, [line for line in known if line["method"] == tool]) for tool in group["tools"]]
    measures = [name for name in RANKED if name in group["measures"]]
    ranks = {
        name: dict(zip(*(group["measures"][name][k] for k in ("tools", "ranks")), strict=True)) for name in measures
    }
    rank_body = [[tool, *(number(ranks[name].get(tool)) for name in measures)] for tool in group["tools"]]
    differences = ["critical difference", *(number(group["measures"][name]["difference"]) for name in measures)]
    ps = ["Friedman's p", *(f"{group['measures'][name]['p']:.1g}" for name in measures)]
    counts = ["cases", *(str(group["measures"][name]["cases"]) for name in measures)]
    heads = ["average rank", *(COLUMNS[name][0].removesuffix(", %") for name in measures)]
    return [
        f"## {NAMES[group['name']]}",
        "",
        f"{len(group['cases'])} cases of {len({data for data, _ in group['cases']})} tables.",
        "",
        markdown(head, body),
        "",
        markdown(heads, [*rank_body, differences, ps, counts]),
        "",
    ]


def _tool(tool: str, lines: list[Line]) -> list[str]:
    asked, solved = sum(line["asked"] for line in lines), sum(line["solved"] for line in lines)
    cells = [tool, str(asked), f"{100 * solved / asked:.4g}" if asked else "-"]
    for name, (_, times) in COLUMNS.items():
        known = [times * line[name] for line in lines if line[name] is not None]
        cells.append(f"{number(float(np.mean(known)))}, {number(float(np.median(known)))}" if known else "-")
    return cells


def _cut(lines: list[Line]) -> list[str]:
    """Which tools were cut off by the limits, and which raised."""
    found = []
    for tool in dict.fromkeys(line["method"] for line in lines):
        these = [line for line in lines if line["method"] == tool]
        cut = sum(line["asked"] < line["of"] for line in these)
        raised = [line for line in these if line["errors"]]
        if cut or raised:
            texts = sorted({error.split(":")[0] for line in raised for error in line["errors"]})
            found.append([tool, str(len(these)), str(cut), str(len(raised)), ", ".join(texts)])
    head = ["tool", "cases", "cut off by the limit", "raised on a row", "what"]
    return ["## Cut off, or refused", "", markdown(head, found), ""] if found else []
