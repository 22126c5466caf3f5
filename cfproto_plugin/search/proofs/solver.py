"""Mixed-integer programs by HiGHS, which SciPy brings."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cfproto_plugin.protocols import Array
from cfproto_plugin.search.proofs.forms import Row
from cfproto_plugin.search.proofs.quiet import quiet

_SHORTEST = 1e-3  # seconds
_GAP = 1e-7  # relative gap at which HiGHS calls a program solved
_OPTIMAL, _INFEASIBLE = 0, 2  # status of milp


class Solution(NamedTuple):
    """What HiGHS says. bound: None if it has none. x: (n,) the best point that it found, None for none."""

    bound: float | None
    x: Array | None
    solved: bool
    infeasible: bool


def solve(
    cost: Array, low: Array, high: Array, binary: int, rows: list[Row], seconds: float, *, root_only: bool
) -> Solution:
    """Minimise cost · x with low <= x <= high, all (n,), the first variables binary; root_only: without branching."""
    from scipy.optimize import Bounds, milp

    options: dict[str, float] = {"time_limit": max(seconds, _SHORTEST), "mip_rel_gap": _GAP}
    if root_only:
        options["node_limit"] = 1
    whole, begin = (np.arange(len(cost)) < binary).astype(int), time.perf_counter()
    ask = partial(milp, cost, integrality=whole, bounds=Bounds(low, high), constraints=_constraints(rows, len(cost)))
    with quiet():
        found = ask(options=options)
        if found.status == _INFEASIBLE:  # the presolve of HiGHS calls some programs so that have points
            options["time_limit"] = max(seconds - (time.perf_counter() - begin), _SHORTEST)
            found = ask(options={**options, "presolve": False})
    known = found.mip_dual_bound is not None and np.isfinite(found.mip_dual_bound)
    bound = float(found.mip_dual_bound) if known else None
    return Solution(bound, found.x, found.status == _OPTIMAL, found.status == _INFEASIBLE)


def _constraints(rows: list[Row], count: int) -> Any:
    from scipy.optimize import LinearConstraint
    from scipy.sparse import csr_matrix

    entries = [len(terms) for terms, _, _ in rows]
    columns = np.fromiter((c for terms, _, _ in rows for c in terms), dtype=int, count=sum(entries))
    data = np.fromiter((v for terms, _, _ in rows for v in terms.values()), dtype=float, count=sum(entries))
    matrix = csr_matrix((data, columns, np.concatenate([[0], np.cumsum(entries)])), (len(entries), count))
    return LinearConstraint(matrix, [low for _, low, _ in rows], [high for _, _, high in rows])
