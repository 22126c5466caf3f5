"""What the comparison is read for: statements about ours beside the peers, with the numbers they rest on."""

from __future__ import annotations

from typing import Any

import numpy as np
from cells import OURS

Line = dict[str, Any]
GOALS = (
    ("en", "ours, close", "distance EN"),
    ("l1", "ours, close", "distance L1"),
    ("l0", "ours, few", "columns changed"),
)
FASTER = (
    ("ours, close", "NICE proximity"),
    ("ours, close, function", "NICE proximity"),
    ("ours, few", "NICE sparsity"),
)
TIMES = {"cpu": "a row alone", "fifty": "a row in a call of fifty"}


def verdicts(result: dict[str, Any]) -> list[dict[str, Any]]:
    """In the order of the page."""
    lines, groups = result["lines"], {group["name"]: group for group in result["groups"]}
    found = [_covered(lines)]
    for name in [name for name in ("all", "with DiCE", "two classes, trees") if groups[name]["cases"]]:
        found += [_first(groups[name], lines, *goal) for goal in GOALS]
    found += [_faster(lines, *pair, time) for time in TIMES for pair in FASTER]
    found += [_survives(lines, peer) for peer in ("NICE proximity", "NICE sparsity", "DiCE random", "treecf")]
    return [*found, _beside(lines, "nn5", "5NN"), _beside(lines, "im1", "IM1")]


def _covered(lines: list[Line]) -> dict[str, Any]:
    """All rows, wherever the model gives its training rows two classes or more."""
    these = [line for line in lines if line["method"] in OURS and line["classes given"] > 1]
    missed = [line for line in these if line["solved"] < line["of"]]
    rows, solved = sum(line["of"] for line in these), sum(line["solved"] for line in these)
    text = f"{solved} of {rows} rows, {len(OURS)} lines of ours" + "".join(
        f"; {line['data']} {line['model']} {line['method']}: {line['solved']}" for line in missed[:5]
    )
    what = "ours covers all rows where the model gives its training rows at least two classes"
    return {"what": what, "measured": text, "met": not missed and bool(these)}


def _first(group: dict[str, Any], lines: list[Line], name: str, mine: str, words: str) -> dict[str, Any]:
    """Whether no peer has a better average rank than a line of ours, and in how many cases ours is below the best."""
    found = group["measures"][name]
    ranks = dict(zip(found["tools"], found["ranks"], strict=True))
    peers = {tool: rank for tool, rank in ranks.items() if not tool.startswith("ours")}
    best = min(peers, key=peers.__getitem__)
    where = "" if group["name"] == "all" else f" ({group['name']})"
    text = f"{ranks[mine]:.2f}; best peer {best} {peers[best]:.2f}, critical difference {found['difference']:.2f}"
    cases = [tuple(case) for case in group["cases"]]
    whole = [line for line in lines if (line["data"], line["model"]) in cases and line["asked"] == line["of"]]
    ours, theirs = _paired(whole, mine, best, name)
    text += f"; less than it in {(ours < theirs).sum()}, equal in {(ours == theirs).sum()} of {len(ours)} cases"
    others = [tool for tool, rank in ranks.items() if rank < ranks[mine] and tool != mine]
    if others:
        text += f"; before it: {', '.join(others)}"
    what = f"{words}: no peer has a better average rank than `{mine}`{where}, {found['cases']} cases"
    met = not [tool for tool in others if not tool.startswith("ours")]
    return {"what": what, "measured": text, "met": met}


def _paired(lines: list[Line], mine: str, peer: str, name: str) -> np.ndarray:
    """(2, n) the values of the cases where both have one."""
    known = {(line["data"], line["model"], line["method"]): line[name] for line in lines}
    cases = dict.fromkeys((line["data"], line["model"]) for line in lines)
    pairs = [(known.get((*case, mine)), known.get((*case, peer))) for case in cases]
    return np.array([pair for pair in pairs if None not in pair], dtype=float).reshape(-1, 2).T


def _faster(lines: list[Line], mine: str, peer: str, time: str) -> dict[str, Any]:
    ours, theirs = _paired(lines, mine, peer, time)
    text = f"{np.median(ours):.3g} against {np.median(theirs):.3g} ms; less in {(ours < theirs).sum()} of {len(ours)}"
    for kind in ("xgboost", "mlp", "forest"):
        a, b = _paired([line for line in lines if line["model"] == kind], mine, peer, time)
        text += f"; {kind} {np.median(a):.3g} against {np.median(b):.3g}"
    what = f"median time of `{mine}` below that of {peer}, {TIMES[time]}"
    return {"what": what, "measured": text, "met": bool(np.median(ours) < np.median(theirs))}


def _survives(lines: list[Line], peer: str) -> dict[str, Any]:
    """Case by case on the rows that both solved: a peer that was cut off has answers to a few rows only."""
    pairs = [line["beside the default"] for line in lines if line["method"] == peer and line["beside the default"]]
    rows, ours, theirs = np.array(pairs).T * [[1], [100], [100]]
    text = f"{ours.mean():.3g} against {theirs.mean():.3g} % (medians {np.median(ours):.3g}, {np.median(theirs):.3g}); "
    text += f"more in {(ours > theirs).sum()} of {len(ours)} cases, {rows.sum():.0f} rows"
    what = f"refitted models agree more with the default than with {peer}"
    return {"what": what, "measured": text, "met": bool(ours.mean() > theirs.mean())}


def _beside(lines: list[Line], name: str, title: str) -> dict[str, Any]:
    """By the median over the cases, and in at least half of them."""
    ours, near = _paired(lines, "ours, typical", "nearest training row", name)
    text = f"{np.mean(ours):.3g} against {np.mean(near):.3g} (medians {np.median(ours):.3g}, {np.median(near):.3g}); "
    text += f"lower in {(ours < near).sum()} of {len(ours)} cases"
    what = f"{title} of `ours, typical` no higher than that of the nearest training row"
    met = np.median(ours) <= np.median(near) and (ours <= near).mean() >= 0.5
    return {"what": what, "measured": text, "met": bool(met)}
