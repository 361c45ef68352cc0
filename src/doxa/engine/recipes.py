"""The kinds of recipes that a gradient offers: rows as they are, and the slopes of a Gaussian, to be fused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from doxa.flat import GaussianGradientInputs, fill_gradients

if TYPE_CHECKING:
    from doxa.engine.context import StepContext
    from doxa.engine.contracts import Gradient, Recipe


class GradientRows(NamedTuple):
    """A gradient that is there: rows [K, n] of some columns of one parameter.

    `rate` [K] is a factor on the learning rate of these columns. `decay` [K] draws them towards zero: steppers whose
    step does not grow with the gradient take lr · decay of the values themselves, others add decay · values to it.
    """

    parameter: str
    span: slice
    random: bool
    rows: Tensor
    values: Tensor
    rate: Tensor | None = None
    decay: Tensor | None = None

    @property
    def parameters(self) -> tuple[str, ...]:
        return (self.parameter,)

    def fill(self, into: Mapping[str, Tensor]) -> None:
        gradient = self.rows if self.decay is None else self.rows + self.decay[:, None] * self.values
        into[self.parameter][:, self.span] = gradient if self.rate is None else self.rate[:, None] * gradient


class GaussianSlopes(NamedTuple):
    """What the gradients by mean and rho of N(mean, softplus(rho)²) are made of, KL included, not made yet."""

    span: slice
    slopes: GaussianGradientInputs
    random: bool = True

    @property
    def parameters(self) -> tuple[str, ...]:
        return "mean", "rho"

    def fill(self, into: Mapping[str, Tensor]) -> None:
        fill_gradients(self.slopes, into["mean"][:, self.span], into["rho"][:, self.span])


@torch.no_grad()
def materialised(
    gradient: Gradient, context: StepContext, into: Mapping[str, Tensor] | None = None
) -> Mapping[str, Tensor]:
    """The gradient of every parameter [K, n], by name: in rows that are given, or in new ones."""
    if into is None:
        into = empty_gradients(gradient)
    for recipe in gradient.slopes(context):
        recipe.fill(into)
    return into


def empty_gradients(gradient: Gradient) -> dict[str, Tensor]:
    """Rows for the gradient of every parameter."""
    return {p.name: torch.zeros_like(p.values) for p in gradient.parameters}


def as_gradient_rows(recipe: Recipe, values: Mapping[str, Tensor]) -> list[GradientRows]:
    """The gradient of each parameter of a recipe, made if it was not."""
    if isinstance(recipe, GradientRows):
        return [recipe]
    span, into = recipe.span, {name: torch.zeros_like(values[name]) for name in recipe.parameters}
    recipe.fill(into)
    return [
        GradientRows(name, span, recipe.random, into[name][:, span], values[name][:, span])
        for name in recipe.parameters
    ]


def group_indices(gradient: Gradient) -> tuple[Sequence[str], dict[str, int]]:
    """The groups of a gradient's parameters in order, by name, and the number of each parameter's."""
    names = list(dict.fromkeys(p.group.name for p in gradient.parameters))
    return names, {p.name: names.index(p.group.name) for p in gradient.parameters}
