"""Any optimiser of torch's, one for each net."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from doxa.contracts import Now, Training
from doxa.errors import BadInput, BrokenFile

Make = Callable[[Sequence[Tensor]], torch.optim.Optimizer]


class TorchAtWork:
    """Optimisers that torch or its user has made, each stepped with the finished gradients of its own net.

    A net's tensors are vectors, its rows of the training's parameters: what an optimiser takes over all of a tensor, a
    norm or a root mean square, never mixes nets.
    """

    def __init__(self, make: Make, training: Training, own_rates: bool) -> None:
        self.training, self.own_rates = training, own_rates
        self.tensors = [[p.detach()[k].requires_grad_() for p in training.parameters] for k in range(training.nets)]
        self.made = [_made(make, own) for own in self.tensors]

    def corrections(self, number: int) -> tuple[float, float]:
        """They keep their own."""
        return 1.0, 1.0

    def step(self, now: Now, rates: Tensor, corrections: tuple[float, float] | Tensor) -> None:
        self.training.fill_gradients(now)
        for k, rate in enumerate(rates.tolist()):
            if rate >= 0:  # a negative one rests
                self._step(k, rate)

    def _step(self, net: int, rate: float) -> None:
        for tensor, p in zip(self.tensors[net], self.training.parameters, strict=True):
            tensor.grad = None if p.grad is None else p.grad[net]
        made = self.made[net]
        if not self.own_rates:
            for group in made.param_groups:
                group["lr"] = rate
        made.step()

    @property
    def rates(self) -> list[float]:
        """Of each net, the first group's, as its optimiser has it."""
        return [float(made.param_groups[0]["lr"]) for made in self.made]

    def state(self) -> dict[str, Tensor]:
        """Their tensors, by net, parameter and name; they are there after the first step."""
        return {name: v for name, v in self._each() if isinstance(v, Tensor)}

    def numbers(self) -> dict[str, Any]:
        """What else they remember."""
        found = {name: v for name, v in self._each() if not isinstance(v, Tensor)}
        for name, value in found.items():
            if not (value is None or isinstance(value, bool | int | float)):
                raise BadInput(f"the optimiser's {name} is a {type(value).__name__}, which cannot be saved exactly")
        return found

    def load(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """Go on where a state was saved."""
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
