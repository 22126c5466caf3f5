"""Autograd's backward pass without what Python does before it, a fifth of the passes of a small network."""

from __future__ import annotations

from functools import cache
from typing import Any


def gradient_of(scores: Any, leaf: Any, seed: Any) -> Any:
    """dL/dleaf from seed = dL/dscores, None if scores do not depend on it; the graph stays for another time."""
    import torch

    engine = _engine()
    plain = type(scores) is torch.Tensor and scores.is_cpu and seed.shape == scores.shape
    if engine is None or not plain:
        return torch.autograd.grad(scores, leaf, seed, retain_graph=True, allow_unused=True)[0]
    return _run(engine, scores, leaf, seed)


@cache
def _engine() -> Any:
    """What `torch.autograd.grad` calls; None if another version of PyTorch has no such engine."""
    import torch

    try:
        engine: Any = torch.autograd.Variable._execution_engine  # noqa: SLF001 there is no public name
        with torch.inference_mode(False), torch.enable_grad():
            leaf = torch.tensor([3.0], requires_grad=True, device="cpu")
            found = _run(engine, leaf * leaf, leaf, torch.tensor([5.0], device="cpu"))
        return engine if found.tolist() == [30.0] and leaf.grad is None else None
    except (AttributeError, TypeError, RuntimeError):
        return None


def _run(engine: Any, scores: Any, leaf: Any, seed: Any) -> Any:
    """What `grad` asks: to keep the graph, to make none of the pass, and to take scores that the leaf is no part of."""
    return engine.run_backward((scores,), (seed,), True, False, (leaf,), True, accumulate_grad=False)[0]
