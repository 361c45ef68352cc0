"""Any optimiser of torch's, for one net or nets that share a rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from doxa.contracts import Now, Training
from doxa.errors import BadInput

Make = Callable[[Sequence[Tensor]], torch.optim.Optimizer]


class TorchAtWork:
    """An optimiser that torch or its user has made, stepped with finished gradients."""

    def __init__(self, make: Make, training: Training, own_rates: bool) -> None:
        self.training, self.own_rates = training, own_rates
        made = make(list(training.parameters))
        if not isinstance(made, torch.optim.Optimizer):
            raise BadInput(
                f"optimiser must make a torch optimiser from a list of tensors; it made a {type(made).__name__}"
            )
        if isinstance(made, torch.optim.LBFGS):
            raise BadInput("LBFGS evaluates its loss many times a step; choose an optimiser that needs no closure")
        self.made = made

    def corrections(self, number: int) -> tuple[float, float]:
        """It keeps its own."""
        return 1.0, 1.0

    def step(self, now: Now, rates: Tensor, corrections: tuple[float, float] | Tensor) -> None:
        if not self.own_rates:
            # Who rests has a rate of −1; torch knows one for all. Where it drifts to does not matter: its best is kept.
            for group in self.made.param_groups:
                group["lr"] = float(rates.max())
        self.training.fill_gradients(now)
        self.made.step()

    @property
    def rate(self) -> float:
        """The first group's, as the optimiser has it."""
        return float(self.made.param_groups[0]["lr"])

    def state(self) -> dict[str, Tensor]:
        """Its tensors, by name; they are there after the first step."""
        return {f"{i}.{n}": v for i, n, v in self._each() if isinstance(v, Tensor)}

    def numbers(self) -> dict[str, Any]:
        """What else it remembers."""
        found = {f"{i}.{n}": v for i, n, v in self._each() if not isinstance(v, Tensor)}
        for name, value in found.items():
            if not (value is None or isinstance(value, bool | int | float)):
                raise BadInput(f"the optimiser's {name} is a {type(value).__name__}, which cannot be saved exactly")
        return found

    def load(self, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
        """Go on where a state was saved."""
        state: dict[int, dict[str, Any]] = {}
        for name, value in (*tensors.items(), *numbers.items()):
            index, field = name.split(".", 1)
            state.setdefault(int(index), {})[field] = value
        self.made.load_state_dict({**self.made.state_dict(), "state": state})

    def _each(self) -> list[tuple[int, str, Any]]:
        return [(i, n, v) for i, s in self.made.state_dict()["state"].items() for n, v in s.items()]
