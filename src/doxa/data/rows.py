"""Rows of data, whatever they came as: arrays or tensors, one input or several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from doxa.errors import BadInput, DoxaError

# What a net is called with: one tensor, several in order, or several by name.
Inputs = Tensor | tuple[Tensor, ...] | dict[str, Tensor]


@dataclass(frozen=True)
class Batch:
    """Rows of data for each of K nets, [K, B, ·]: inputs for the net, targets for the likelihood.

    Where the nets' rows differ in shape, x and y are the first net's, [1, B, ·], and `others` has a batch of such for
    each of the rest.
    """

    x: Inputs
    y: Tensor
    others: tuple[Batch, ...] = ()


def map_inputs(x: Inputs, f: Callable[[Tensor], Tensor]) -> Inputs:
    """Apply f to every tensor of the inputs."""
    if isinstance(x, dict):
        return {k: f(v) for k, v in x.items()}
    return tuple(f(v) for v in x) if isinstance(x, tuple) else f(x)


def named_tensors(x: Inputs) -> list[tuple[str, Tensor]]:
    """Every tensor of the inputs with a name for it."""
    if isinstance(x, dict):
        return [(f"x[{k!r}]", v) for k, v in x.items()]
    return [(f"x[{i}]", v) for i, v in enumerate(x)] if isinstance(x, tuple) else [("x", x)]


def row_count(x: Inputs) -> int:
    """How many rows there are."""
    return named_tensors(x)[0][1].shape[0]


def take_rows(x: Inputs, index: Tensor | slice | int) -> Inputs:
    """The rows at an index."""
    return map_inputs(x, lambda t: t[index])


def net_rows(batch: Batch, net: int) -> tuple[Inputs, Tensor]:
    """One net's rows of a batch [B, ·]."""
    if batch.others and net > 0:
        return net_rows(batch.others[net - 1], 0)
    return take_rows(batch.x, net), batch.y[net]


def stack_inputs(inputs: Sequence[Any]) -> Inputs:
    """Rows of several nets or draws as one [K, B, ·]."""
    if isinstance(inputs[0], dict):
        return {k: torch.stack([x[k] for x in inputs]) for k in inputs[0]}
    if isinstance(inputs[0], tuple):
        return tuple(torch.stack(parts) for parts in zip(*inputs, strict=True))
    return torch.stack(list(inputs))


def first_rows(x: Inputs, number: int) -> Inputs:
    """The first `number` rows, repeated if there are fewer."""
    return map_inputs(x, lambda t: t[torch.arange(number, device=t.device) % t.shape[0]])


def as_tensor(value: Any, name: str) -> Tensor:
    """An array, list or tensor as a tensor."""
    if isinstance(value, Tensor):
        return value
    try:
        return torch.from_numpy(np.array(value))
    except (TypeError, ValueError) as error:
        raise BadInput(f"{name} is a {type(value).__name__} that is no numeric array: {error}") from None


def as_inputs(x: Any, like: Tensor) -> Inputs:
    """Inputs for a net whose weights are `like`: tensors, on its device, floating ones of its dtype, checked."""
    if isinstance(x, dict):
        inputs: Inputs = {str(k): as_tensor(v, f"x[{k!r}]") for k, v in x.items()}
    elif isinstance(x, tuple):
        inputs = tuple(as_tensor(v, f"x[{i}]") for i, v in enumerate(x))
    else:
        inputs = as_tensor(x, "x")
    named_inputs = named_tensors(inputs)
    parts = x.values() if isinstance(x, dict) else x if isinstance(x, tuple) else [x]
    # Arrays are brought to the net's dtype; a tensor's dtype is its owner's decision.
    tensor_names = {name for (name, _), part in zip(named_inputs, parts, strict=True) if isinstance(part, Tensor)}
    if not named_inputs:
        raise BadInput("x is empty: it must hold at least one tensor")
    for name, tensor in named_inputs:
        if tensor.dim() == 0 or tensor.shape[0] == 0:
            raise BadInput(f"{name} has shape {tuple(tensor.shape)} and so no rows; give at least one row of data")
        if tensor.shape[0] != named_inputs[0][1].shape[0]:
            raise BadInput(
                f"{name} has {tensor.shape[0]} rows but {named_inputs[0][0]} has {named_inputs[0][1].shape[0]}"
            )
        if tensor.dtype.is_floating_point and tensor.dtype != like.dtype and name in tensor_names:
            raise BadInput(
                f"{name} is {tensor.dtype} but the net's weights are {like.dtype}; bring them to one dtype, "
                f"e.g. {name}.to({like.dtype})"
            )
        require_finite(name, tensor)
    return map_inputs(inputs, lambda t: t.to(like) if t.dtype.is_floating_point else t.to(like.device))


