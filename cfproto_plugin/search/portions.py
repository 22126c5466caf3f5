"""Many lines, answered in portions: what a search holds in memory does not grow with the number of rows.

A search holds some thousand numbers for every cell of its lines. With a time budget all lines are searched together, so
that the time is shared among them.
"""

from __future__ import annotations

import numpy as np

from cfproto_plugin.search.clock import Clock
from cfproto_plugin.search.guide import Guide
from cfproto_plugin.search.judge import Judge
from cfproto_plugin.search.solve import solve
from cfproto_plugin.search.solved import Solved


def solve_in_portions(judge: Judge, clock: Clock, guide: Guide) -> Solved:
    """Answer every line of the judge's task, at most `Tuning.lines` of them at a time."""
    task, size = judge.task, judge.task.tuning.lines
    n = len(task)
    if n <= size or clock.is_limited:
        return solve(judge, clock, guide)
    found = []
    for start in range(0, n, size):
        lines = np.arange(start, min(n, start + size))
        part = Judge(task.take(lines, task.config), judge.model, guide.floors, judge.theta)
        of_part = clock.of_part(lines)
        found.append(solve(part, of_part, guide))
        clock.seconds[lines] += of_part.seconds
    return _joined(found, clock)


def _joined(found: list[Solved], clock: Clock) -> Solved:
    arrays = [name for name, part in found[0]._asdict().items() if isinstance(part, np.ndarray)]
    joined = {name: np.concatenate([getattr(solved, name) for solved in found]) for name in arrays}
    return found[0]._replace(
        **{**joined, "seconds": clock.seconds},
        in_time=all(solved.in_time for solved in found),
        polish_calls=sum(solved.polish_calls for solved in found),
    )
