"""How nets run there and back on a batch: alone, one after the other, or as one program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from doxa.contracts import Batch, Inputs, Problem
from doxa.data.rows import map_inputs, named_tensors, net_rows, take_rows
from doxa.gradients.fleet_linear import FleetLinear
from doxa.noise.interception import Interception, Rule, Site
from doxa.noise.source import (
    NoiseRequest,
    NoiseSource,
    PrecomputedSource,
    RecordingSource,
    StreamSource,
    precompute_noise,
)
from doxa.random.keys import reseed
from doxa.random.philox import Stream
from doxa.weights.layout import LIKELIHOOD, autocast_context, call

# From a net's first and second leaves to the places where its noise is met.
Sites = Callable[[Mapping[str, Tensor], Mapping[str, Tensor]], Sequence[Site]]
TensorsByName = dict[str, Tensor]


def why_eager(problem: Problem) -> str | None:
    """Why a net's steps cannot be recorded, in words; None where they can."""
    if problem.uses.draws_random_numbers:
        return "the net draws random numbers of its own, as nn.Dropout does"
    if any("lstm" in how or "gru" in how or "rnn" in how for how in problem.uses.fallback_reasons.values()):
        return "the net is recurrent"
    return None


def nll(problem: Problem, leaves: Mapping[str, Tensor], buffers: Mapping[str, Tensor], x: Inputs, y: Tensor) -> Tensor:
    """−(1/B) Σᵢ log p(yᵢ | net(xᵢ, w)) with the weights, and the likelihood's own parameters, among `leaves`."""
    weights = {k: v for k, v in leaves.items() if not k.startswith(LIKELIHOOD)}
    parameters = {k.removeprefix(LIKELIHOOD): v for k, v in leaves.items() if k.startswith(LIKELIHOOD)}
    with autocast_context(problem.start.device, problem.autocast):
        output = call(problem.net, weights, buffers, x)
    return -problem.likelihood.log_prob(output.to(problem.start.dtype), y, parameters).mean()


