"""How nets run there and back on a batch: alone, one after the other, or as one program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from doxa.contracts import Batch, Inputs, Problem
from doxa.data.rows import each, rows_of, take, tensors
from doxa.noise.interception import Interception, Rule, Site
from doxa.noise.source import Alone, Asked, Handed, Listening, Source, made
from doxa.random.keys import reseed
from doxa.random.philox import Stream
from doxa.weights.layout import LIKELIHOOD, call, precision

# From a net's first and second leaves to the places where its noise is met.
Sites = Callable[[Mapping[str, Tensor], Mapping[str, Tensor]], Sequence[Site]]
Named = dict[str, Tensor]


def why_eager(problem: Problem) -> str | None:
    """Why a net's steps cannot be recorded, in words; None where they can."""
    if problem.uses.random:
        return "the net draws random numbers of its own, as nn.Dropout does"
    if any("lstm" in how or "gru" in how or "rnn" in how for how in problem.uses.other.values()):
        return "the net is recurrent"
    return None


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

    With several draws at once, [S · K] sets of leaves share K sets of rows. Nets that run together take turns on a
    batch whose rows differ in shape from net to net.
    """

    problem: Problem
    first: Sequence[Named]
    second: Sequence[Named] | None
    sites: Sites | None
    rule: Rule | None
    together: bool

    def __post_init__(self) -> None:
        self.asked: dict[tuple[torch.Size, ...], list[Asked]] = {}
        self.programs: dict[tuple[bool, ...], Callable[..., Tensor]] = {}
        embeddings = (m for m in self.problem.net.modules() if isinstance(m, nn.Embedding | nn.EmbeddingBag))
        self.sparse = [m for m in embeddings if m.sparse]

    def __call__(
        self,
        batch: Batch,
        buffers: Named,
        draws: Sequence[tuple[Stream, float]],
        scale: float = 1.0,
        compiled: bool = False,
    ) -> Tensor:
        """Each net's mean NLL [S · K], times `scale`; buffers [S · K, ·] are brought up to date in place.

        `compiled`, the nets run as torch.compile makes them: for steps that are recorded and replayed so often that it
        repays.
        """
        if not self.sparse:
            return self._run(batch, buffers, draws, scale, compiled)
        with dense(self.sparse):
            return self._run(batch, buffers, draws, scale, compiled)

    def _run(
        self, batch: Batch, buffers: Named, draws: Sequence[tuple[Stream, float]], scale: float, compiled: bool
    ) -> Tensor:
        if batch.others or not (self.together or compiled):
            return self._one_by_one(batch, buffers, draws, scale)
        return self._as_one(batch, buffers, draws, scale, compiled)

    def _one_by_one(self, batch: Batch, buffers: Named, draws: Sequence[tuple[Stream, float]], scale: float) -> Tensor:
        """The nets take turns, each draw of each, for they cannot run together or their rows differ in shape."""
        nets = len(draws[0][0].seeds)
        losses = []
        for number in range(len(draws) * nets):
            (stream, sign), k = draws[number // nets], number % nets
            x, y = rows_of(batch, k)
            first, second = (self._leaves(leaves, number) for leaves in (self.first, self.second))
            own = {name: b[number] for name, b in buffers.items()}
            if self.problem.uses.random:
                reseed((int(stream.seeds[k]), int(stream.step), stream.number), y.device)
            source = Alone(stream.of(slice(k, k + 1)), sign)
            loss = _loss(self.problem, self.sites, self.rule, source, first, second, own, x, y) * scale
            loss.backward()
            losses.append(loss.detach())
        return torch.stack(losses)

    def _leaves(self, leaves: Sequence[Named] | None, number: int) -> Named:
        """One net's leaves; where all nets' lie together, slices of them whose gradients go to the same place."""
        if leaves is None:
            return {}
        if not self.together:
            return leaves[number]
        found = {}
        for name, leaf in leaves[0].items():
            if leaf.grad is None:
                leaf.grad = torch.zeros_like(leaf)
            found[name] = leaf.detach()[number].requires_grad_()
            found[name].grad = leaf.grad[number]  # autograd adds to what is there
        return found

    def _as_one(
        self, batch: Batch, buffers: Named, draws: Sequence[tuple[Stream, float]], scale: float, compiled: bool
    ) -> Tensor:
        noise = [] if self.sites is None else made(self._wanted(batch, buffers), draws)
        if not self.together:
            losses = [
                self._program(False, False, compiled)(
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
            found = self._program(True, shared, compiled)(self.first[0], second, buffers, x, y, noise, scale)
        found.sum().backward()
        return found.detach()

    def _program(self, together: bool, shared: bool, compiled: bool) -> Callable[..., Tensor]:
        """The loss of a net, or of all of them, on what it is handed; `shared`, all see the same rows."""
        key = together, shared, compiled
        if key not in self.programs:
            program = _handed(self.problem, self.sites, self.rule)
            if together:
                rows = None if shared else 0
                program = torch.vmap(program, in_dims=(0, 0, 0, rows, rows, 0, None), randomness="different")
            self.programs[key] = torch.compile(program, dynamic=False) if compiled else program
        return self.programs[key]

    @torch.no_grad()
    def _wanted(self, batch: Batch, buffers: Named) -> list[Asked]:
        """What noise a pass over rows of such shapes asks for, found by listening to one."""
        shapes = (batch.y.shape, *(x.shape for _, x in tensors(batch.x)))
        if shapes not in self.asked:
            listening = Listening()
            own = {name: b[0].clone() for name, b in buffers.items()}
            first: Named = {}
            second: Named = {}
            for into, leaves in ((first, self.first), (second, self.second)):
                if leaves is not None:
                    into.update({n: (leaf[0] if self.together else leaf).clone() for n, leaf in leaves[0].items()})
            x, y = rows_of(batch, 0)
            _loss(self.problem, self.sites, self.rule, listening, first, second, own, x, y)
            self.asked[shapes] = listening.asked
        return self.asked[shapes]


@contextmanager
def dense(modules: Sequence[nn.Embedding | nn.EmbeddingBag]) -> Iterator[None]:
    """Let embeddings make full gradients: those of nets together cannot be sparse, and a flat vector's never are."""
    for module in modules:
        module.sparse = False
    try:
        yield
    finally:
        for module in modules:
            module.sparse = True


def _loss(
    problem: Problem,
    sites: Sites | None,
    rule: Rule | None,
    source: Source,
    first: Named,
    second: Named,
    own: Named,
    x: Inputs,
    y: Tensor,
) -> Tensor:
    """A net's mean NLL with the source's noise at its sites."""
    if sites is None or rule is None:
        return nll(problem, first, own, x, y)
    with Interception(sites(first, second), rule, source):
        return nll(problem, first, own, x, y)


def _handed(problem: Problem, sites: Sites | None, rule: Rule | None) -> Callable[..., Tensor]:
    """A net's loss as a function of all that changes, its noise too."""

    # It knows no Passes: those keep it, and a circle of references would keep all leaves until Python looks for such.
    def loss(
        first: Named, second: Named, own: Named, x: Inputs, y: Tensor, noise: Sequence[Tensor], scale: float
    ) -> Tensor:
        return _loss(problem, sites, rule, Handed(noise), first, second, own, x, y) * scale

    return loss
