"""Posterior × net × x → draws. The only place that decides how draws and rows are worked through."""

from __future__ import annotations

import functools
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from doxa.contracts import Draw, Inputs, Likelihood, Posterior
from doxa.data.rows import named_tensors, row_count, stack_inputs, take_rows
from doxa.posteriors.mixture import Mixture
from doxa.posteriors.samples import Samples
from doxa.predict.draws import Draws
from doxa.random.keys import Key, isolated_rng
from doxa.weights.layout import Layout, autocast_context, call, module_mode

ROWS = 2048  # swept at a time
# Several draws run as one program while their activations, in numbers, fit into a CPU's caches or a part of a GPU's
# memory; fewer than so many at once gain nothing on a CPU.
ACTIVATIONS = {"cpu": 1 << 20, "cuda": 1 << 28}
WEIGHTS = {"cpu": 1 << 24, "cuda": 1 << 28}
FEWEST_DRAWS = {"cpu": 8, "cuda": 2}
SAMPLE_WEIGHTS = 1 << 20  # numbers of weights in memory at once, of samples that may be on disk


@dataclass(frozen=True)
class PredictionRequest:
    """What one belief is asked: its draws' key, the buffers of each of its components, and the rows."""

    posterior: Posterior
    buffers: Sequence[Mapping[str, Tensor]]
    x: Inputs
    key: Key


@dataclass(frozen=True)
class QueuedDraw:
    """One draw of the weights, with the question that it answers."""

    number: int
    request: PredictionRequest
    draw: Draw

    @property
    def flat(self) -> Tensor:
        return self.draw.weights

    @functools.cached_property
    def buffers(self) -> Mapping[str, Tensor]:
        """Those of its component, by reference; what the draw has of its own in their place."""
        return buffers_of(self.draw, self.request.buffers)


def prototype_of(posterior: Posterior) -> Tensor:
    """A tensor of the dtype and on the device of a posterior's draws; samples are not read from a disk for it."""
    if isinstance(posterior, Mixture):
        return prototype_of(posterior.members[0])
    return posterior.prototype if isinstance(posterior, Samples) else posterior.mean


def buffers_of(draw: Draw, buffers: Sequence[Mapping[str, Tensor]]) -> Mapping[str, Tensor]:
    """What a draw's net runs with: the buffers of its component, and in their place what it has of its own."""
    shared = buffers[draw.component]
    return shared if draw.buffers is None else {**shared, **draw.buffers}


@torch.no_grad()
def sweep(
    net: nn.Module,
    layout: Layout,
    likelihood: Likelihood,
    requests: Sequence[PredictionRequest],
    samples: int,
    rows: int = ROWS,
    autocast: torch.dtype | None = None,
) -> list[Draws]:
    """Draw the weights once, then sweep the rows in chunks; neither chunks nor neighbours change a draw."""
    device = prototype_of(requests[0].posterior).device
    collectors = [PredictionCollector(_expected_draws(request.posterior, samples)) for request in requests]

    def forward(weights: Mapping[str, Tensor], buffers: Mapping[str, Tensor], x: Inputs) -> Tensor:
        with autocast_context(device, autocast):
            return call(net, weights, buffers, x)

    vmap_refused = False  # whether the net has refused to be one program with others
    with module_mode(net, training=False), isolated_rng(device):
        for block in _draw_blocks(net, layout, requests, samples, rows, autocast):
            outputs = None if vmap_refused or len(block) == 1 else _forward_vectorized(forward, layout, block, rows)
            vmap_refused = vmap_refused or (outputs is None and len(block) > 1)
            for k, queued in enumerate(block):
                output = _forward_one_draw(forward, layout, queued, rows) if outputs is None else outputs[k]
                collectors[queued.number].add(queued.draw, output, layout)
            block.clear()  # so that its weights are gone before the next ones come
    return [collector.draws(likelihood) for collector in collectors]


class OutputBuffer:
    """Tensors of one shape, one after the other in one piece of memory, and no reference to what they were part of.

    Pieces of their own, each between vectors of weights that come and go, would keep the heap from giving those back.
    """

    def __init__(self, expected: int) -> None:
        self.expected, self.count = max(1, expected), 0
        self.rows: Tensor | None = None

    def append(self, row: Tensor) -> None:
        if self.rows is None:
            self.rows = row.new_empty(self.expected, *row.shape)
        elif self.count == len(self.rows):
            self.rows = torch.cat([self.rows, torch.empty_like(self.rows)])
        self.rows[self.count] = row
        self.count += 1

    def all(self) -> Tensor:
        assert self.rows is not None
        return self.rows if self.count == len(self.rows) else self.rows[: self.count].clone()


