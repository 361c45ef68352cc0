"""Where the time of a training step goes: drawing the weights, the nets there and back, gradients and Adam."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Any

import torch

from doxa.gradients.passes import Passes
from doxa.gradients.variational import VariationalGradient
from doxa.noise.leaves import Leaves
from doxa.optimisers.adam import AdamStepper

Step = Callable[[], object]
WRITTEN: dict[str, tuple[type, str]] = {
    "draw": (Leaves, "draw"),
    "nets": (Passes, "__call__"),
    "collect": (VariationalGradient, "_collect"),
    "descend": (AdamStepper, "step"),
}
# By the names of their kernels; what fits no line is "other": activations, losses, rows gathered, copies.
KERNELS = {
    "products": re.compile(r"gemm|gemv|cutlass|xmma|nvjet|splitk", re.IGNORECASE),
    "draw": re.compile(r"^(draw|fill_scale|normals)"),
    "descend": re.compile(r"^(descend|adam)"),
}


def written(step: Step, times: int) -> dict[str, float]:
    """Seconds a step in each part, of steps that run as they are written."""
    with watched() as spent:
        for _ in range(times):
            step()
    return {part: seconds / times for part, seconds in spent.items()}


@contextmanager
def watched() -> Iterator[dict[str, float]]:
    """The seconds spent in each part from here on."""
    spent: dict[str, float] = {}
    before = {part: getattr(owner, name) for part, (owner, name) in WRITTEN.items()}
    for part, (owner, name) in WRITTEN.items():
        setattr(owner, name, _timed(before[part], part, spent))
    try:
        yield spent
    finally:
        for part, (owner, name) in WRITTEN.items():
            setattr(owner, name, before[part])


def _timed(function: Callable[..., Any], part: str, spent: dict[str, float]) -> Callable[..., Any]:
    @wraps(function)
    def timed(*given: Any, **named: Any) -> Any:
        start = time.perf_counter()
        try:
            return function(*given, **named)
        finally:
            spent[part] = spent.get(part, 0.0) + time.perf_counter() - start

    return timed


def recorded(step: Any, times: int) -> dict[str, float]:
    """Seconds a step that the GPU is busy with each part, of steps that are replayed; empty where it will not say."""
    found: dict[str, float] = {}
    step.rewind()
    with suppress(RuntimeError):  # some drivers let nobody watch
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            for _ in range(times):
                step()
            torch.cuda.synchronize()
        for event in profile.events() or ():
            if str(event.device_type).endswith("CUDA"):
                part = kernel_part(event.name)
                found[part] = found.get(part, 0.0) + 1e-6 * event.time_range.elapsed_us() / times
    return found


def kernel_part(name: str) -> str:
    return next((part for part, pattern in KERNELS.items() if pattern.search(name)), "other")
