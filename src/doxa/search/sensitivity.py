"""How much each weight moves the outputs, so that all may be moved alike: safe perturbations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

import torch
from torch import Tensor
from torch.func import grad, vmap

from doxa.contracts import Inputs
from doxa.data.rows import row_count, take_rows
from doxa.weights.layout import Layout

FLOOR = 1e-3  # of the root mean square: what moves nothing would otherwise be moved without bound
LEAST_OF_LARGEST = 1e-2  # of the largest sensitivity: the least that counts where tensors are rescaled by themselves
MAX_SLOPE_NUMBERS = 1 << 26  # numbers of slopes of single rows that are held at a time

# A net's outputs [B, ...] with given weights.
Forward = Callable[[Mapping[str, Tensor], Inputs], Tensor]


def s_sum(forward: Forward, layout: Layout, flat: Tensor, x: Inputs) -> Tensor:
    """The slope of the mean output by every weight [P], as long as all outputs' together.

    s = √Σ_k (mean_i ∂NN_k(x_i)/∂w)²

    One backward pass for each output. Slopes of rows that point in opposite directions cancel.
    Lehman et al. (2018), Safe mutations for deep and recurrent neural networks through output gradients.
    """
    leaves = {k: v.detach().requires_grad_() for k, v in layout.weights(flat).items()}
    with torch.enable_grad():
        means = forward(leaves, x).flatten(1).mean(0)
        total = torch.zeros_like(flat)
        for output in means:
            gradients = torch.autograd.grad(output, list(leaves.values()), retain_graph=True, allow_unused=True)
            total += _flatten_by_slot(layout, dict(zip(leaves, gradients, strict=True)), flat).square()
    return total.sqrt()


def s_abs(forward: Forward, layout: Layout, flat: Tensor, x: Inputs) -> Tensor:
    """The mean absolute slope of the outputs by every weight [P], as long as all outputs' together.

    s = √Σ_k (mean_i |∂NN_k(x_i)/∂w|)²

    Slopes of every row and output, none of which cancel: far dearer than `s_sum`.
    Lehman et al. (2018), Safe mutations for deep and recurrent neural networks through output gradients.
    """
    weights = {k: v.detach() for k, v in layout.weights(flat).items()}
    with torch.no_grad():
        outputs = forward(weights, take_rows(x, slice(0, 1))).flatten(1).shape[1]
    rows, total = row_count(x), torch.zeros_like(flat)
    step = max(1, MAX_SLOPE_NUMBERS // max(1, len(flat)))
    for k in range(outputs):

        def output(net_weights: Mapping[str, Tensor], row: Inputs, k: int = k) -> Tensor:
            return forward(net_weights, as_batch(row)).flatten()[k]

        sums = {name: torch.zeros_like(v) for name, v in weights.items()}
        for first in range(0, rows, step):
            row_gradients = vmap(grad(output), in_dims=(None, 0))(weights, take_rows(x, slice(first, first + step)))
            for name, slopes in row_gradients.items():
                sums[name] += slopes.abs().sum(0)
        total += (_flatten_by_slot(layout, sums, flat) / rows).square()
    return total.sqrt()


def as_batch(row: Inputs) -> Inputs:
    """One row as a batch of one."""
    if isinstance(row, dict):
        return {k: v.unsqueeze(0) for k, v in row.items()}
    return tuple(v.unsqueeze(0) for v in row) if isinstance(row, tuple) else row.unsqueeze(0)


def _flatten_by_slot(layout: Layout, parts: Mapping[str, Tensor | None], flat: Tensor) -> Tensor:
    """Slopes by name as one vector [P]; nothing where a weight has none."""
    flat_slopes = torch.zeros_like(flat)
    for slot in layout.slots:
        part = parts.get(slot.name)
        if part is not None:
            flat_slopes[slot.span] = part.reshape(prod(slot.shape))
    return flat_slopes


def safe_factors(sensitivity: Tensor) -> Tensor:
    """Factors of perturbations [P] that move the outputs alike, as long as before on average.

    ε_safe = ε / max(s, least), with E‖ε_safe‖² = E‖ε‖²

    The floor is a lower bound: weights that move nothing are moved far, not without bound.
    """
    least = FLOOR * sensitivity.square().mean().sqrt()
    factors = sensitivity.clamp_min(least.clamp_min(torch.finfo(sensitivity.dtype).tiny)).reciprocal()
    return factors / factors.square().mean().sqrt()


def safe_factors_by_tensor(sensitivity: Tensor, layout: Layout) -> Tensor:
    """The same for each tensor by itself [P], with sensitivities of no less than a hundredth of the largest of all.

    ε_safe = c_t ε / min(max(s / max s, 0.01), 1), with E‖ε_safe‖² = E‖ε‖² in every tensor t

    So a tensor's scale says how far its weights are moved, whatever other tensors do to the outputs.
    """
    largest = sensitivity.max().clamp_min(torch.finfo(sensitivity.dtype).tiny)
    factors = (sensitivity / largest).clamp(LEAST_OF_LARGEST, 1).reciprocal()
    for slot in layout.slots:
        factors[slot.span] /= factors[slot.span].square().mean().sqrt()
    return factors


def _sum_factors(forward: Forward, layout: Layout, flat: Tensor, x: Inputs) -> Tensor:
    return safe_factors(s_sum(forward, layout, flat, x))


def _abs_factors(forward: Forward, layout: Layout, flat: Tensor, x: Inputs) -> Tensor:
    return safe_factors(s_abs(forward, layout, flat, x))


def _sum_factors_by_tensor(forward: Forward, layout: Layout, flat: Tensor, x: Inputs) -> Tensor:
    return safe_factors_by_tensor(s_sum(forward, layout, flat, x), layout)


# What is asked for by name: factors of perturbations [P].
TABLE = {"sum": _sum_factors, "abs": _abs_factors, "sum_by_tensor": _sum_factors_by_tensor}
