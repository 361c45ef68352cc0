"""Whether nets' parameters are numbers that anything can be learned from."""

from __future__ import annotations

import torch

from doxa.engine.contracts import WEIGHTS, Gradient, Parameter
from doxa.flat import RHO_LIMIT
from doxa.weights.layout import Layout, non_finite_message


def parameters_in_range(gradient: Gradient) -> list[bool]:
    """Whether each net's parameters are so small that nothing can be wrong with them: one question for all.

    A GPU is slow to answer many.
    """
    small = [(p.values.abs() < RHO_LIMIT).flatten(1).all(1) for p in gradient.parameters]
    in_range: list[bool] = torch.stack(small).all(0).tolist()
    return in_range


def net_trouble(gradient: Gradient, layout: Layout, net: int) -> str | None:
    """What has gone wrong with a net's parameters, in words; None while all is well."""
    troubles = (_parameter_trouble(p, layout, net) for p in gradient.parameters)
    # What ran away is told before what it made of the weights.
    return next((message for message in sorted(filter(None, troubles), key=lambda text: "ran away" not in text)), None)


def _parameter_trouble(parameter: Parameter, layout: Layout, net: int) -> str | None:
    row = parameter.values[net]
    if parameter.limit is not None and not bool((row.abs() < parameter.limit).all()):
        return f"the {parameter.role} ran away: {parameter.name} reaches {float(row.abs().max()):.3g}"
    if parameter.role == WEIGHTS and len(row) == layout.size:
        return non_finite_message(layout, row)
    return None if bool(row.isfinite().all()) else f"the {parameter.role} are no longer finite"
