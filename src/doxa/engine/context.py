"""What the parts are told of a step: a row of a table that is laid out before many of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from doxa.random.philox import Stream


class StepContext(NamedTuple):
    """One step, as K nets and G groups of parameters see it. In a recorded step all of it lies in device memory.

    `kl_weight` is β/N, the weight of the KL beside a row's NLL; a rate below zero lets a net's group rest. `scalars`
    are what the stepper asked for by number, one row a group: on the CPU as floats, in a recording [n].
    """

    stream: Stream  # the nets' random words
    kl_weight: Tensor  # [K]
    rates: Sequence[Tensor]  # G of [K]
    size: float | Tensor = 1.0  # N: rows of data
    scalars: Sequence[tuple[float, ...] | Tensor] = ((),)
    numbers: Mapping[str, Tensor] = {}  # [K] each, by the stepper's names
    position: int | Tensor = 0  # of the unit in its span; [1] in a recording
    part: int = 0  # of the unit: which of its steps
    exact: Sequence[Tensor] | None = None  # the rates in double precision on the CPU, but in a recording
    compiled: bool = False  # whether the nets run as torch.compile makes them

    def active(self, group: int = 0) -> Tensor:
        """Who takes the step [K, 1]; for `torch.where`, never for a product, which would keep NaN."""
        return (self.rates[group] >= 0)[:, None]

    def awake(self) -> Tensor:
        """Who takes the step with any group of its parameters [K, 1]."""
        found = self.active()
        for group in range(1, len(self.rates)):
            found = found | self.active(group)
        return found


FEW = 256  # steps whose numbers are made tensors of their own at a time


@dataclass(frozen=True)
class Numbers:
    """The numbers of some units on the CPU, in double precision: what schedules say, and who rests.

    Rows are steps: `kl_weights` [n, K], `rates` [n, G, K], `numbers` [n, K] each, `sizes` [n], `scalars` [n, G, m].
    """

    kl_weights: Tensor
    rates: Tensor
    numbers: Mapping[str, Tensor]
    sizes: Tensor
    scalars: Sequence[Sequence[tuple[float, ...]]]

    def packed(self) -> Tensor:
        """All of them as one matrix, [n, columns], as a recording reads it."""
        scalars = torch.tensor(self.scalars, dtype=torch.float64).flatten(1)
        numbers = [self.numbers[name] for name in sorted(self.numbers)]
        return torch.cat([self.kl_weights, self.rates.flatten(1), *numbers, self.sizes[:, None], scalars], 1)

    def contexts(self, words: Tensor, first: int, position: int, period: int, like: Tensor) -> Iterator[StepContext]:
        """The steps one by one, for those that run as they are written: from step `first` and a unit of the span on."""
        weights, rates = self.kl_weights.to(like), self.rates.to(like)
        named, sizes = {name: values.to(like) for name, values in self.numbers.items()}, self.sizes.tolist()
        for start in range(0, len(weights), FEW):
            few = slice(start, start + FEW)
            own = {name: values[few].unbind(0) for name, values in named.items()}
            rows = zip(weights[few].unbind(0), _by_group(rates[few]), _by_group(self.rates[few]), strict=True)
            for i, (weight, rate, exact) in enumerate(rows, start):
                unit, part = divmod(i, period)
                numbers = {name: values[i - start] for name, values in own.items()}
                scalars = self.scalars[i]
                stream = Stream(words, first + i)
                yield StepContext(stream, weight, rate, sizes[i], scalars, numbers, position + unit, part, exact)


class Table:
    """The same in a device's memory: as many units as a span has, of `period` steps each, and where a recording is."""

    def __init__(self, rows: Numbers, units: int, period: int, like: Tensor) -> None:
        self.names, self.period = sorted(rows.numbers), period
        self.nets, self.groups = rows.kl_weights.shape[1], rows.rates.shape[1]
        columns, self.own = rows.packed().shape[1], len(rows.scalars[0][0])
        self.values = like.new_ones(units, period, columns)
        self.rest()
        self.step, self.position = (torch.zeros(1, dtype=torch.int64, device=like.device) for _ in range(2))
        self.parts = torch.arange(period, device=like.device)

    def rest(self) -> None:
        """Let everybody rest, as while a step is recorded."""
        self.values[:, :, self.nets : self.nets * (1 + self.groups)] = -1.0

    def lay_out(self, rows: Numbers, step: int, position: int) -> None:
        """Rows of the units from a place of the span on, the first of which begins with a step of the run."""
        given = rows.packed()
        units = len(given) // self.period
        self.values[position : position + units] = given.view(units, self.period, -1).to(self.values)
        self.step.fill_(step)
        self.position.fill_(position)

    def contexts(self, words: Tensor, compiled: bool) -> list[StepContext]:
        """The steps of the unit at hand, as views of what a recording gathers when it is replayed."""
        (unit,) = self.values.index_select(0, self.position)
        steps = self.step if self.period == 1 else self.step + self.parts
        found = []
        for part in range(self.period):
            row, nets = unit[part], self.nets
            rates = row[nets : nets * (1 + self.groups)].view(self.groups, nets)
            first = nets * (1 + self.groups)
            numbers = {}
            for name in self.names:
                numbers[name], first = row[first : first + nets], first + nets
            scalars = row[first + 1 :].view(self.groups, self.own)
            found.append(
                StepContext(
                    Stream(words, steps[part]),
                    row[:nets],
                    rates,
                    row[first],
                    scalars,
                    numbers,
                    self.position,
                    part,
                    compiled=compiled,
                )
            )
        return found

    def advance(self) -> None:
        """On to the next unit: part of the recording."""
        self.step += self.period
        self.position += 1


def _by_group(rates: Tensor) -> list[tuple[Tensor, ...]]:
    """Rates [n, G, K] as a row for each group of each step."""
    return list(zip(*(rates[:, g].unbind(0) for g in range(rates.shape[1])), strict=True))
