"""Blocks done by actors of Ray Data, each of which loads the explainer once.

Only the names of blocks and how they ended go through Ray. Actors read and write files themselves, as the processes of
one machine do, so that the answers are the same, and a block that an actor did not finish is done by another. Source
and sink are on a file system that all nodes share.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from cfproto_plugin.errors import MissingPackageError
from cfproto_plugin.integrations.datasets.blocks import Block
from cfproto_plugin.integrations.datasets.local import one_thread
from cfproto_plugin.integrations.datasets.outcomes import Outcome
from cfproto_plugin.integrations.datasets.work import Work

_PARTS = 1000  # of the list of blocks, at most: Ray keeps a record of each


class _Worker:
    """An actor."""

    def __init__(self, work: Work) -> None:
        work.explain.served  # noqa: B018 loads
        one_thread()
        self._work = work

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        """How blocks ended. batch: blocks as JSON."""
        blocks = [Block(**json.loads(text)) for text in batch["block"]]
        ended = [json.dumps(asdict(self._work.do(block))) for block in blocks]
        return {"block": list(batch["block"]), "outcome": ended}


def on_ray(work: Work, blocks: Sequence[Block], workers: int) -> Iterator[tuple[Block, Outcome]]:
    """Do the blocks with so many actors, each with one core, in whatever order they end."""
    if not blocks:
        return
    data = load_ray_data()
    items = data.from_items(
        [{"block": json.dumps(asdict(b))} for b in blocks], override_num_blocks=min(len(blocks), _PARTS)
    )
    ended = items.map_batches(
        _Worker,
        fn_constructor_args=(work,),
        batch_size=1,
        compute=data.ActorPoolStrategy(size=min(workers, len(blocks))),
        num_cpus=1,
    )
    for row in ended.iter_rows():
        yield Block(**json.loads(row["block"])), Outcome(**json.loads(row["outcome"]))


def load_ray_data() -> Any:
    """Import Ray Data, or say how to install it."""
    try:
        import ray.data
    except ImportError as error:
        raise MissingPackageError(
            "this needs Ray Data, which is not installed: pip install 'cfproto-plugin[ray]'"
        ) from error
    return ray.data
