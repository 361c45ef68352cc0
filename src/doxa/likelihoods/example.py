"""What the laws of likelihoods are tried on."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from doxa.contracts import Likelihood


@dataclass(frozen=True)
class Example:
    """A likelihood, the shape of a row's output, and every target that a row can have [V, ·]: None for all numbers."""

    likelihood: Likelihood
    outputs: tuple[int, ...]
    targets: Tensor | None = None
