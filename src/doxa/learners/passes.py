"""How nets run there and back on a batch: alone, one after the other, or as one program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from doxa.contracts import Batch, Inputs, Problem
from doxa.layout import LIKELIHOOD, call, precision
from doxa.noise.interception import Interception, Rule, Site
from doxa.noise.source import Alone, Asked, Handed, Listening, Source, made
from doxa.philox import Stream
from doxa.randomness import reseed
from doxa.rows import each, take

# From a net's first and second leaves to the places where its noise is met.
Sites = Callable[[Mapping[str, Tensor], Mapping[str, Tensor]], Sequence[Site]]
Named = dict[str, Tensor]


def nll(problem: Problem, leaves: Mapping[str, Tensor], buffers: Mapping[str, Tensor], x: Inputs, y: Tensor) -> Tensor:
    """−(1/B) Σᵢ log p(yᵢ | net(xᵢ, w)) with the weights, and the likelihood's own parameters, among `leaves`."""
    weights = {k: v for k, v in leaves.items() if not k.startswith(LIKELIHOOD)}
    parameters = {k.removeprefix(LIKELIHOOD): v for k, v in leaves.items() if k.startswith(LIKELIHOOD)}
    with precision(problem.start.device, problem.autocast):
        output = call(problem.net, weights, buffers, x)
    return -problem.likelihood.log_prob(output.to(problem.start.dtype), y, parameters).mean()


@dataclass
class Passes:
    """Runs every net on its rows of a batch and sends the gradients back to its leaves.

    With several draws at once, [S · K] sets of leaves share K sets of rows. `compiled`, the nets run as torch.compile
    makes them: for steps that are recorded and replayed so often that it repays.
    """

    problem: Problem
    first: Sequence[Named]
    second: Sequence[Named] | None
    sites: Sites | None
    rule: Rule | None
    together: bool
    compiled: bool = False

    def __post_init__(self) -> None:
        self.asked: dict[tuple[int, ...], list[Asked]] = {}
        self.programs: dict[tuple[Any, ...], Callable[..., Tensor]] = {}

    def __call__(
        self, batch: Batch, buffers: Named, draws: Sequence[tuple[Stream, float]], scale: float = 1.0
    ) -> Tensor:
        """Each net's mean NLL [S · K], times `scale`; buffers [S · K, ·] are brought up to date in place."""
        if self.together or self.compiled:
            return self._as_one(batch, buffers, draws, scale)
        ((stream, sign),) = draws
        losses = []
        for k, leaves in enumerate(self.first):
            own = {name: b[k] for name, b in buffers.items()}
            second = {} if self.second is None else self.second[k]
            source = Alone(stream.of(slice(k, k + 1)), sign)
            if self.problem.uses.random:
                reseed((int(stream.seeds[k]), int(stream.step), stream.number), batch.y.device)
            with self._met(leaves, second, source):
                loss = nll(self.problem, leaves, own, take(batch.x, k), batch.y[k]) * scale
            loss.backward()
            losses.append(loss.detach())
        return torch.stack(losses)

    def _as_one(self, batch: Batch, buffers: Named, draws: Sequence[tuple[Stream, float]], scale: float) -> Tensor:
        noise = [] if self.sites is None else made(self._wanted(batch, buffers), draws)
        if not self.together:
            losses = [
                self._program(False, False)(
                    self.first[k],
                    {} if self.second is None else self.second[k],
                    {name: b[k] for name, b in buffers.items()},
                    take(batch.x, k),
                    batch.y[k],
                    [rows[k] for rows in noise],
                    scale,
                )
                for k in range(len(self.first))
            ]
            found = torch.stack(losses)
        else:
            second = {} if self.second is None else self.second[0]
            nets, sets = len(batch.y), len(next(iter(self.first[0].values())))
            rows = batch
            if sets > nets > 1:
                rows = Batch(
                    each(batch.x, lambda t: t.repeat(sets // nets, *[1] * (t.dim() - 1))),
                    batch.y.repeat(sets // nets, *[1] * (batch.y.dim() - 1)),
                )
            shared = sets > nets == 1
            x, y = (take(rows.x, 0), rows.y[0]) if shared else (rows.x, rows.y)
            found = self._program(True, shared)(self.first[0], second, buffers, x, y, noise, scale)
        found.sum().backward()
        return found.detach()

    def _program(self, together: bool, shared: bool) -> Callable[..., Tensor]:
        """The loss of a net, or of all of them, on what it is handed; `shared`, all see the same rows."""
        key = together, shared, self.compiled
        if key not in self.programs:

            def one(
                first: Named, second: Named, own: Named, x: Any, y: Tensor, noise: Sequence[Tensor], scale: float
            ) -> Tensor:
                with self._met(first, second, Handed(noise)):
                    return nll(self.problem, first, own, x, y) * scale

            made: Callable[..., Tensor] = one
            if together:
                rows = None if shared else 0
                made = torch.vmap(one, in_dims=(0, 0, 0, rows, rows, 0, None), randomness="different")
            self.programs[key] = torch.compile(made, dynamic=False) if self.compiled else made
        return self.programs[key]

    def _met(self, first: Named, second: Named, source: Source) -> AbstractContextManager[object]:
        if self.sites is None or self.rule is None:
            return nullcontext()
        return Interception(self.sites(first, second), self.rule, source)

    @torch.no_grad()
    def _wanted(self, batch: Batch, buffers: Named) -> list[Asked]:
        """What noise a pass over so many rows asks for, found by listening to one."""
        shape = tuple(batch.y.shape)
        if shape not in self.asked:
            listening = Listening()
            own = {name: b[0].clone() for name, b in buffers.items()}
            first: Named = {}
            second: Named = {}
            for into, leaves in ((first, self.first), (second, self.second)):
                if leaves is not None:
                    into.update({n: (leaf[0] if self.together else leaf).clone() for n, leaf in leaves[0].items()})
            with self._met(first, second, listening):
                nll(self.problem, first, own, take(batch.x, 0), batch.y[0])
            self.asked[shape] = listening.asked
        return self.asked[shape]
