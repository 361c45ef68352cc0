"""A weight that grows at the start of the run."""

from __future__ import annotations

from dataclasses import dataclass, field

from doxa.contracts import Moment, Schedule
from doxa.errors import BadInput, require_positive
from doxa.kl_weights.uniform import Uniform


@dataclass(frozen=True)
class Annealed:
    """Another schedule, let in little by little over the first epochs: the data speak before the prior does.

    weight = ramp · of(moment),  ramp = start + (1 − start) · min(1, k / (epochs · M))

    k counts steps from 0, M is the minibatches of an epoch, `epochs` may be a fraction.
    Bowman et al. (2016), Generating sentences from a continuous space.
    """

    epochs: float
    start: float = 0.0
    of: Schedule = field(default_factory=Uniform)

    def __post_init__(self) -> None:
        require_positive("epochs", self.epochs)
        if not 0 <= self.start <= 1:
            raise BadInput(f"start must lie between 0 and 1, got {self.start}")
        if not callable(self.of):
            raise BadInput(f"of must be a schedule such as kl_weights.uniform(), got {self.of!r}")

    def __call__(self, moment: Moment) -> float:
        progress = min(1.0, moment.step / (self.epochs * moment.batches))
        return (self.start + (1 - self.start) * progress) * self.of(moment)


annealed = Annealed
EXAMPLES = {"annealed": (Annealed(2.5, start=0.1),)}
