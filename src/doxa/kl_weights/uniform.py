"""The same weight for every minibatch."""

from __future__ import annotations

from dataclasses import dataclass

from doxa.contracts import Moment


@dataclass(frozen=True)
class Uniform:
    """Every minibatch pays the same share of the KL: the true free energy.

    weight = 1,  that is β_i = 1/M for each of an epoch's M minibatches

    Graves (2011), Practical variational inference for neural networks.
    """

    def __call__(self, moment: Moment) -> float:
        return 1.0


uniform = Uniform
EXAMPLES = {"uniform": (Uniform(),)}
