"""The types at which the rooms meet. No logic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, runtime_checkable

from torch import Tensor, nn

from doxa.data.rows import Batch, Inputs
from doxa.random.keys import Key
from doxa.weights.layout import Layout
from doxa.weights.probe import Uses

__all__ = [
    "Batch",
    "Centre",
    "ClosedFormPrior",
    "ContinuousPosterior",
    "Draw",
    "Estimate",
    "Inputs",
    "Likelihood",
    "Moment",
    "Posterior",
    "Prior",
    "Problem",
    "Record",
    "Schedule",
]

# Where a prior has its middle: a number, one per random weight [R], or a net (or its state dict) to believe in.
Centre = Any


@dataclass(frozen=True)
class Moment:
    """Where in the run a step stands: everything a schedule may depend on."""

    step: int  # counted over the whole run, from 0
    steps: int  # in the whole run
    batch: int  # within the epoch, from 0
    batches: int  # in an epoch

    @property
    def epoch(self) -> int:
        return self.step // self.batches


@dataclass(frozen=True)
class Estimate:
    """A number and its Monte-Carlo standard error (0 where it is exact)."""

    value: float
    error: float = 0.0


@runtime_checkable
class Prior(Protocol):
    """A density over one weight; the prior of a net is its product over the random weights."""

    def log_prob(self, w: Tensor) -> Tensor:
        """log p(w), elementwise."""
        ...

    def grad_log_prob(self, w: Tensor) -> Tensor:
        """d log p(w) / dw, elementwise."""
        ...


@dataclass(frozen=True)
class Draw:
    """One draw of a belief's weights, with all that must go with it into the net.

    The weights of the draws of one call sum to 1. `buffers` are those that this draw has of its own; where it has none,
    those of its component in the belief are its buffers.
    """

    weights: Tensor  # [P]
    component: int = 0
    weight: float = 1.0
    buffers: Mapping[str, Tensor] | None = None


@runtime_checkable
class Posterior(Protocol):
    """A distribution over the flat vector: its first `random` entries vary, the rest are point estimates."""

    @property
    def mean(self) -> Tensor:
        """[P]: the mean of every weight."""
        ...

    @property
    def scale(self) -> Tensor:
        """[R]: the standard deviation of every random weight."""
        ...

    @property
    def relevance(self) -> Tensor:
        """[R]: what pruning ranks by; signal-to-noise where the family has a noise to speak of."""
        ...

    @property
    def components(self) -> int:
        """How many sets of buffers a belief needs for it: one for each net that its draws are of."""
        ...

    @property
    def distinct(self) -> int | None:
        """How many different draws there are; None where there is no end to them."""
        ...

    def draws(self, samples: int, key: Key) -> Iterator[Draw]:
        """Coherent draws of the whole vector [P], about as many as were asked for."""
        ...

    def pruned(self, keep: Tensor) -> Posterior:
        """The same belief with every random weight outside `keep` [R] certainly zero."""
        ...


class ContinuousPosterior(Protocol):
    """What a posterior offers besides that knows its density, and with it its KL to any prior; not every one does."""

    def log_prob(self, w: Tensor) -> Tensor:
        """log q(w) of flat weights [..., P] over the random ones, [...] in float64."""
        ...


class ClosedFormPrior(Prior, Protocol):
    """A prior that also knows its KL from a Gaussian, so that a belief needs no draws for it."""

    def kl_from_gaussian(self, mean: Tensor, scale: Tensor, log_scale: Tensor) -> Tensor:
        """KL(N(mean, scale²)‖p) of each weight."""
        ...

    def add_kl_slopes(
        self, mean: Tensor, scale: Tensor, weight: float | Tensor, by_mean: Tensor, by_scale: Tensor
    ) -> None:
        """Add `weight` times the slopes of −E_q[log p(w)] by mean and scale; the entropy's are every prior's alike."""
        ...


class Likelihood(Protocol):
    """p(y | output): outputs may carry leading sample axes, [..., B, ·]."""

    discrete: ClassVar[bool]  # whether y is a label, and `mean` a probability

    def parameters(self, output: Tensor) -> dict[str, Tensor]:
        """Start values of what the likelihood itself learns, given an example of the net's output."""
        ...

    def check(self, output: Tensor, y: Tensor) -> Tensor:
        """The targets as `log_prob` wants them, or an error that says what is wrong with them."""
        ...

    def log_prob(self, output: Tensor, y: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """log p(y | output) of each row, [..., B]."""
        ...

    def mean(self, output: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """E[y | output]; class probabilities for classification."""
        ...

    def variance(self, output: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """Var[y | output], shaped as `mean`."""
        ...

    def quantile(
        self, output: Tensor, q: float, parameters: Mapping[str, Tensor], weights: Tensor | None = None
    ) -> Tensor:
        """The q-quantile over draws [S, B, ·] that the task calls for; each likelihood says which.

        `weights` [S] are given where draws do not count alike; so in `entropy`.
        """
        ...

    def entropy(
        self, output: Tensor, parameters: Mapping[str, Tensor], weights: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Over draws [S, B, ·]: the entropy of the mixture and the mean entropy of its parts, each [B]."""
        ...


@dataclass(frozen=True)
class Problem:
    """All that a learner is told: the net, what is random in it, the likelihood, and where each of K nets starts."""

    net: nn.Module
    layout: Layout
    uses: Uses
    likelihood: Likelihood
    start: Tensor  # [K, P]
    buffers: Mapping[str, Tensor]  # [K, ·] each
    seeds: tuple[Key, ...]  # K of them
    vectorized: bool  # whether the nets run as one program
    autocast: Any = None  # a torch dtype, or None

    def without_starts(self) -> Problem:
        """The same without its starts, which a gradient has no more use for."""
        return replace(self, start=self.start[:, :0].clone(), buffers={})


class Schedule(Protocol):
    """A number for each moment of a run: a learning rate, or a weight on the KL."""

    def __call__(self, moment: Moment) -> float: ...


@dataclass(frozen=True)
class Record:
    """How a belief came to be: settings and history, all of it plain JSON."""

    settings: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, float]] = field(default_factory=list)