@contextmanager
def explain_input_errors(x: Inputs, autocast: torch.dtype | None = None) -> Iterator[None]:
    """Say what the net was given where it cannot run on it."""
    try:
        yield
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        if isinstance(error, DoxaError):
            raise
        inputs_text = ", ".join(f"{name} {tuple(t.shape)} {t.dtype}" for name, t in named_tensors(x))
        autocast_note = "" if autocast is None else f" in {autocast}; if it runs without autocast=, leave that out"
        raise BadInput(f"the net cannot run on {inputs_text} (first axis: rows){autocast_note}: {error}") from error


def require_finite(name: str, tensor: Tensor) -> None:
    """Refuse NaN and infinity, and say where the first one is."""
    if not tensor.dtype.is_floating_point or bool(tensor.isfinite().all()):
        return
    bad = ~tensor.isfinite()
    position = tuple(int(i) for i in bad.nonzero()[0])
    raise BadInput(
        f"{name} holds {int(bad.sum())} values that are NaN or infinite, the first at {list(position)}; "
        "drop or fill those rows before fitting"
    )


def as_target(y: Any, like: Tensor) -> Tensor:
    """Targets as a checked tensor on the device of the weights, real ones in their dtype."""
    target = as_tensor(y, "y")
    if target.dim() == 0 or target.shape[0] == 0:
        raise BadInput(f"y has shape {tuple(target.shape)} and so no rows; give at least one")
    require_finite("y", target)
    if target.dtype.is_floating_point and target.dtype != like.dtype:
        if isinstance(y, Tensor):
            raise BadInput(f"y is {target.dtype} but the net's weights are {like.dtype}; bring them to one dtype")
        target = target.to(like.dtype)
    return target.to(like.device)


def as_pair(data: Any, like: Tensor, name: str) -> tuple[Inputs, Tensor]:
    """(x, y) from a pair of arrays or tensors, checked against each other."""
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise BadInput(f"{name} must be a pair (x, y) of arrays or tensors; got {type(data).__name__}")
    x, y = as_inputs(data[0], like), as_target(data[1], like)
    if row_count(x) != y.shape[0]:
        raise BadInput(f"{name}: x has {row_count(x)} rows but y has {y.shape[0]}")
    return x, y


def concat_batches(batches: list[Any]) -> tuple[Any, Any]:
    """All batches (x, y) of a loader as one pair."""
    if not batches or not all(isinstance(p, tuple | list) and len(p) == 2 for p in batches):
        raise BadInput("the validation DataLoader must yield pairs (x, y), and at least one")
    inputs = [batch[0] for batch in batches]
    y = torch.cat([as_tensor(batch[1], "y") for batch in batches])
    if isinstance(inputs[0], dict):
        return {k: torch.cat([as_tensor(x[k], "x") for x in inputs]) for k in inputs[0]}, y
    if isinstance(inputs[0], tuple | list):
        return tuple(torch.cat([as_tensor(p, "x") for p in column]) for column in zip(*inputs, strict=True)), y
    return torch.cat([as_tensor(x, "x") for x in inputs]), y
