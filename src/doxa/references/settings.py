"""What Hamiltonian Monte Carlo is told besides net, data and densities."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from doxa.errors import BadInput, require_from_zero, require_positive_number, require_share, require_whole


@dataclass(frozen=True)
class HMCSettings:
    """How many draws, how long the trajectories are, and what is adapted in the warm-up; what cannot be is refused."""

    draws: int = 200  # of each chain
    warmup: int = 500  # trajectories that are not kept
    steps: int = 32
    jitter: float = 0.5
    acceptance: float = 0.8
    step_size: float | None = None
    adapt_mass: bool = True
    thinning: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("draws", 1), ("warmup", 0), ("steps", 1), ("thinning", 1), ("seed", None)):
            object.__setattr__(self, name, require_whole(name, getattr(self, name), least))
        require_share("jitter", self.jitter)
        require_from_zero("acceptance", self.acceptance)
        if not 0 < self.acceptance < 1:
            raise BadInput(f"acceptance must lie between 0 and 1, e.g. 0.8; got {self.acceptance}")
        if self.step_size is not None:
            require_positive_number("step_size", self.step_size)
        elif self.warmup == 0:
            raise BadInput("without a warm-up nothing finds the step size: give step_size=, or a warmup of 100 or more")


def chain_numbers(chains: int | Sequence[int]) -> tuple[int, ...]:
    """The numbers of the chains that are run: the first so many, or those that are given."""
    numbers: list[Any]
    try:
        numbers = list(range(require_whole("chains", operator.index(chains))))  # type: ignore[arg-type]
    except TypeError:
        if isinstance(chains, str) or not isinstance(chains, Sequence | range):
            raise BadInput(f"chains must be how many, or the numbers of those to run; got {chains!r}") from None
        numbers = [require_whole("the number of a chain", number, 0) for number in chains]
    if not numbers or len(set(numbers)) < len(numbers):
        raise BadInput(f"chains must be one or more different ones; got {list(chains)!r:.80}")  # type: ignore[arg-type]
    return tuple(numbers)
