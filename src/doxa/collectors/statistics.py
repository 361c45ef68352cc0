"""What collectors of weights have in common: whom they serve, and BatchNorm's statistics at weights nobody ran on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from doxa.contracts import Batch, Estimate, Posterior, Problem
from doxa.data.rows import net_rows
from doxa.engine.contracts import WEIGHTS, Beliefs, Gradient
from doxa.errors import BadInput
from doxa.random.philox import Stream
from doxa.weights.batch_norm import refresh_batch_norm_over, updates_batch_norm
from doxa.weights.layout import learning_flags


def require_weights(gradient: Gradient, collector_name: str) -> None:
    """Refuse a gradient that moves more than weights."""
    for p in gradient.parameters:
        if p.role != WEIGHTS:
            raise BadInput(
                f"{collector_name} is one of weights, and {p.name!r} holds {p.role}: use it with doxa.learners.point "
                "or dropout"
            )


def require_some_steps(steps: Collection[int], total_steps: int, every: int, thing: str, remedy: str) -> None:
    """Refuse a run in which nothing would be kept."""
    if not steps:
        raise BadInput(
            f"not one {thing} would be kept in {total_steps} steps, one every {every}: lower {remedy}, or learn longer"
        )


def every_nth_step(span: range, first: int, every: int) -> range:
    """The steps of a span from the `first` on that are each the last of `every` so many, as an epoch's last."""
    begin = max(span.start, first)
    begin += -(begin + 1) % every
    return range(min(begin, span.stop), span.stop, every)


def refresh_buffers(
    problem: Problem, beliefs: Beliefs, nets: Sequence[int], data: Callable[[], Iterator[Batch]]
) -> dict[int, dict[str, Tensor]]:
    """The buffers of nets at the mean of what is believed, by net; nothing where no BatchNorm learns."""
    if not updates_batch_norm(problem.net):
        return {}
    buffers_by_net, learns = {}, learning_flags(problem.net)
    for k in nets:
        inputs = (net_rows(batch, k)[0] for batch in data())
        (buffers,) = beliefs.buffers(k)
        weights = problem.layout.weights(beliefs.mean[k])
        buffers_by_net[k] = refresh_batch_norm_over(
            problem.net, weights, buffers, inputs, learns.__getitem__, problem.autocast
        )
    return buffers_by_net


@dataclass(frozen=True, eq=False)
class BeliefsWithBuffers:
    """Beliefs whose nets have other buffers, where they are given by net."""

    beliefs: Beliefs
    buffers_by_net: Mapping[int, dict[str, Tensor]]

    @property
    def mean(self) -> Tensor:
        return self.beliefs.mean

    @property
    def noise(self) -> dict[str, str]:
        return self.beliefs.noise

    def draw(self, stream: Stream) -> Tensor:
        return self.beliefs.draw(stream)

    def posterior(self, net: int) -> Posterior:
        return self.beliefs.posterior(net)

    def buffers(self, net: int) -> tuple[dict[str, Tensor], ...]:
        return (self.buffers_by_net[net],) if net in self.buffers_by_net else self.beliefs.buffers(net)

    def complexities(self, nets: Sequence[int]) -> list[Estimate]:
        return self.beliefs.complexities(nets)
