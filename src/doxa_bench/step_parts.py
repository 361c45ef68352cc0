"""Where the time of a training step goes: drawing the weights, the nets there and back, gradients and Adam."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Any

import torch

from doxa.gradients.forward_backward import ForwardBackward
from doxa.gradients.variational import VariationalGradient
from doxa.noise.leaves import Leaves
from doxa.optimisers.adam import AdamStepper

Step = Callable[[], object]
TIMED_METHODS: dict[str, tuple[type, str]] = {
    "draw": (Leaves, "draw"),
    "nets": (ForwardBackward, "__call__"),
    "collect": (VariationalGradient, "_accumulate"),
    "descend": (AdamStepper, "step"),
}
# By the names of their kernels; what fits no line is "other": activations, losses, rows gathered, copies.
KERNELS = {
    "products": re.compile(r"gemm|gemv|cutlass|xmma|nvjet|splitk", re.IGNORECASE),
    "draw": re.compile(r"^(draw|fill_scale|normals)"),
    "descend": re.compile(r"^(descend|adam)"),
}


def time_eager_parts(step: Step, times: int) -> dict[str, float]:
    """Seconds a step in each part, of steps that run as they are written."""
    with record_part_seconds() as spent:
        for _ in range(times):
            step()
    return {part: seconds / times for part, seconds in spent.items()}


@contextmanager
def record_part_seconds() -> Iterator[dict[str, float]]:
    """The seconds spent in each part from here on."""
    spent: dict[str, float] = {}
    before = {part: getattr(owner, name) for part, (owner, name) in TIMED_METHODS.items()}
    for part, (owner, name) in TIMED_METHODS.items():
        setattr(owner, name, _timed(before[part], part, spent))
    try:
        yield spent
    finally:
        for part, (owner, name) in TIMED_METHODS.items():
            setattr(owner, name, before[part])


def _timed(function: Callable[..., Any], part: str, spent: dict[str, float]) -> Callable[..., Any]:
    @wraps(function)
    def timed(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            spent[part] = spent.get(part, 0.0) + time.perf_counter() - start

    return timed


def time_captured_parts(step: Any, times: int) -> dict[str, float]:
    """Seconds a step that the GPU is busy with each part, of steps that are replayed; empty where it will not say."""
    seconds_by_part: dict[str, float] = {}
    step.rewind()
    with suppress(RuntimeError):  # some drivers let nobody watch
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            for _ in range(times):
                step()
            torch.cuda.synchronize()
        for event in profile.events() or ():
            if str(event.device_type).endswith("CUDA"):
                part = kernel_part(event.name)
                seconds_by_part[part] = seconds_by_part.get(part, 0.0) + 1e-6 * event.time_range.elapsed_us() / times
    return seconds_by_part


def kernel_part(name: str) -> str:
    return next((part for part, pattern in KERNELS.items() if pattern.search(name)), "other")
