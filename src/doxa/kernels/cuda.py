"""The flat passes as Triton kernels, for a GPU's memory; without Triton, torch does their work.

Triton comes with torch's builds for CUDA and compiles each kernel when it is first launched, for the GPU that is there:
nothing is built here, and there is nothing to keep. Launches are asynchronous and their order is the stream's; none of
them waits for the CPU or tells it anything, so that a whole step can be recorded as a CUDA graph.
"""

from __future__ import annotations

import functools
import os
from typing import Any

import torch
from torch import Tensor

GROUP, LANES = 1024, 256
WIDE = 1024  # numbers that one program of an elementwise pass works on


@functools.cache
def kernels() -> Any:
    """The compiled functions by name, or None: no Triton, or DOXA_NATIVE=0."""
    if os.environ.get("DOXA_NATIVE") == "0":
        return None
    try:
        from doxa.kernels import triton_kernels
    except Exception:  # whatever keeps Triton from loading must not keep anyone from training
        return None
    return triton_kernels


def kernel(name: str, *rows: Tensor | None) -> Any:
    """The kernel of this name, where it can work on these rows [K, n]: float32 on a GPU, each dense.

    None asks the caller to do the same in torch, as `doxa.kernels.kernel` does for the CPU.
    """
    for r in rows:
        if r is not None and not _is_supported(r):
            return None
    # Inside torch.compile, vmap or grad there are no addresses to hand over: the same in torch can be seen through.
    if torch.compiler.is_compiling() or torch._C._functorch.peek_interpreter_stack() is not None:
        return None
    module = kernels()
    return None if module is None else getattr(module, name)


def _is_supported(r: Tensor) -> bool:
    return r.is_cuda and r.dtype == torch.float32 and (r.stride(-1) == 1 or r.shape[-1] <= 1)


def group_count(start: int, n: int, size: int = GROUP) -> int:
    """How many groups of `size` numbers the stretch touches."""
    return -(-(start + n) // size) - start // size


def step_tensor(step: int | Tensor, device: torch.device) -> Tensor:
    """A step's number in the device's memory, where a recording moves it on without the CPU."""
    return step if isinstance(step, Tensor) else torch.full((), step, dtype=torch.int64, device=device)
