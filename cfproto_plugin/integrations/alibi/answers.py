"""From what the search kept to the `data` of an explanation. What is handed out was predicted by the model itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from cfproto_plugin.integrations.alibi.descent import Descent, Kept, Rows
from cfproto_plugin.protocols import Array


def answers(
    search: Descent, rows: Rows, kept: list[list[Kept]], proba: Array, id_proto: Array | None
) -> list[dict[str, Any]]:
    """The data of every row. proba (n, k) of the rows themselves, id_proto (n,) the classes of their prototypes."""
    confirmed = _confirmed(search, rows, kept)
    gradients = _gradients(search, rows, confirmed)
    found = []
    for row, (mine, own) in enumerate(zip(confirmed, proba, strict=True)):
        counterfactual = None
        if mine:
            last, said = mine[-1]
            graph, numeric = gradients[row]
            counterfactual = {
                "X": search.networks.rows(last.z[None]),
                "class": np.int64(said.argmax()),
                "proba": said[None],
                "grads_graph": graph,
                "grads_num": numeric,
            }
        found.append(
            {
                "cf": counterfactual,
                "all": _by_step(search, [each for each, _ in mine]),
                "orig_class": np.int64(rows.label[row]),
                "orig_proba": own[None],
                "id_proto": None if id_proto is None else int(id_proto[row]),
            }
        )
    return found


def together(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The data of several rows as one: arrays with a line for each."""
    found = [row["cf"] for row in rows]
    known = next((cf for cf in found if cf is not None), None)
    counterfactual = None
    if known is not None:
        counterfactual = {
            name: np.concatenate([np.full_like(known[name], np.nan) if cf is None else cf[name] for cf in found])
            for name in ("X", "proba", "grads_graph", "grads_num")
        }
        counterfactual["class"] = np.array([-1 if cf is None else cf["class"] for cf in found])
        counterfactual = {name: counterfactual[name] for name in known}
    return {
        "cf": counterfactual,
        "all": [row["all"] for row in rows],
        "orig_class": np.array([row["orig_class"] for row in rows]),
        "orig_proba": np.concatenate([row["orig_proba"] for row in rows]),
        "id_proto": None if rows[0]["id_proto"] is None else np.array([row["id_proto"] for row in rows]),
    }


def _confirmed(search: Descent, rows: Rows, kept: list[list[Kept]]) -> list[list[tuple[Kept, Array]]]:
    """What the model says of the kept points when it is asked again, without those that it takes back."""
    flat = [(row, each) for row, mine in enumerate(kept) for each in mine]
    found: list[list[tuple[Kept, Array]]] = [[] for _ in kept]
    if not flat:
        return found
    proba = search.networks.predict(np.stack([each.z for _, each in flat]))
    valid = search.is_valid(proba, rows.take(np.array([row for row, _ in flat])))
    for (row, each), said, good in zip(flat, proba, valid, strict=True):
        if good:
            found[row].append((each, said))
    return found


def _gradients(
    search: Descent, rows: Rows, confirmed: list[list[tuple[Kept, Array]]]
) -> dict[int, tuple[Array, Array]]:
    """Both gradients (1, *shape) at the counterfactual of every row that has one."""
    at = np.array([row for row, mine in enumerate(confirmed) if mine], dtype=int)
    if not len(at):
        return {}
    last = [confirmed[row][-1][0] for row in at]
    z, c = np.stack([each.z for each in last]), np.array([each.c for each in last])
    graph, numeric = search.gradients(rows.take(at), z, c)
    shape = search.networks.shape
    return {
        row: (g.reshape(1, *shape), n.reshape(1, *shape)) for row, g, n in zip(at.tolist(), graph, numeric, strict=True)
    }


def _by_step(search: Descent, kept: list[Kept]) -> Any:
    """Rows of the counterfactuals by the number of their c; an empty list if there are none."""
    if not kept:
        return []
    steps: dict[int, list[Array]] = {number: [] for number in range(search.networks.settings.c_steps)}
    for each in kept:
        steps[each.step].append(search.networks.rows(each.z[None]))
    return steps
