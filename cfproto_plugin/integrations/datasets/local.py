"""Blocks done by this process, or by several processes of this machine that load the explainer once each."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from cfproto_plugin.errors import InputError
from cfproto_plugin.integrations.datasets.blocks import Block
from cfproto_plugin.integrations.datasets.outcomes import Outcome
from cfproto_plugin.integrations.datasets.work import Work

log = logging.getLogger(__name__)
_AHEAD = 2  # blocks per process that are handed out at a time
_ATTEMPTS = 3  # at a block during which a process ended
_NOT_BEGUN = (
    "the processes that explain blocks end before they begin; standard error says why. A script that asks for more "
    "than one worker is run by each of them too: put what it does below `if __name__ == '__main__':`"
)
_work: Work | None = None  # of a process of the pool


def here(work: Work, blocks: Sequence[Block]) -> Iterator[tuple[Block, Outcome]]:
    """Do the blocks one after the other."""
    for block in blocks:
        yield block, work.do(block)


def in_processes(work: Work, blocks: Sequence[Block], workers: int) -> Iterator[tuple[Block, Outcome]]:
    """Do the blocks in processes, in whatever order they end.

    A process that ends, as for want of memory, takes the pool with it: a new one goes on, and a block during which that
    happened thrice counts as failed.
    """
    todo, attempts, starts = deque(blocks), dict.fromkeys(blocks, 0), 0
    while todo:
        at_work: dict[Future[Outcome], Block] = {}
        pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _begin, (work,))
        try:
            pool.submit(_ready).result()
            starts = _ATTEMPTS  # what can begin once may fail to do so later, as for want of memory
            while todo or at_work:
                while todo and len(at_work) < _AHEAD * workers:
                    at_work[pool.submit(_do, todo[0])] = todo[0]  # raises if a process has ended meanwhile
                    todo.popleft()
                for future in wait(at_work, return_when=FIRST_COMPLETED).done:
                    yield at_work[future], future.result()
                    del at_work[future]
        except BrokenProcessPool as error:
            starts -= not at_work
            if starts < 0:
                raise InputError(_NOT_BEGUN) from error
            log.warning("a process that explained blocks has ended; their blocks are done again")
            for block in at_work.values():
                attempts[block] += 1
                if attempts[block] < _ATTEMPTS:
                    todo.append(block)
                else:
                    yield block, Outcome(block.name, block.rows, failed=f"the process ended {_ATTEMPTS} times at it")
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _begin(work: Work) -> None:
    """Load the explainer. The parent decides when to stop, and nobody goes on without it."""
    global _work  # noqa: PLW0603 a process of the pool has one job
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    work.explain.served  # noqa: B018 loads
    one_thread()
    _work = work


def one_thread() -> None:
    """Libraries of this process use one thread each: there are as many processes as were asked for."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _ready() -> None:
    """Done by a process that has begun."""


def _do(block: Block) -> Outcome:
    if _work is None:
        raise RuntimeError("a process of the pool does blocks after it has begun")
    return _work.do(block)
