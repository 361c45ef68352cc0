"""The contextual bandit: what comes, what may be done, and what it pays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from doxa.errors import BadInput, require_whole
from doxa.random import streams
from doxa.random.keys import seed_of
from doxa.random.philox import Stream, fill_uniform

MOST_ACTIONS = 256  # a byte each


@dataclass(frozen=True, eq=False)
class Bandit:
    """Contexts that come at random, one by one, and what each action pays in each of them.

    x ~ contexts,  r = pay(x, a, u),  u ~ uniform(0, 1),  expected[x, a] = E[r | x, a]

    contexts [N, D], expected [N, A]; `pay` turns rows [n] and uniform numbers [n, A] into what each action would pay,
    [n, A]. Langford & Zhang (2007), The epoch-greedy algorithm for contextual multi-armed bandits.
    """

    name: str
    contexts: Tensor
    expected: Tensor
    pay: Callable[[Tensor, Tensor], Tensor]
    actions: tuple[str, ...]

    def __post_init__(self) -> None:
        rows, action_count = len(self.contexts), len(self.actions)
        if self.contexts.dim() != 2 or not self.contexts.dtype.is_floating_point:
            raise BadInput(
                f"contexts must be real numbers [rows, columns]; got {tuple(self.contexts.shape)} {self.contexts.dtype}"
            )
        if not 2 <= action_count <= MOST_ACTIONS:
            raise BadInput(f"a bandit has two to {MOST_ACTIONS} actions; got the names of {action_count}")
        if self.expected.shape != (rows, action_count):
            raise BadInput(f"expected must be [{rows} rows, {action_count} actions]; got {tuple(self.expected.shape)}")
        for name, tensor in (("contexts", self.contexts), ("expected", self.expected)):
            if not bool(tensor.isfinite().all()):
                raise BadInput(f"{name} holds NaN or infinity; drop or fill those rows first")
        paid = self.pay(torch.arange(rows), torch.full((rows, action_count), 0.5))
        if not isinstance(paid, Tensor) or paid.shape != (rows, action_count):
            raise BadInput(
                f"pay(rows [n], u [n, {action_count}]) must give a pay-off for each action, [n, {action_count}]; got "
                f"{tuple(paid.shape) if isinstance(paid, Tensor) else type(paid).__name__} for {rows} rows"
            )

    @functools.cached_property
    def inputs(self) -> Tensor:
        """What a net is shown for each row and action [N · A, D + A]: the context, and the action as one of A."""
        rows, action_count = self.expected.shape
        actions = one_hot(torch.arange(action_count), action_count).to(self.contexts).repeat(rows, 1)
        return torch.cat([self.contexts.repeat_interleave(action_count, 0), actions], 1)

    @functools.cached_property
    def best(self) -> Tensor:
        """The oracle's action in each row [N]: the one that pays most on average."""
        return self.expected.argmax(1)

    @property
    def blind_regret(self) -> float:
        """The expected regret of one action taken at random."""
        expected = self.expected.double()
        return float((expected.amax(1) - expected.mean(1)).mean())

    def episode(self, seed: int, steps: int) -> Episode:
        """What comes in so many steps, and what each action would pay: a function of the seed alone."""
        steps, action_count = require_whole("steps", steps), len(self.actions)
        stream = Stream(torch.tensor([seed_of((require_whole("seed", seed, least=None), "bandit"))]))
        u = [torch.empty(1, size) for size in (steps, steps * action_count, steps)]
        stream_numbers = streams.BANDIT_CONTEXTS, streams.BANDIT_REWARDS, streams.BANDIT_RANDOM_ACTIONS
        for number, out in zip(stream_numbers, u, strict=True):
            fill_uniform(out, stream.with_number(number))
        rows = uniform_integers(u[0][0], torch.tensor(len(self.contexts)))
        return Episode(
            rows, self.pay(rows, u[1].view(steps, action_count)), uniform_integers(u[2][0], torch.tensor(action_count))
        )


@dataclass(frozen=True, eq=False)
class Episode:
    """What happens to every agent of a seed: the same contexts, and the same pay-offs for the same actions."""

    rows: Tensor  # [T]
    pays: Tensor  # [T, A]
    random_actions: Tensor  # [T]: actions at random, for those who do not look


def uniform_integers(u: Tensor, count: Tensor) -> Tensor:
    """Whole numbers from 0 to count − 1, of uniform ones."""
    return torch.minimum((u * count).long(), count - 1)
