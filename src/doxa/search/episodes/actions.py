"""ACTION: what an environment is told, given a net's outputs. To add a bound: a function and a line in TABLE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from doxa.errors import BadInput

# From outputs [n, K] and a Box of K numbers to numbers within its bounds [n, K].
Bound = Callable[[Any, Any], NDArray[Any]]


def tanh(output: NDArray[Any], space: Any) -> NDArray[Any]:
    """Outputs bent into the bounds; where there are none, as they are.

    a = low + (high − low) (1 + tanh(o))/2
    """
    low, high = space.low.reshape(-1), space.high.reshape(-1)
    bounded = np.isfinite(low) & np.isfinite(high)
    bottom, top = np.where(bounded, low, 0.0), np.where(bounded, high, 0.0)
    squashed = bottom + (top - bottom) * (1 + np.tanh(output)) / 2
    return np.where(bounded, squashed, clip(output, space))


def clip(output: NDArray[Any], space: Any) -> NDArray[Any]:
    """Outputs cut at the bounds.

    a = min(max(o, low), high)
    """
    return np.clip(output, space.low.reshape(-1), space.high.reshape(-1))


TABLE: dict[str, Bound] = {"tanh": tanh, "clip": clip}


def output_count(space: Any) -> int:
    """How many outputs a net must have: one for each of discrete actions, or for each number of a continuous one."""
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete):
        return int(space.n)
    if isinstance(space, spaces.Box):
        return int(np.prod(space.shape))
    raise BadInput(
        f"the environment's actions are {space}; a policy can take Discrete actions, or Box, continuous ones: wrap the "
        "environment in one that has those"
    )


def choose_actions(output: Tensor, space: Any, bound: Bound) -> NDArray[Any]:
    """Actions [n, ...] of outputs [n, K]: the one with the highest output, or continuous ones within their bounds."""
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete):
        return output.argmax(-1).numpy() + space.start
    actions = bound(output.double().numpy(), space)
    return actions.reshape(len(output), *space.shape).astype(space.dtype)
