"""What the comparison is read for: statements about ours beside the peers, with the numbers they rest on."""

from __future__ import annotations

from typing import Any

import numpy as np

Line = dict[str, Any]
PRESETS = ("ours", "ours, close", "ours, few", "ours, typical")


def verdicts(result: dict[str, Any]) -> list[dict[str, Any]]:
    """In the order of the page."""
    lines, groups = result["lines"], {group["name"]: group for group in result["groups"]}
    found = [_covered(lines)]
    for name in [name for name in ("all", "with DiCE", "two classes, trees") if groups[name]["cases"]]:
        found += [
            _first(groups[name], "en", "ours, close", "distance EN"),
            _first(groups[name], "l1", "ours, close", "distance L1"),
            _first(groups[name], "l0", "ours, few", "columns changed"),
            _first(groups[name], "l0", "ours, few, no floors", "columns changed"),
        ]
    for mine in ("ours, close", "ours, close, function"):
        found.append(_faster(lines, mine, "NICE proximity"))
    for mine in ("ours, few", "ours, few, no floors"):
        found.append(_faster(lines, mine, "NICE sparsity"))
    found += [_survives(lines, peer) for peer in ("NICE proximity", "NICE sparsity", "DiCE random", "treecf")]
    return [*found, _beside(lines, "nn5", "5NN"), _beside(lines, "im1", "IM1")]


def _covered(lines: list[Line]) -> dict[str, Any]:
    """All rows, wherever the model gives its training rows two classes or more."""
    these = [line for line in lines if line["method"] in PRESETS and line["classes given"] > 1]
    missed = [line for line in these if line["solved"] < line["of"]]
    rows, solved = sum(line["of"] for line in these), sum(line["solved"] for line in these)
    text = f"{solved} of {rows} rows, four presets" + "".join(
        f"; {line['data']} {line['model']} {line['method']}: {line['solved']}" for line in missed[:5]
    )
    return {"what": "ours covers all rows", "measured": text, "met": not missed and bool(these)}


def _first(group: dict[str, Any], name: str, mine: str, words: str) -> dict[str, Any]:
    """Whether a preset of ours has the best average rank; its line on the plain function is ours too."""
    found = group["measures"][name]
    ranks = dict(zip(found["tools"], found["ranks"], strict=True))
    peers = {tool: rank for tool, rank in ranks.items() if not tool.startswith("ours")}
    best = min(peers, key=peers.__getitem__)
    where = "" if group["name"] == "all" else f" ({group['name']})"
    text = f"{ranks[mine]:.2f}; best peer {best} {peers[best]:.2f}, critical difference {found['difference']:.2f}"
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


def _faster(lines: list[Line], mine: str, peer: str) -> dict[str, Any]:
    ours, theirs = _paired(lines, mine, peer, "cpu")
    text = f"{np.median(ours):.3g} against {np.median(theirs):.3g} ms; less in {(ours < theirs).sum()} of {len(ours)}"
    for kind in ("xgboost", "mlp", "forest"):
        a, b = _paired([line for line in lines if line["model"] == kind], mine, peer, "cpu")
        text += f"; {kind} {np.median(a):.3g} against {np.median(b):.3g}"
    what = f"median time of `{mine}` below that of {peer}"
    return {"what": what, "measured": text, "met": bool(np.median(ours) < np.median(theirs))}


def _survives(lines: list[Line], peer: str) -> dict[str, Any]:
    ours, theirs = 100 * _paired(lines, "ours", peer, "survival")
    text = f"{ours.mean():.3g} against {theirs.mean():.3g} % (medians {np.median(ours):.3g}, {np.median(theirs):.3g}); "
    text += f"more in {(ours > theirs).sum()} of {len(ours)} cases"
    what = f"refitted models agree more with the default than with {peer}"
    return {"what": what, "measured": text, "met": bool(ours.mean() > theirs.mean())}


def _beside(lines: list[Line], name: str, title: str) -> dict[str, Any]:
    ours, near = _paired(lines, "ours, typical", "nearest training row", name)
    text = f"{np.mean(ours):.3g} against {np.mean(near):.3g} (medians {np.median(ours):.3g}, {np.median(near):.3g}); "
    text += f"lower in {(ours < near).sum()} of {len(ours)} cases"
    what = f"{title} of `ours, typical` no higher than that of the nearest training row"
    return {"what": what, "measured": text, "met": bool(np.median(ours) <= np.median(near))}
