"""Whether nets' parameters are numbers that anything can be learned from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch

from doxa.contracts import Problem
from doxa.engine.contracts import WEIGHTS, Gradient, Parameter, State
from doxa.flat import RHO_LIMIT
from doxa.weights.layout import Layout, non_finite_message

CHECKED = {torch.float64, torch.float32, torch.float16, torch.bfloat16}


def parameters_in_range(gradient: Gradient) -> list[bool]:
    """Whether each net's parameters are so small that nothing can be wrong with them: one question for all.

    A GPU is slow to answer many.
    """
    extremes = [torch.aminmax(p.values.flatten(1), dim=1) for p in gradient.parameters]  # which are NaN where one is
    small = [(low > -RHO_LIMIT) & (high < RHO_LIMIT) for low, high in extremes]
    in_range: list[bool] = torch.stack(small).all(0).tolist()
    return in_range


def net_trouble(gradient: Gradient, layout: Layout, net: int) -> str | None:
    """What has gone wrong with a net's parameters, in words; None while all is well."""
    troubles = (_parameter_trouble(p, layout, net) for p in gradient.parameters)
    # What ran away is told before what it made of the weights.
    return next((message for message in sorted(filter(None, troubles), key=lambda text: "ran away" not in text)), None)


def state_trouble(
    gradient: Gradient, problem: Problem, resting: Sequence[bool], states: Mapping[str, State]
) -> str | None:
    """What forbids going on from states of a run's parts, in words; nets that rest may hold anything.

    So may buffers that hold NaN in the net as it was built.
    """
    layout = problem.layout
    in_range = parameters_in_range(gradient)
    awake = (net for net, rests in enumerate(resting) if not rests and not in_range[net])
    trouble = next((message for net in awake if (message := net_trouble(gradient, layout, net))), None)
    if trouble is not None or any(resting):  # whose rows are whose, only the parts know
        return trouble
    tensors = {f"{part}.{name}": t for part, state in states.items() for name, t in state.tensors.items()}
    nan_buffers = tuple(f"buffers.{name}" for name, b in problem.net.named_buffers() if bool(b.isnan().any()))
    # Samples have buffers behind their weights, without names.
    tensors = {
        name: t.detach()
        for name, t in tensors.items()
        if t.dtype in CHECKED
        and t.numel()
        and not name.endswith(nan_buffers)
        and not (nan_buffers and name.startswith("collector."))
    }
    device = gradient.parameters[0].values.device  # some steppers count on the CPU
    flags = [t.aminmax().min.isnan().to(device) for t in tensors.values()]
    bad = [name for name, flag in zip(tensors, torch.stack(flags).tolist(), strict=True) if flag] if flags else []
    return f"not a number any more: {', '.join(bad)}" if bad else None


def _parameter_trouble(parameter: Parameter, layout: Layout, net: int) -> str | None:
    row = parameter.values[net]
    if parameter.limit is not None and not bool((row.abs() < parameter.limit).all()):
        return f"the {parameter.role} ran away: {parameter.name} reaches {float(row.abs().max()):.3g}"
    if (
        parameter.role == WEIGHTS
        and bool((row.abs() > _largest_weight(row.dtype)).any())
        and bool(row.isfinite().all())
    ):
        return f"the weights ran away: they reach {float(row.abs().max()):.3g}"
    if parameter.role == WEIGHTS and len(row) == layout.size:
        return non_finite_message(layout, row)
    return None if bool(row.isfinite().all()) else f"the {parameter.role} are no longer finite"


def _largest_weight(dtype: torch.dtype) -> float:
    """Where squares overflow nothing is left to learn; numbers of a few bits get there without harm."""
    largest = torch.finfo(dtype).max
    return math.sqrt(largest) if largest > 1e30 else largest
