"""What collectors of weights have in common: whom they serve, and BatchNorm's statistics at weights nobody ran on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from doxa.contracts import Batch, Estimate, Posterior, Problem
from doxa.data.rows import rows_of
from doxa.engine.contracts import WEIGHTS, Beliefs, Gradient
from doxa.errors import BadInput
from doxa.random.philox import Stream
from doxa.weights.batch_norm import learns_batch_norm, refreshed_over
from doxa.weights.layout import learning_modes


def require_weights(gradient: Gradient, what: str) -> None:
    """Refuse a gradient that moves more than weights."""
    for p in gradient.parameters:
        if p.role != WEIGHTS:
            raise BadInput(
                f"{what} is one of weights, and {p.name!r} holds {p.role}: use it with doxa.learners.point or dropout"
            )


def require_some(steps: Collection[int], of: int, every: int, what: str, mend: str) -> None:
    """Refuse a run in which nothing would be kept."""
    if not steps:
        raise BadInput(f"not one {what} would be kept in {of} steps, one every {every}: lower {mend}, or learn longer")


def every_last(span: range, first: int, every: int) -> range:
    """The steps of a span from the `first` on that are each the last of `every` so many, as an epoch's last."""
    begin = max(span.start, first)
    begin += -(begin + 1) % every
    return range(min(begin, span.stop), span.stop, every)


def refreshed_buffers(
    problem: Problem, beliefs: Beliefs, nets: Sequence[int], data: Callable[[], Iterator[Batch]]
) -> dict[int, dict[str, Tensor]]:
    """The buffers of nets at the mean of what is believed, by net; nothing where no BatchNorm learns."""
    if not learns_batch_norm(problem.net):
        return {}
    found, learns = {}, learning_modes(problem.net)
    for k in nets:
        inputs = (rows_of(batch, k)[0] for batch in data())
        (buffers,) = beliefs.buffers(k)
        weights = problem.layout.weights(beliefs.mean[k])
        found[k] = refreshed_over(problem.net, weights, buffers, inputs, learns.__getitem__, problem.autocast)
    return found


@dataclass(frozen=True, eq=False)
class WithBuffers:
    """Beliefs whose nets have other buffers, where they are given by net."""

    of: Beliefs
    own: Mapping[int, dict[str, Tensor]]

    @property
    def mean(self) -> Tensor:
        return self.of.mean

    @property
    def noise(self) -> dict[str, str]:
        return self.of.noise

    def draw(self, stream: Stream) -> Tensor:
        return self.of.draw(stream)

    def posterior(self, net: int) -> Posterior:
        return self.of.posterior(net)

    def buffers(self, net: int) -> tuple[dict[str, Tensor], ...]:
        return (self.own[net],) if net in self.own else self.of.buffers(net)

    def complexities(self, nets: Sequence[int]) -> list[Estimate]:
        return self.of.complexities(nets)
