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
from doxa.engine.recipes import empty_gradients, group_numbers, materialised
from doxa.errors import BadInput, BrokenFile

Make = Callable[[Sequence[Tensor]], torch.optim.Optimizer]


@dataclass(frozen=True)
class Torchs:
    """Whatever `make` makes of a net's tensors; with `own_rates` it keeps the learning rates that it was made with."""

    make: Make
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

    def __init__(self, make: Make, gradient: Gradient, own_rates: bool) -> None:
        self.own_rates = own_rates
        self.names = [p.name for p in gradient.parameters]
        self.slopes = empty_gradients(gradient)
        _, self.groups = group_numbers(gradient)
        nets = len(gradient.parameters[0].values)
        self.tensors = [[p.values[k].requires_grad_() for p in gradient.parameters] for k in range(nets)]
        self.made = [_made(make, own) for own in self.tensors]

    def schedules(self) -> dict[str, Sequence[Schedule]]:
        return {"rate": [partial(_rate, made) for made in self.made]} if self.own_rates else {}

    def numbers(self, count: int) -> tuple[float, ...]:
        return ()

    def step(self, gradient: Gradient, context: StepContext) -> None:
        assert context.exact is not None
        materialised(gradient, context, self.slopes)
        for k in range(len(self.made)):
            self._step(k, [float(context.exact[self.groups[name]][k]) for name in self.names])

    def _step(self, net: int, rates: Sequence[float]) -> None:
        if max(rates) < 0:  # a negative one rests
            return
        for tensor, name, rate in zip(self.tensors[net], self.names, rates, strict=True):
            tensor.grad = self.slopes[name][net] if rate >= 0 else None
        made = self.made[net]
        if not self.own_rates:
            for group in made.param_groups:
                group["lr"] = max(rates)
        made.step()

    def state(self) -> State:
        """By net, parameter and name; it is there after the first step."""
        found = dict(self._each())
        tensors = {name: v for name, v in found.items() if isinstance(v, Tensor)}
        numbers = {name: v for name, v in found.items() if name not in tensors}
        for name, value in numbers.items():
            if not (value is None or isinstance(value, bool | int | float)):
                raise BadInput(f"the optimiser's {name} is a {type(value).__name__}, which cannot be saved exactly")
        return State(tensors, numbers=numbers)

    def load(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        states: list[dict[int, dict[str, Any]]] = [{} for _ in self.made]
        for name, value in (*tensors.items(), *numbers.items()):
            net, index, field = _parsed(name, len(states))
            states[net].setdefault(index, {})[field] = value
        for made, state in zip(self.made, states, strict=True):
            _load(made, state)

    def _each(self) -> Iterator[tuple[str, Any]]:
        for k, made in enumerate(self.made):
            for i, own in made.state_dict()["state"].items():
                for name, value in own.items():
                    yield f"{k}.{i}.{name}", value


def _rate(made: torch.optim.Optimizer, moment: Moment) -> float:
    """The first group's, as an optimiser has it."""
    return float(made.param_groups[0]["lr"])


def _made(make: Make, tensors: Sequence[Tensor]) -> torch.optim.Optimizer:
    """A net's optimiser, or why it cannot be one."""
    try:
        made = make(list(tensors))
    except ValueError as error:
        shapes = ", ".join(str(tuple(t.shape)) for t in tensors)
        raise BadInput(
            f"the optimiser does not take a net's weights, which are flat vectors {shapes}: {error}"
        ) from error
    if not isinstance(made, torch.optim.Optimizer):
        raise BadInput(f"optimiser must make a torch optimiser from a list of tensors; it made a {type(made).__name__}")
    if isinstance(made, torch.optim.LBFGS):
        raise BadInput("LBFGS evaluates its loss many times a step; choose an optimiser that needs no closure")
    return made


def _load(made: torch.optim.Optimizer, state: Mapping[int, Mapping[str, Any]]) -> None:
    """Hand an optimiser its state, by parameter and name, to the bit."""
    made.load_state_dict({**made.state_dict(), "state": {i: dict(own) for i, own in state.items()}})
    parameters = [p for group in made.param_groups for p in group["params"]]
    for i, own in state.items():
        loaded = made.state[parameters[i]]
        # torch brings what it loads to the parameters' dtype, though some of its optimisers keep numbers in another.
        loaded.update({k: v.to(loaded[k].device) for k, v in own.items() if isinstance(v, Tensor)})


def _parsed(name: str, nets: int) -> tuple[int, int, str]:
    """Net, parameter and name of what was saved."""
    net, _, rest = name.partition(".")
    index, _, field = rest.partition(".")
    if not (net.isdecimal() and index.isdecimal() and field and int(net) < nets):
        raise BrokenFile(f"the checkpoint's optimiser has a {name!r}: it was written by another version of Doxa")
    return int(net), int(index), field