@dataclass
class ForwardBackward:
    """Runs every net on its rows of a batch and sends the gradients back to its leaves.

    With several draws at once, [S · K] sets of leaves share K sets of rows. Nets that run together take turns on a
    batch whose rows differ in shape from net to net.
    """

    problem: Problem
    first: Sequence[TensorsByName]
    second: Sequence[TensorsByName] | None
    sites: Sites | None
    rule: Rule | None
    vectorized: bool

    def __post_init__(self) -> None:
        self.noise_requests: dict[tuple[torch.Size, ...], list[NoiseRequest]] = {}
        self.programs: dict[tuple[bool, ...], Callable[..., Tensor]] = {}
        embeddings = (m for m in self.problem.net.modules() if isinstance(m, nn.Embedding | nn.EmbeddingBag))
        self.sparse_embeddings = [m for m in embeddings if m.sparse]

    def __call__(
        self,
        batch: Batch,
        buffers: TensorsByName,
        draws: Sequence[tuple[Stream, float]],
        scale: float = 1.0,
        compiled: bool = False,
    ) -> Tensor:
        """Each net's mean NLL [S · K], times `scale`; buffers [S · K, ·] are brought up to date in place.

        `compiled`, the nets run as torch.compile makes them: for steps that are recorded and replayed so often that it
        repays.
        """
        if not self.sparse_embeddings:
            return self._evaluate(batch, buffers, draws, scale, compiled)
        with dense_gradients(self.sparse_embeddings):
            return self._evaluate(batch, buffers, draws, scale, compiled)

    def _evaluate(
        self, batch: Batch, buffers: TensorsByName, draws: Sequence[tuple[Stream, float]], scale: float, compiled: bool
    ) -> Tensor:
        if batch.others or not (self.vectorized or compiled):
            return self._evaluate_sequentially(batch, buffers, draws, scale)
        return self._evaluate_as_one_program(batch, buffers, draws, scale, compiled)

    def _evaluate_sequentially(
        self, batch: Batch, buffers: TensorsByName, draws: Sequence[tuple[Stream, float]], scale: float
    ) -> Tensor:
        """The nets take turns, each draw of each, for they cannot run together or their rows differ in shape."""
        nets = len(draws[0][0].seeds)
        losses = []
        for index in range(len(draws) * nets):
            (stream, sign), k = draws[index // nets], index % nets
            x, y = net_rows(batch, k)
            first, second = (self._leaves(leaves, index) for leaves in (self.first, self.second))
            net_buffers = {name: b[index] for name, b in buffers.items()}
            if self.problem.uses.draws_random_numbers:
                reseed((int(stream.seeds[k]), int(stream.step), stream.number), y.device)
            source = StreamSource(stream.select_members(slice(k, k + 1)), sign)
            loss = _loss(self.problem, self.sites, self.rule, source, first, second, net_buffers, x, y) * scale
            loss.backward()
            losses.append(loss.detach())
        return torch.stack(losses)

    def _leaves(self, leaves: Sequence[TensorsByName] | None, index: int) -> TensorsByName:
        """One net's leaves; where all nets' lie together, slices of them whose gradients go to the same place."""
        if leaves is None:
            return {}
        if not self.vectorized:
            return leaves[index]
        slices = {}
        for name, leaf in leaves[0].items():
            if leaf.grad is None:
                leaf.grad = torch.zeros_like(leaf)
            slices[name] = leaf.detach()[index].requires_grad_()
            slices[name].grad = leaf.grad[index]  # autograd adds to what is there
        return slices

    def _evaluate_as_one_program(
        self, batch: Batch, buffers: TensorsByName, draws: Sequence[tuple[Stream, float]], scale: float, compiled: bool
    ) -> Tensor:
        noise = [] if self.sites is None else precompute_noise(self._noise_requests(batch, buffers), draws)
        if not self.vectorized:
            losses = [
                self._program(False, False, compiled)(
                    self.first[k],
                    {} if self.second is None else self.second[k],
                    {name: b[k] for name, b in buffers.items()},
                    take_rows(batch.x, k),
                    batch.y[k],
                    [rows[k] for rows in noise],
                    scale,
                )
                for k in range(len(self.first))
            ]
            net_losses = torch.stack(losses)
        else:
            second = {} if self.second is None else self.second[0]
            nets, leaf_sets = len(batch.y), len(next(iter(self.first[0].values())))
            rows = batch
            if leaf_sets > nets > 1:
                rows = Batch(
                    map_inputs(batch.x, lambda t: t.repeat(leaf_sets // nets, *[1] * (t.dim() - 1))),
                    batch.y.repeat(leaf_sets // nets, *[1] * (batch.y.dim() - 1)),
                )
            shared = leaf_sets > nets == 1
            x, y = (take_rows(rows.x, 0), rows.y[0]) if shared else (rows.x, rows.y)
            net_losses = self._program(True, shared, compiled)(self.first[0], second, buffers, x, y, noise, scale)
        net_losses.sum().backward()
        return net_losses.detach()

    def _program(self, vectorized: bool, shared: bool, compiled: bool) -> Callable[..., Tensor]:
        """The loss of a net, or of all of them, on what it is handed; `shared`, all see the same rows."""
        key = vectorized, shared, compiled
        if key not in self.programs:
            program = _loss_with_precomputed_noise(self.problem, self.sites, self.rule)
            if vectorized and self.problem.start.is_cuda:  # on a CPU it saves less than it is worth to change bits
                program = _with_fleet_linear(program)
            if vectorized:
                rows = None if shared else 0
                program = torch.vmap(program, in_dims=(0, 0, 0, rows, rows, 0, None), randomness="different")
            self.programs[key] = torch.compile(program, dynamic=False) if compiled else program
        return self.programs[key]

    @torch.no_grad()
    def _noise_requests(self, batch: Batch, buffers: TensorsByName) -> list[NoiseRequest]:
        """What noise a pass over rows of such shapes asks for, found by listening to one."""
        shapes = (batch.y.shape, *(x.shape for _, x in named_tensors(batch.x)))
        if shapes not in self.noise_requests:
            recorder = RecordingSource()
            net_buffers = {name: b[0].clone() for name, b in buffers.items()}
            first: TensorsByName = {}
            second: TensorsByName = {}
            for copies, leaves in ((first, self.first), (second, self.second)):
                if leaves is not None:
                    copies.update({n: (leaf[0] if self.vectorized else leaf).clone() for n, leaf in leaves[0].items()})
            x, y = net_rows(batch, 0)
            _loss(self.problem, self.sites, self.rule, recorder, first, second, net_buffers, x, y)
            self.noise_requests[shapes] = recorder.requests
        return self.noise_requests[shapes]


def _with_fleet_linear(program: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The same program; gradients of its linear maps come out in the order of the weights."""

    def loss(*arguments: Any) -> Tensor:
        with FleetLinear():
            return program(*arguments)

    return loss


@contextmanager
def dense_gradients(modules: Sequence[nn.Embedding | nn.EmbeddingBag]) -> Iterator[None]:
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
    source: NoiseSource,
    first: TensorsByName,
    second: TensorsByName,
    buffers: TensorsByName,
    x: Inputs,
    y: Tensor,
) -> Tensor:
    """A net's mean NLL with the source's noise at its sites."""
    if sites is None or rule is None:
        return nll(problem, first, buffers, x, y)
    with Interception(sites(first, second), rule, source):
        return nll(problem, first, buffers, x, y)


def _loss_with_precomputed_noise(problem: Problem, sites: Sites | None, rule: Rule | None) -> Callable[..., Tensor]:
    """A net's loss as a function of all that changes, its noise too."""

    # It knows no ForwardBackward: that keeps it, and a circle of references would keep all leaves until Python looks
    # for such.
    def loss(
        first: TensorsByName,
        second: TensorsByName,
        buffers: TensorsByName,
        x: Inputs,
        y: Tensor,
        noise: Sequence[Tensor],
        scale: float,
    ) -> Tensor:
        return _loss(problem, sites, rule, PrecomputedSource(noise), first, second, buffers, x, y) * scale

    return loss
