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
        mask = self.active()
        for group in range(1, len(self.rates)):
            mask = mask | self.active(group)
        return mask


CHUNK_STEPS = 256  # steps whose numbers are made tensors of their own at a time


@dataclass(frozen=True)
class StepNumbers:
    """The numbers of some units on the CPU, in double precision: what schedules say, and who rests.

    Rows are steps: `kl_weights` [n, K], `rates` [n, G, K], `numbers` [n, K] each, `sizes` [n], `scalars` [n, G, m].
    """

    kl_weights: Tensor
    rates: Tensor
    numbers: Mapping[str, Tensor]
    sizes: Tensor
    scalars: Sequence[Sequence[tuple[float, ...]]]

    def as_matrix(self) -> Tensor:
        """All of them as one matrix, [n, columns], as a recording reads it."""
        scalars = torch.tensor(self.scalars, dtype=torch.float64).flatten(1)
        numbers = [self.numbers[name] for name in sorted(self.numbers)]
        return torch.cat([self.kl_weights, self.rates.flatten(1), *numbers, self.sizes[:, None], scalars], 1)

    def contexts(
        self, net_seeds: Tensor, first: int, position: int, period: int, like: Tensor
    ) -> Iterator[StepContext]:
        """The steps one by one, for those that run as they are written: from step `first` and a unit of the span on."""
        kl_weights, rates = self.kl_weights.to(like), self.rates.to(like)
        device_numbers, sizes = {name: values.to(like) for name, values in self.numbers.items()}, self.sizes.tolist()
        for start in range(0, len(kl_weights), CHUNK_STEPS):
            chunk = slice(start, start + CHUNK_STEPS)
            chunk_numbers = {name: values[chunk].unbind(0) for name, values in device_numbers.items()}
            rows = zip(kl_weights[chunk].unbind(0), _by_group(rates[chunk]), _by_group(self.rates[chunk]), strict=True)
            for i, (kl_weight, step_rates, exact_rates) in enumerate(rows, start):
                unit, part = divmod(i, period)
                numbers = {name: values[i - start] for name, values in chunk_numbers.items()}
                scalars = self.scalars[i]
                stream = Stream(net_seeds, first + i)
                yield StepContext(
                    stream, kl_weight, step_rates, sizes[i], scalars, numbers, position + unit, part, exact_rates
                )


class ContextTable:
    """The same in a device's memory: as many units as a span has, of `period` steps each, and where a recording is."""

    def __init__(self, rows: StepNumbers, units: int, period: int, like: Tensor) -> None:
        self.names, self.period = sorted(rows.numbers), period
        self.nets, self.groups = rows.kl_weights.shape[1], rows.rates.shape[1]
        columns, self.scalar_count = rows.as_matrix().shape[1], len(rows.scalars[0][0])
        self.values = like.new_ones(units, period, columns)
        self.rest_all()
        self.step, self.position = (torch.zeros(1, dtype=torch.int64, device=like.device) for _ in range(2))
        self.parts = torch.arange(period, device=like.device)

    def rest_all(self) -> None:
        """Let everybody rest, as while a step is recorded."""
        self.values[:, :, self.nets : self.nets * (1 + self.groups)] = -1.0

    def load_rows(self, rows: StepNumbers, step: int, position: int) -> None:
        """Rows of the units from a place of the span on, the first of which begins with a step of the run."""
        matrix = rows.as_matrix()
        units = len(matrix) // self.period
        self.values[position : position + units] = matrix.view(units, self.period, -1).to(self.values)
        self.step.fill_(step)
        self.position.fill_(position)

    def contexts(self, net_seeds: Tensor, compiled: bool) -> list[StepContext]:
        """The steps of the unit at hand, as views of what a recording gathers when it is replayed."""
        (unit,) = self.values.index_select(0, self.position)
        steps = self.step if self.period == 1 else self.step + self.parts
        contexts = []
        for part in range(self.period):
            row, nets = unit[part], self.nets
            rates = row[nets : nets * (1 + self.groups)].view(self.groups, nets)
            column = nets * (1 + self.groups)
            numbers = {}
            for name in self.names:
                numbers[name], column = row[column : column + nets], column + nets
            scalars = row[column + 1 :].view(self.groups, self.scalar_count)
            contexts.append(
                StepContext(
                    Stream(net_seeds, steps[part]),
                    row[:nets],
                    rates,
                    row[column],
                    scalars,
                    numbers,
                    self.position,
                    part,
                    compiled=compiled,
                )
            )
        return contexts

    def advance(self) -> None:
        """On to the next unit: part of the recording."""
        self.step += self.period
        self.position += 1


def _by_group(rates: Tensor) -> list[tuple[Tensor, ...]]:
    """Rates [n, G, K] as a row for each group of each step."""
    return list(zip(*(rates[:, g].unbind(0) for g in range(rates.shape[1])), strict=True))
