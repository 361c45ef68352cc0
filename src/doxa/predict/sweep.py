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
from doxa.data.rows import count, stacked, take, tensors
from doxa.posteriors.mixture import Mixture
from doxa.posteriors.samples import Samples
from doxa.predict.draws import Draws
from doxa.random.keys import Key, isolated
from doxa.weights.layout import Layout, call, mode, precision

ROWS = 2048  # swept at a time
# Several draws run as one program while their activations, in numbers, fit into a CPU's caches or a part of a GPU's
# memory; fewer than so many at once gain nothing on a CPU.
ACTIVATIONS = {"cpu": 1 << 20, "cuda": 1 << 28}
WEIGHTS = {"cpu": 1 << 24, "cuda": 1 << 28}
FEWEST = {"cpu": 8, "cuda": 2}
KEPT = 1 << 20  # numbers of weights in memory at once, of samples that may be on disk


@dataclass(frozen=True)
class Question:
    """What one belief is asked: its draws' key, the buffers of each of its components, and the rows."""

    posterior: Posterior
    buffers: Sequence[Mapping[str, Tensor]]
    x: Inputs
    key: Key


@dataclass(frozen=True)
class Drawn:
    """One draw of the weights, with the question that it answers."""

    number: int
    question: Question
    draw: Draw

    @property
    def flat(self) -> Tensor:
        return self.draw.weights

    @functools.cached_property
    def buffers(self) -> Mapping[str, Tensor]:
        """Those of its component, by reference; what the draw has of its own in their place."""
        return buffers_of(self.draw, self.question.buffers)


def like(posterior: Posterior) -> Tensor:
    """A tensor of the dtype and on the device of a posterior's draws; samples are not read from a disk for it."""
    if isinstance(posterior, Mixture):
        return like(posterior.members[0])
    return posterior.kind if isinstance(posterior, Samples) else posterior.mean


def buffers_of(draw: Draw, buffers: Sequence[Mapping[str, Tensor]]) -> Mapping[str, Tensor]:
    """What a draw's net runs with: the buffers of its component, and in their place what it has of its own."""
    shared = buffers[draw.component]
    return shared if draw.buffers is None else {**shared, **draw.buffers}


@torch.no_grad()
def sweep(
    net: nn.Module,
    layout: Layout,
    likelihood: Likelihood,
    questions: Sequence[Question],
    samples: int,
    rows: int = ROWS,
    autocast: torch.dtype | None = None,
) -> list[Draws]:
    """Draw the weights once, then sweep the rows in chunks; neither chunks nor neighbours change a draw."""
    device = like(questions[0].posterior).device
    answers = [Answer(_expected(question.posterior, samples)) for question in questions]

    def run(weights: Mapping[str, Tensor], buffers: Mapping[str, Tensor], x: Inputs) -> Tensor:
        with precision(device, autocast):
            return call(net, weights, buffers, x)

    turns = False  # whether the net has refused to be one program with others
    with mode(net, training=False), isolated(device):
        for block in _blocks(net, layout, questions, samples, rows, autocast):
            found = None if turns or len(block) == 1 else _together(run, layout, block, rows)
            turns = turns or (found is None and len(block) > 1)
            for k, drawn in enumerate(block):
                output = _alone(run, layout, drawn, rows) if found is None else found[k]
                answers[drawn.number].add(drawn.draw, output, layout)
            block.clear()  # so that its weights are gone before the next ones come
    return [answer.draws(likelihood) for answer in answers]


class Gathered:
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


