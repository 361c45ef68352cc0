"""A colder or a warmer posterior."""

from __future__ import annotations

from dataclasses import dataclass, field

from doxa.contracts import Moment, Schedule
from doxa.errors import BadInput, require_positive
from doxa.kl_weights.uniform import Uniform


@dataclass(frozen=True)
class Tempered:
    """Another schedule times a temperature: below 1 the data count for more than they are, above 1 for less.

    weight = temperature · of(moment);  the target is p(w | D)_T ∝ p(w) p(D | w)^(1 / temperature)

    Wenzel et al. (2020), How good is the Bayes posterior in deep neural networks really?
    """

    temperature: float
    of: Schedule = field(default_factory=Uniform)

    def __post_init__(self) -> None:
        require_positive("temperature", self.temperature)
        if not callable(self.of):
            raise BadInput(f"of must be a schedule such as kl_weights.uniform(), got {self.of!r}")

    def __call__(self, moment: Moment) -> float:
        return self.temperature * self.of(moment)


tempered = Tempered
EXAMPLES = {"tempered": (Tempered(0.1),)}
