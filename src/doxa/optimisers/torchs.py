"""Any optimiser of torch's, one for each net."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from doxa.contracts import Moment, Schedule
from doxa.engine.context import StepContext
from doxa.engine.contracts import Gradient, State
from doxa.engine.recipes import empty_gradients, group_indices, materialised
from doxa.errors import BadInput, BrokenFile

MakeOptimiser = Callable[[Sequence[Tensor]], torch.optim.Optimizer]


@dataclass(frozen=True)
class Torchs:
    """Whatever `make` makes of a net's tensors; with `own_rates` it keeps the learning rates that it was made with."""

    make: MakeOptimiser
    own_rates: bool = False

    def start(self, gradient: Gradient) -> TorchStepper:
        """One for each net."""
        return TorchStepper(self.make, gradient, self.own_rates)


class TorchStepper:
    """Optimisers that torch or its user has made, each stepped with the finished gradients of its own net.

    A net's tensors are vectors, its rows of the gradient's parameters: what an optimiser takes over all of a tensor, a
    norm or a root mean square, never mixes nets. A parameter that rests while others step has no gradient then.
    """

    eager = "the optimiser is torch's; doxa.optimisers can be"

    def __init__(self, make: MakeOptimiser, gradient: Gradient, own_rates: bool) -> None:
        self.own_rates = own_rates
        self.names = [p.name for p in gradient.parameters]
        self.gradients = empty_gradients(gradient)
        _, self.groups = group_indices(gradient)
        nets = len(gradient.parameters[0].values)
        self.tensors = [[p.values[k].requires_grad_() for p in gradient.parameters] for k in range(nets)]
        self.optimisers = [_make_optimiser(make, net_tensors) for net_tensors in self.tensors]

    def schedules(self) -> dict[str, Sequence[Schedule]]:
        return {"rate": [partial(_first_rate, optimiser) for optimiser in self.optimisers]} if self.own_rates else {}

    def numbers(self, count: int) -> tuple[float, ...]:
        return ()

    def step(self, gradient: Gradient, context: StepContext) -> None:
        assert context.exact is not None
        materialised(gradient, context, self.gradients)
        for k in range(len(self.optimisers)):
            self._step(k, [float(context.exact[self.groups[name]][k]) for name in self.names])

    def _step(self, net: int, rates: Sequence[float]) -> None:
        if max(rates) < 0:  # a negative one rests
            return
        for tensor, name, rate in zip(self.tensors[net], self.names, rates, strict=True):
            tensor.grad = self.gradients[name][net] if rate >= 0 else None
        optimiser = self.optimisers[net]
        if not self.own_rates:
            for group in optimiser.param_groups:
                group["lr"] = max(rates)
        optimiser.step()

    def state(self) -> State:
        """By net, parameter and name; it is there after the first step."""
        states = dict(self._named_states())
        tensors = {name: v for name, v in states.items() if isinstance(v, Tensor)}
        numbers = {name: v for name, v in states.items() if name not in tensors}
        for name, value in numbers.items():
            if not (value is None or isinstance(value, bool | int | float)):
                raise BadInput(f"the optimiser's {name} is a {type(value).__name__}, which cannot be saved exactly")
        return State(tensors, numbers=numbers)

    def load(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        states: list[dict[int, dict[str, Any]]] = [{} for _ in self.optimisers]
        for name, value in (*tensors.items(), *numbers.items()):
            net, index, field = _parse_state_name(name, len(states))
            states[net].setdefault(index, {})[field] = value
        for optimiser, state in zip(self.optimisers, states, strict=True):
            _load(optimiser, state)

    def _named_states(self) -> Iterator[tuple[str, Any]]:
        for net, optimiser in enumerate(self.optimisers):
            for index, state in optimiser.state_dict()["state"].items():
                for name, value in state.items():
                    yield f"{net}.{index}.{name}", value


def _first_rate(optimiser: torch.optim.Optimizer, moment: Moment) -> float:
    """The first group's, as an optimiser has it."""
    return float(optimiser.param_groups[0]["lr"])


def _make_optimiser(make: MakeOptimiser, tensors: Sequence[Tensor]) -> torch.optim.Optimizer:
    """A net's optimiser, or why it cannot be one."""
    try:
        optimiser = make(list(tensors))
    except ValueError as error:
        shapes = ", ".join(str(tuple(t.shape)) for t in tensors)
        raise BadInput(
            f"the optimiser does not take a net's weights, which are flat vectors {shapes}: {error}"
        ) from error
    if not isinstance(optimiser, torch.optim.Optimizer):
        raise BadInput(
            f"optimiser must make a torch optimiser from a list of tensors; it made a {type(optimiser).__name__}"
        )
    if isinstance(optimiser, torch.optim.LBFGS):
        raise BadInput("LBFGS evaluates its loss many times a step; choose an optimiser that needs no closure")
    return optimiser


def _load(optimiser: torch.optim.Optimizer, state: Mapping[int, Mapping[str, Any]]) -> None:
    """Hand an optimiser its state, by parameter and name, to the bit."""
    optimiser.load_state_dict(
        {**optimiser.state_dict(), "state": {i: dict(parameter_state) for i, parameter_state in state.items()}}
    )
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
    for i, parameter_state in state.items():
        loaded = optimiser.state[parameters[i]]
        # torch brings what it loads to the parameters' dtype, though some of its optimisers keep numbers in another.
        loaded.update({k: v.to(loaded[k].device) for k, v in parameter_state.items() if isinstance(v, Tensor)})


def _parse_state_name(name: str, nets: int) -> tuple[int, int, str]:
    """Net, parameter and name of what was saved."""
    net, _, rest = name.partition(".")
    index, _, field = rest.partition(".")
    if not (net.isdecimal() and index.isdecimal() and field and int(net) < nets):
        raise BrokenFile(f"the checkpoint's optimiser has a {name!r}: it was written by another version of Doxa")
    return int(net), int(index), field