class Answer:
    """What the draws of one question have said so far."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.outputs, self.parameters = Gathered(expected), dict[str, Gathered]()
        self.weights: list[float] = []

    def add(self, draw: Draw, output: Tensor, layout: Layout) -> None:
        self.outputs.append(output)
        self.weights.append(draw.weight)
        for name, value in layout.parameters(draw.weights).items():
            self.parameters.setdefault(name, Gathered(self.expected)).append(value)

    def draws(self, likelihood: Likelihood) -> Draws:
        outputs = self.outputs.all()
        parameters = {name: own.all().unsqueeze(1) for name, own in self.parameters.items()}
        equal = math.isclose(min(self.weights), max(self.weights), rel_tol=1e-9)
        return Draws(outputs, likelihood, parameters, None if equal else outputs.new_tensor(self.weights))


def _expected(posterior: Posterior, samples: int) -> int:
    """How many draws will come, so far as can be told."""
    members = getattr(posterior, "members", None)
    if members:
        return sum(_expected(m, -(-samples // len(members))) for m in members)
    if posterior.distinct is None:
        return samples
    return min(samples, posterior.distinct) if isinstance(posterior, Samples) else posterior.distinct


def _blocks(
    net: nn.Module,
    layout: Layout,
    questions: Sequence[Question],
    samples: int,
    rows: int,
    autocast: torch.dtype | None,
) -> Iterator[list[Drawn]]:
    """All draws, in lists that may run as one program: of rows in the same shapes."""
    block: list[Drawn] = []
    for number, question in enumerate(questions):
        # As in training: a CPU is not asked for products of many matrices in a lower precision.
        own = like(question.posterior)
        lower = own.device.type == "cpu" and (autocast or own.dtype) not in (torch.float32, torch.float64)
        most = 1 if lower else min(_at_once(net, layout, question.x, rows), _together_at_most(question, layout))
        for draw in question.posterior.draws(samples, question.key):
            if block and (len(block) >= most or _shapes(block[0].question.x) != _shapes(question.x)):
                yield block
                block = []
            block.append(Drawn(number, question, draw))
    yield block


def _together_at_most(question: Question, layout: Layout) -> int:
    """How many draws may be in memory at once: few of samples that are kept on a disk to spare it."""
    return max(1, KEPT // layout.size) if _has_samples(question.posterior) else sys.maxsize


def _has_samples(posterior: Posterior) -> bool:
    return isinstance(posterior, Samples) or any(map(_has_samples, getattr(posterior, "members", ())))


def _at_once(net: nn.Module, layout: Layout, x: Inputs, rows: int) -> int:
    """How many draws run as one program, and gain by it."""
    first = tensors(x)[0][1]
    device = first.device.type
    recurrent = any(isinstance(m, nn.RNNBase | nn.RNNCellBase) for m in net.modules())
    # Each convolution of many is one of its own to the library that computes it; recurrent nets have no rule at all.
    if device not in FEWEST or recurrent or any(len(s.shape) > 2 for s in layout.slots):
        return 1
    widest = max([s.shape[0] for s in layout.slots if s.shape] + [first.shape[-1]])
    places = math.prod(first.shape[1:-1] if first.dtype.is_floating_point else first.shape[1:])
    numbers = max(1, min(count(x), rows) * widest * places)
    most = min(ACTIVATIONS[device] // numbers, WEIGHTS[device] // layout.size)
    return most if most >= FEWEST[device] else 1


def _shapes(x: Inputs) -> list[tuple[str, torch.Size]]:
    return [(name, t.shape) for name, t in tensors(x)]


def _alone(run: Callable[..., Tensor], layout: Layout, drawn: Drawn, rows: int) -> Tensor:
    """The net's outputs [B, ·] for one draw."""
    x, weights = drawn.question.x, layout.weights(drawn.flat)
    parts = [run(weights, drawn.buffers, take(x, slice(at, at + rows))) for at in range(0, count(x), rows)]
    return torch.cat(parts).to(drawn.flat.dtype)


def _together(run: Callable[..., Tensor], layout: Layout, block: Sequence[Drawn], rows: int) -> Tensor | None:
    """The outputs [D, B, ·] of several draws as one program; None where torch cannot do that with this net."""
    weights = layout.weights(torch.stack([d.flat for d in block]))
    first = block[0]
    # What all draws have by reference is there once, and is no axis of the program.
    own = [k for k, b in first.buffers.items() if any(d.buffers[k] is not b for d in block)]
    buffers = {**first.buffers, **{k: torch.stack([d.buffers[k] for d in block]) for k in own}}
    same = all(d.question.x is first.question.x for d in block)
    axes = {k: 0 if k in own else None for k in buffers}
    program = torch.vmap(run, in_dims=(0, axes if own else None, None if same else 0))
    parts = []
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*performance drop.*")  # torch's word for one after the other
            for at in range(0, count(first.question.x), rows):
                span = slice(at, at + rows)
                part = take(first.question.x, span) if same else stacked([take(d.question.x, span) for d in block])
                parts.append(program(weights, buffers, part))
    except (RuntimeError, ValueError, UserWarning):
        return None
    return torch.cat(parts, 1).to(first.flat.dtype)
