"""The seams of the engine: gradient × stepper × collector, a source of batches, and who watches over them. No logic.

Every part speaks of K nets; only the engine knows that an ensemble makes one belief of several.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from doxa.contracts import Batch, Estimate, Moment, Posterior, Prior, Problem, Schedule
from doxa.engine.context import StepContext
from doxa.random.philox import Stream


@dataclass(frozen=True)
class State:
    """All that a part remembers from step to step, by name: tensors by reference, at addresses that never change.

    `moving` are those that a step changes even for nets that rest, such as BatchNorm's running statistics: where a
    step is run for nothing, as before a recording, they are put back. `numbers` are plain JSON.
    """

    held: Mapping[str, Tensor] = field(default_factory=dict)
    moving: Mapping[str, Tensor] = field(default_factory=dict)
    numbers: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tensors(self) -> dict[str, Tensor]:
        return {**self.held, **self.moving}


@dataclass(frozen=True)
class Group:
    """Parameters that step together: at every step, or at the moments for which `active` is true."""

    name: str = "all"
    active: Callable[[Moment], bool] | None = None


# (step, what a stretch of its work comes to, stretches) -> what each came to; None for one that was lost.
Exchange = Callable[[int, Callable[[slice], Tensor], Sequence[slice]], list[Tensor | None]]

ALL = Group()
WEIGHTS, SCALES = "weights", "scales"


@dataclass(frozen=True, eq=False)
class Parameter:
    """What a stepper changes, in place: rows [K, n], one a net.

    `role` says what the numbers are: `weights` of the net, `scales` of a belief about them, or a word of the gradient's
    own. One that reaches `limit` has run away.
    """

    name: str
    values: Tensor
    role: str = WEIGHTS
    limit: float | None = None
    group: Group = ALL


@dataclass(frozen=True)
class CollectorSetup:
    """What a collector is told beforehand: how long the way is, whose nets go it, and where there is room on a disk."""

    problem: Problem
    steps: int  # in all
    epoch: int  # steps that make one
    folder: Path | None = None


class Recipe(Protocol):
    """The gradient of some columns of one or several parameters, or what it takes to make it; used once.

    A stepper that knows the kind may fuse making it with its step (doxa.engine.recipes has the kinds); any other lets
    it `fill` rows that it then steps along.
    """

    @property
    def parameters(self) -> tuple[str, ...]: ...

    @property
    def span(self) -> slice:
        """The columns, of every one of the parameters."""
        ...

    @property
    def random(self) -> bool:
        """Whether these are weights that vary; the others are point estimates."""
        ...

    def fill(self, into: Mapping[str, Tensor]) -> None:
        """Write the gradients [K, n] to the span of rows by parameter."""
        ...


class Beliefs(Protocol):
    """What is believed of K nets' weights at some values of a gradient's parameters."""

    @property
    def mean(self) -> Tensor:
        """[K, P]: the middle of what is believed."""
        ...

    @property
    def noise(self) -> dict[str, str]:
        """The noise that each weight was really learned with, by name."""
        ...

    def draw(self, stream: Stream) -> Tensor:
        """A draw of each net's weights [K, P], without a word from the CPU."""
        ...

    def posterior(self, net: int) -> Posterior:
        """One net's belief, which shares no memory with the training."""
        ...

    def buffers(self, net: int) -> tuple[dict[str, Tensor], ...]:
        """The net's buffers and frozen parameters, for each component of its posterior."""
        ...

    def complexities(self, nets: Sequence[int]) -> list[Estimate]:
        """KL(q‖p), or −log p(w) for a point estimate; 0 where there is no prior."""
        ...


class Gradient(Protocol):
    """How K nets are evaluated on a batch, and which way is down."""

    @property
    def parameters(self) -> Sequence[Parameter]: ...

    @property
    def eager(self) -> str | None:
        """Why its steps cannot be recorded, in words; None where they can."""
        ...

    def evaluate(self, batch: Batch, context: StepContext) -> Tensor:
        """Run all nets there and back, wholly or not at all; each one's mean NLL [K], without synchronising."""
        ...

    def slopes(self, context: StepContext, prior: bool = True) -> Sequence[Recipe]:
        """The gradient of the per-example free energy at what was evaluated last; without the prior, of the NLL."""
        ...

    def beliefs(self, at: Mapping[str, Tensor] | None = None) -> Beliefs:
        """What is believed at given values of the parameters, those they have now unless told otherwise."""
        ...

    def report(self, nets: Sequence[int]) -> list[dict[str, float]]:
        """What else an epoch's record should say of nets, by name."""
        ...

    def state(self) -> State: ...


