"""Stochastic gradient Langevin dynamics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from doxa.contracts import Moment, Schedule
from doxa.engine.context import StepContext
from doxa.engine.contracts import WEIGHTS, Gradient, State
from doxa.engine.recipes import empty_gradients, group_indices
from doxa.errors import BadInput, require_from_zero
from doxa.random import streams
from doxa.random.philox import fill_normals

Temperature = float | Schedule


@dataclass(frozen=True)
class Langevin:
    """Steps along the gradient with as much noise as makes weights samples of the posterior to the power 1/T.

    w ← w − rate · g + √(2 · rate · T / N) · ξ,  ξ ~ N(0, 1),  g the gradient of the free energy a row

    `rate` is that of gradient descent; Welling and Teh's step size is ε = 2 · rate / N. Point estimates among the
    parameters get no noise. `temperature` is a number or a schedule, one for all nets or one for each.
    Welling & Teh (2011), Bayesian learning via stochastic gradient Langevin dynamics.
    """

    temperature: Temperature | tuple[Temperature, ...] = 1.0

    def __post_init__(self) -> None:
        for temperature in self.temperature if isinstance(self.temperature, tuple) else (self.temperature,):
            if not callable(temperature):
                require_from_zero("temperature", temperature)

    def start(self, gradient: Gradient) -> LangevinStepper:
        """Langevin dynamics of a gradient's parameters, which must be weights."""
        for p in gradient.parameters:
            if p.role != WEIGHTS:
                raise BadInput(
                    f"Langevin noise makes samples of weights, and {p.name!r} holds {p.role}: use it with "
                    "doxa.learners.langevin or another learner of points, not with one that learns a spread"
                )
        nets = len(gradient.parameters[0].values)
        temperatures = self.temperature if isinstance(self.temperature, tuple) else (self.temperature,) * nets
        if len(temperatures) != nets:
            raise BadInput(
                f"{len(temperatures)} temperatures were given for {nets} nets: give one for all, or one for each"
            )
        return LangevinStepper(
            [
                CheckedTemperature(temperature) if callable(temperature) else ConstantTemperature(temperature)
                for temperature in temperatures
            ],
            gradient,
        )


@dataclass(frozen=True)
class ConstantTemperature:
    """A temperature that stays; zero is gradient descent."""

    value: float

    def __call__(self, moment: Moment) -> float:
        return self.value


@dataclass(frozen=True)
class CheckedTemperature:
    """A schedule of temperatures, none of which may be below zero."""

    schedule: Schedule

    def __call__(self, moment: Moment) -> float:
        temperature = float(self.schedule(moment))
        require_from_zero(f"the temperature at step {moment.step}", temperature)
        return temperature


class LangevinStepper:
    """Chains, one a net; all that they remember is where they are."""

    eager = None

    def __init__(self, temperatures: Sequence[Schedule], gradient: Gradient) -> None:
        self.temperatures = temperatures
        self.values = {p.name: p.values for p in gradient.parameters}
        self.gradients = empty_gradients(gradient)
        self.noise = {name: torch.empty_like(v) for name, v in self.values.items()}
        _, self.groups = group_indices(gradient)

    def schedules(self) -> dict[str, Sequence[Schedule]]:
        return {"temperature": self.temperatures}

    def numbers(self, count: int) -> tuple[float, ...]:
        return ()

    @torch.no_grad()
    def step(self, gradient: Gradient, context: StepContext) -> None:
        temperature = context.numbers["temperature"]
        for recipe in gradient.slopes(context):
            recipe.fill(self.gradients)
            for name in recipe.parameters:
                group, span = self.groups[name], recipe.span
                rate, awake = context.rates[group], context.active(group)
                update = rate[:, None] * self.gradients[name][:, span]
                if recipe.random:
                    noise = self.noise[name][:, span]
                    # Parameters of several names have streams of their own, one after the other.
                    number = streams.LANGEVIN_NOISE + list(self.values).index(name)
                    fill_normals(noise, context.stream.with_number(number), span.start or 0)
                    update -= (2 * rate.clamp_min(0) * temperature / context.size).sqrt()[:, None] * noise
                self.values[name][:, span] -= torch.where(awake, update, 0)

    def state(self) -> State:
        return State()

    def load(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        pass


langevin = Langevin
EXAMPLES = {"langevin": (Langevin(), Langevin(0.5))}