class PredictionCollector:
    """What the draws of one question have said so far."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.outputs, self.parameters = OutputBuffer(expected), dict[str, OutputBuffer]()
        self.weights: list[float] = []

    def add(self, draw: Draw, output: Tensor, layout: Layout) -> None:
        self.outputs.append(output)
        self.weights.append(draw.weight)
        for name, value in layout.parameters(draw.weights).items():
            self.parameters.setdefault(name, OutputBuffer(self.expected)).append(value)

    def draws(self, likelihood: Likelihood) -> Draws:
        outputs = self.outputs.all()
        parameters = {name: buffer.all().unsqueeze(1) for name, buffer in self.parameters.items()}
        equal_weights = math.isclose(min(self.weights), max(self.weights), rel_tol=1e-9)
        return Draws(outputs, likelihood, parameters, None if equal_weights else outputs.new_tensor(self.weights))


def _expected_draws(posterior: Posterior, samples: int) -> int:
    """How many draws will come, so far as can be told."""
    members = getattr(posterior, "members", None)
    if members:
        return sum(_expected_draws(m, -(-samples // len(members))) for m in members)
    if posterior.distinct is None:
        return samples
    return min(samples, posterior.distinct) if isinstance(posterior, Samples) else posterior.distinct


def _draw_blocks(
    net: nn.Module,
    layout: Layout,
    requests: Sequence[PredictionRequest],
    samples: int,
    rows: int,
    autocast: torch.dtype | None,
) -> Iterator[list[QueuedDraw]]:
    """All draws, in lists that may run as one program: of rows in the same shapes."""
    block: list[QueuedDraw] = []
    for number, request in enumerate(requests):
        # As in training: a CPU is not asked for products of many matrices in a lower precision.
        prototype = prototype_of(request.posterior)
        low_precision = prototype.device.type == "cpu" and (autocast or prototype.dtype) not in (
            torch.float32,
            torch.float64,
        )
        most_draws = (
            1 if low_precision else min(_draws_at_once(net, layout, request.x, rows), _draws_in_memory(request, layout))
        )
        for draw in request.posterior.draws(samples, request.key):
            if block and (len(block) >= most_draws or _shapes(block[0].request.x) != _shapes(request.x)):
                yield block
                block = []
            block.append(QueuedDraw(number, request, draw))
    yield block


def _draws_in_memory(request: PredictionRequest, layout: Layout) -> int:
    """How many draws may be in memory at once: few of samples that are kept on a disk to spare it."""
    return max(1, SAMPLE_WEIGHTS // layout.size) if _has_samples(request.posterior) else sys.maxsize


def _has_samples(posterior: Posterior) -> bool:
    return isinstance(posterior, Samples) or any(map(_has_samples, getattr(posterior, "members", ())))


def _draws_at_once(net: nn.Module, layout: Layout, x: Inputs, rows: int) -> int:
    """How many draws run as one program, and gain by it."""
    first = named_tensors(x)[0][1]
    device = first.device.type
    recurrent = any(isinstance(m, nn.RNNBase | nn.RNNCellBase) for m in net.modules())
    # Each convolution of many is one of its own to the library that computes it; recurrent nets have no rule at all.
    if device not in FEWEST_DRAWS or recurrent or any(len(s.shape) > 2 for s in layout.slots):
        return 1
    widest = max([s.shape[0] for s in layout.slots if s.shape] + [first.shape[-1]])
    places = math.prod(first.shape[1:-1] if first.dtype.is_floating_point else first.shape[1:])
    activations = max(1, min(row_count(x), rows) * widest * places)
    draws = min(ACTIVATIONS[device] // activations, WEIGHTS[device] // layout.size)
    return draws if draws >= FEWEST_DRAWS[device] else 1


def _shapes(x: Inputs) -> list[tuple[str, torch.Size]]:
    return [(name, t.shape) for name, t in named_tensors(x)]


def _forward_one_draw(forward: Callable[..., Tensor], layout: Layout, queued: QueuedDraw, rows: int) -> Tensor:
    """The net's outputs [B, ·] for one draw."""
    x, weights = queued.request.x, layout.weights(queued.flat)
    parts = [
        forward(weights, queued.buffers, take_rows(x, slice(start, start + rows)))
        for start in range(0, row_count(x), rows)
    ]
    return torch.cat(parts).to(queued.flat.dtype)


def _forward_vectorized(
    forward: Callable[..., Tensor], layout: Layout, block: Sequence[QueuedDraw], rows: int
) -> Tensor | None:
    """The outputs [D, B, ·] of several draws as one program; None where torch cannot do that with this net."""
    weights = layout.weights(torch.stack([d.flat for d in block]))
    first = block[0]
    # What all draws have by reference is there once, and is no axis of the program.
    per_draw = [k for k, b in first.buffers.items() if any(d.buffers[k] is not b for d in block)]
    buffers = {**first.buffers, **{k: torch.stack([d.buffers[k] for d in block]) for k in per_draw}}
    shared_inputs = all(d.request.x is first.request.x for d in block)
    buffer_axes = {k: 0 if k in per_draw else None for k in buffers}
    program = torch.vmap(forward, in_dims=(0, buffer_axes if per_draw else None, None if shared_inputs else 0))
    parts = []
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*performance drop.*")  # torch's word for one after the other
            for start in range(0, row_count(first.request.x), rows):
                span = slice(start, start + rows)
                part = (
                    take_rows(first.request.x, span)
                    if shared_inputs
                    else stack_inputs([take_rows(d.request.x, span) for d in block])
                )
                parts.append(program(weights, buffers, part))
    except (RuntimeError, ValueError, UserWarning):
        return None
    return torch.cat(parts, 1).to(first.flat.dtype)
