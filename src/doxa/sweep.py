"""Posterior × net × x → draws. The only place that decides how draws and rows are worked through."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from doxa.contracts import Draw, Inputs, Likelihood, Posterior
from doxa.draws import Draws
from doxa.layout import Layout, call, mode, precision
from doxa.randomness import Key, isolated
from doxa.rows import count, stacked, take, tensors

ROWS = 2048  # swept at a time
# Several draws run as one program while their activations, in numbers, fit into a CPU's caches or a part of a GPU's
# memory; fewer than so many at once gain nothing on a CPU.
ACTIVATIONS = {"cpu": 1 << 20, "cuda": 1 << 28}
WEIGHTS = {"cpu": 1 << 24, "cuda": 1 << 28}
FEWEST = {"cpu": 8, "cuda": 2}


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
    device = questions[0].posterior.mean.device
    outputs: list[list[Tensor]] = [[] for _ in questions]
    weights: list[list[float]] = [[] for _ in questions]
    parameters: list[list[dict[str, Tensor]]] = [[] for _ in questions]

    def run(weights: Mapping[str, Tensor], buffers: Mapping[str, Tensor], x: Inputs) -> Tensor:
        with precision(device, autocast):
            return call(net, weights, buffers, x)

    turns = False  # whether the net has refused to be one program with others
    with mode(net, training=False), isolated(device):
        for block in _blocks(net, layout, questions, samples, rows, autocast):
            found = None if turns or len(block) == 1 else _together(run, layout, block, rows)
            turns = turns or (found is None and len(block) > 1)
            answers = [_alone(run, layout, drawn, rows) for drawn in block] if found is None else found
            for drawn, output in zip(block, answers, strict=True):
                outputs[drawn.number].append(output)
                weights[drawn.number].append(drawn.draw.weight)
                # Not as views, which would keep every draw's whole vector.
                parameters[drawn.number].append({k: t.clone() for k, t in layout.parameters(drawn.flat).items()})
    return [
        Draws(
            torch.stack(own),
            likelihood,
            {k: torch.stack([p[k] for p in named]).unsqueeze(1) for k in named[0]},
            _unequal(shares, own[0]),
        )
        for own, named, shares in zip(outputs, parameters, weights, strict=True)
    ]


def _unequal(shares: Sequence[float], like: Tensor) -> Tensor | None:
    """The draws' weights [S]; None where they are equal but for rounding."""
    if math.isclose(min(shares), max(shares), rel_tol=1e-9):
        return None
    return torch.tensor(shares, dtype=like.dtype, device=like.device)


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
        dtype = autocast or question.posterior.mean.dtype
        lower = question.posterior.mean.device.type == "cpu" and dtype not in (torch.float32, torch.float64)
        most = 1 if lower else _at_once(net, layout, question.x, rows)
        for draw in question.posterior.draws(samples, question.key):
            if block and (len(block) >= most or _shapes(block[0].question.x) != _shapes(question.x)):
                yield block
                block = []
            block.append(Drawn(number, question, draw))
    yield block


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