@runtime_checkable
class SharedGradient(Protocol):
    """What a gradient has besides, whose evaluations several processes share."""

    exchange: Exchange


class Stepper(Protocol):
    """How parameters move along a gradient."""

    @property
    def eager(self) -> str | None:
        """Why its steps cannot be recorded, in words; None where they can."""
        ...

    def schedules(self) -> Mapping[str, Sequence[Schedule]]:
        """Schedules of its own, by name, one a net: they become the context's `numbers`; `rate` stands for lr."""
        ...

    def numbers(self, count: int) -> tuple[float, ...]:
        """What it wants to know at a group's step, counted from 1: they become the context's `scalars`."""
        ...

    def step(self, gradient: Gradient, context: StepContext) -> None:
        """Move the parameters of all nets that do not rest."""
        ...

    def state(self) -> State: ...

    def load(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """Go on where a state was saved."""
        ...


class Collector(Protocol):
    """What is kept of the way that parameters go, and made a belief of."""

    def moments(self, span: range) -> Collection[int]:
        """After which of these steps it wants to observe, between two of them.

        One that gives back the very span that it was asked about observes every step, as a part of it: where steps are
        recorded, it is recorded too, and may do nothing that cannot be.
        """
        ...

    def observe(self, context: StepContext) -> None:
        """Look at the parameters after a step, without synchronising."""
        ...

    def improved(self, nets: Sequence[int]) -> None:
        """These nets have just scored better on validation rows than ever before."""
        ...

    def finish(self, nets: Sequence[int], data: Callable[[], Iterator[Batch]]) -> None:
        """These nets learn no more: make of what was kept what there is to make, with passes over the data."""
        ...

    def beliefs(self) -> Beliefs:
        """What is believed by now."""
        ...

    def state(self) -> State: ...

    def load(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """Go on where a state was saved."""
        ...


@runtime_checkable
class DeclaresBest(Protocol):
    """What the settings of a collector have besides, where patience must ask before it goes back to the best epoch."""

    @property
    def has_best(self) -> bool:
        """Whether the state after one epoch can be the best; it can where settings do not say."""
        ...


class Source(Protocol):
    """Where batches come from: data, or a game. Its `period` is how many steps make a unit, which is never broken."""

    @property
    def period(self) -> int: ...

    @property
    def eager(self) -> str | None:
        """Why its units cannot be recorded, in words; None where they can."""
        ...

    def size(self, unit: int) -> int:
        """Rows of data that the KL is weighed against, N."""
        ...

    def form(self, unit: int) -> Hashable:
        """Units of one form are one recording."""
        ...

    def begin(self, unit: int) -> None:
        """What the CPU does before a unit."""
        ...

    def batch(self, context: StepContext) -> Batch | None:
        """The rows of a step, without a word from the CPU where it is recorded; None, and nobody learns."""
        ...

    def state(self) -> State: ...


class Monitor(Protocol):
    """Who watches over a run: what losses are added to, who rests, and what is said of an epoch when it ends."""

    @property
    def over(self) -> bool:
        """Whether everybody rests."""
        ...

    def resting(self) -> list[bool]:
        """Which nets rest [K]."""
        ...

    def add(self, losses: Tensor) -> None:
        """Take note of a step's losses [K], without synchronising."""
        ...

    def check(self, losses: Tensor, context: StepContext) -> StepContext:
        """Look at a step's losses where that costs nothing, before the parameters move; nets may be told to rest."""
        ...

    def end(self, numbers: Mapping[str, Tensor]) -> None:
        """A span of steps has ended; `numbers` [K] are those of its last: `lr`, and the stepper's own by name."""
        ...

    def state(self) -> State: ...

    def load(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """Go on where a state was saved."""
        ...


class Learner(Protocol):
    """A way to learn a posterior: frozen settings, a named recipe of gradient, stepper and collector."""

    @property
    def prior(self) -> Prior | None: ...

    @property
    def kl_weight(self) -> Schedule: ...

    @property
    def nets(self) -> int:
        """How many nets one belief takes."""
        ...

    @property
    def kind(self) -> tuple[Any, ...]:
        """What learners must have in common to work as one program."""
        ...

    def start(self, problem: Problem, fleet: Sequence[Any]) -> Gradient:
        """Set the learners of a fleet, of one kind all of them, to work: their gradient; `self` is the first."""
        ...

    def optimiser(self, fleet: Sequence[Any]) -> Any:
        """The stepper that it cannot do without, as settings; None leaves the choice to the caller."""
        ...

    def collector(self, fleet: Sequence[Any]) -> Any:
        """What is kept of the way, as settings of doxa.collectors."""
        ...
