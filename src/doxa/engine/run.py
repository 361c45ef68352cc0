"""A training under way: gradient, stepper and collector, on the batches of a source, watched over by a monitor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import torch
from torch import Tensor

from doxa.contracts import Batch, Moment, Problem, Schedule
from doxa.engine.capture import Recording, make_recording
from doxa.engine.context import StepContext, StepNumbers
from doxa.engine.contracts import (
    Collector,
    Exchange,
    Gradient,
    Group,
    Monitor,
    SharedGradient,
    Source,
    State,
    Stepper,
)
from doxa.engine.driver import advance_to_end
from doxa.engine.legacy_checkpoint import translate_legacy
from doxa.engine.members import Members
from doxa.engine.recipes import group_indices
from doxa.engine.soundness import state_trouble
from doxa.engine.states import restore, select_prefix
from doxa.errors import BadInput, Diverged
from doxa.random.keys import isolated_rng
from doxa.weights.layout import learning_mode
from doxa.weights.saved_layout import encode_layout


@dataclass(frozen=True)
class Calendar:
    """How many units there are, how many make an epoch for schedules, and a span for the CPU to have a say after."""

    units: int
    units_per_epoch: int
    units_per_span: int

    def moment(self, unit: int) -> Moment:
        return Moment(unit, self.units, unit % self.units_per_epoch, self.units_per_epoch)

    def step_moments(self, unit: int, count: int, period: int) -> list[Moment]:
        """Where the steps of some units stand, `period` of them in each: the minibatches of their epoch."""
        per_epoch = self.units_per_epoch * period
        steps = range(unit * period, (unit + count) * period)
        return [Moment(step, self.units * period, step % per_epoch, per_epoch) for step in steps]


class RunReporter(Protocol):
    """Who started a run, and is asked what to say of it."""

    def progress_text(self) -> str:
        """What it has come to, for a line of progress."""
        ...

    def position(self) -> str:
        """Where it stands, as in `at step 3 of 5`."""
        ...

    def partial_result(self) -> Any:
        """What is handed over where it is broken off."""
        ...


@dataclass(eq=False)
class Run:
    """K nets in training: all that a checkpoint holds, and how to go on."""

    problem: Problem
    members: Members
    gradient: Gradient
    stepper: Stepper
    collector: Collector
    source: Source
    net_seeds: Tensor  # [K]: the seed of each net's random words
    rates: Sequence[Schedule]  # one a net
    kl_weights: Sequence[Schedule]  # one a net
    calendar: Calendar
    data: Callable[[], Iterator[Batch]]  # a pass over all rows, for collectors that finish with some
    monitor: Monitor | None = None  # who watches over it knows it, and comes after it
    reporter: RunReporter | None = None
    steps: int = 0  # taken

    def __post_init__(self) -> None:
        self.recording: Recording | None = None
        self.period = self.source.period
        self.contexts: Iterator[StepContext] = iter(())
        self.observed_steps: frozenset[int] = frozenset()
        self.scheduled_units = (0, 0)  # the units that contexts or the recording's table are ready for
        self.last_numbers: dict[str, Tensor] = {}  # the rates and other numbers of the last step that is laid out
        self.progress_line: str | None = None
        # The unit up to which a group's steps were counted, and they.
        self.group_counts: dict[str, tuple[int, int]] = {}
        all_steps = range(self.calendar.units * self.source.period)
        self.observes_all = self.collector.moments(all_steps) is all_steps
        names, _ = group_indices(self.gradient)
        self.groups: list[Group] = [
            next(p.group for p in self.gradient.parameters if p.group.name == name) for name in names
        ]
        self.rates = self.stepper.schedules().get("rate", self.rates)

    def __getstate__(self) -> dict[str, Any]:
        """A copy for a worker: it records nothing, and lays its steps out anew."""
        fresh = {"recording": None, "contexts": iter(()), "scheduled_units": (0, 0)}
        return {**self.__dict__, **fresh}

    @property
    def device(self) -> torch.device:
        return self.net_seeds.device

    @property
    def like(self) -> Tensor:
        return self.gradient.parameters[0].values

    @property
    def span(self) -> int:
        """Units from one word of the CPU to the next."""
        return min(self.calendar.units_per_span, self.calendar.units)

    @property
    def required_monitor(self) -> Monitor:
        assert self.monitor is not None
        return self.monitor

    @property
    def _required_reporter(self) -> RunReporter:
        assert self.reporter is not None
        return self.reporter

    def position(self) -> str:
        return self._required_reporter.position()

    def partial_result(self) -> Any:
        return self._required_reporter.partial_result()

    @property
    def done(self) -> int:
        return self.steps // self.period

    @property
    def finished(self) -> bool:
        unit = self.steps // self.period
        return unit >= self.calendar.units or (unit % self.calendar.units_per_span == 0 and self.required_monitor.over)

    def record(self, steps: int) -> None:
        """Have units recorded, where they can be; a run of so many steps in all may repay compiling its nets too."""
        self.recording = make_recording(self, steps)

    def advance(self) -> str:
        """The next unit, with all that ends with it."""
        unit = self.steps // self.period
        if not self.scheduled_units[0] <= unit < self.scheduled_units[1]:
            self._prepare_span(unit)
        self.source.begin(unit)
        if self.recording is not None:
            self.recording.replay(unit)
        # What a recording read of its steps lies in its table: a collector that looks afterwards is told of them here.
        for context in islice(self.contexts, self.period if self.recording is None or self.observed_steps else 0):
            if self.recording is None:
                self.step(context)
        self.steps += self.period
        if self.observed_steps and self.steps - 1 in self.observed_steps:
            self.collector.observe(context)
        if unit + 1 == self.scheduled_units[1]:
            self.scheduled_units, self.progress_line = (0, 0), None
            self.required_monitor.end(self.last_numbers)
        if self.progress_line is None:
            self.progress_line = self._required_reporter.progress_text()
        return self.progress_line

    def step(self, context: StepContext) -> None:
        """One step of all nets; nothing in it waits for a device."""
        batch = self.source.batch(context)
        if batch is not None:
            losses = self.gradient.evaluate(batch, context)
            if context.exact is not None and not losses.is_cuda:
                context = self.required_monitor.check(losses, context)
            self.stepper.step(self.gradient, context)
            self.required_monitor.add(losses)
        if self.observes_all:
            self.collector.observe(context)

    def _prepare_span(self, unit: int) -> None:
        """Ask all schedules about the units up to the end of the span."""
        span, period = self.calendar.units_per_span, self.source.period
        end = min(unit - unit % span + span, self.calendar.units)
        numbers = self.step_numbers(unit, end - unit)
        self.scheduled_units = unit, end
        self.last_numbers = {"lr": numbers.rates[-1, 0], **{k: v[-1] for k, v in numbers.numbers.items()}}
        if self.recording is not None:
            self.recording.table.load_rows(numbers, self.steps, unit % span)
        self.contexts = numbers.contexts(self.net_seeds, self.steps, unit % span, period, self.like)
        steps = range(self.steps, end * period)
        self.observed_steps = frozenset() if self.observes_all else frozenset(self.collector.moments(steps))

    def step_numbers(self, unit: int, count: int) -> StepNumbers:
        """What schedules say of units, and who rests: a rate of −1."""
        period = self.source.period
        moments = [self.calendar.moment(u) for u in range(unit, unit + count)]
        sizes = torch.tensor([self.source.size(u) for u in range(unit, unit + count)], dtype=torch.float64)
        kl_weights = schedule_values(self.kl_weights, self.calendar.step_moments(unit, count, period))
        rates = schedule_values(self.rates, moments)
        bad = (~(rates >= 0) | rates.isinf()).nonzero().tolist()
        if bad:
            step, rate = moments[bad[0][0]].step, float(rates[*bad[0]])
            raise BadInput(
                f"the learning rate at step {step} is {rate}; a schedule gives numbers from 0 up, never negative ones"
            )
        resting = [k for k, rests in enumerate(self.required_monitor.resting()) if rests]
        rates[:, resting] = -1.0
        group_rates = torch.stack([self._group_rates(group, rates, moments) for group in self.groups], 1)
        stepper_numbers = {k: schedule_values(v, moments) for k, v in self.stepper.schedules().items() if k != "rate"}
        counts = [self._group_step_numbers(group, unit, count) for group in self.groups]
        scalars = [
            tuple(self.stepper.numbers(group_counts[i]) for group_counts in counts) for i in range(count * period)
        ]

        def steps(values: Tensor) -> Tensor:
            return values if period == 1 else values.repeat_interleave(period, 0)

        numbers = {k: steps(v) for k, v in stepper_numbers.items()}
        return StepNumbers(kl_weights / steps(sizes)[:, None], steps(group_rates), numbers, steps(sizes), scalars)

    def _group_rates(self, group: Group, rates: Tensor, moments: Sequence[Moment]) -> Tensor:
        if group.active is None:
            return rates
        inactive = torch.tensor([not group.active(moment) for moment in moments])
        return rates.masked_fill(inactive[:, None], -1.0)

    def _group_step_numbers(self, group: Group, unit: int, count: int) -> list[int]:
        """The number of a group's own step at each step of some units, counted from 1."""
        period = self.source.period
        if group.active is None:
            return list(range(unit * period + 1, (unit + count) * period + 1))
        counted_to, steps_taken = self.group_counts.get(group.name, (0, 0))
        if counted_to > unit:
            counted_to, steps_taken = 0, 0
        steps_taken += sum(group.active(self.calendar.moment(u)) for u in range(counted_to, unit)) * period
        self.group_counts[group.name] = unit, steps_taken
        numbers = []
        for u in range(unit, unit + count):
            moves = group.active(self.calendar.moment(u))
            numbers += [steps_taken + 1 + i * moves for i in range(period)]
            steps_taken += period * moves
        return numbers

    def stateful_parts(self) -> dict[str, Any]:
        """Whatever has a state, by the name that it has in a checkpoint."""
        return {
            "training": self.gradient,
            "optimiser": self.stepper,
            "collector": self.collector,
            "source": self.source,
            "monitor": self.required_monitor,
        }

    def follow(self, exchange: Exchange) -> None:
        """Go on beside the run that this is a copy of, by what it and all others find."""
        assert isinstance(self.gradient, SharedGradient)
        self.gradient.exchange = exchange
        with training_context(self.problem, self.device):
            advance_to_end(self)

    def finish(self, members: Sequence[int]) -> None:
        """Let members make of what was kept what there is to make."""
        self.collector.finish(self.members.nets_of(members), self.data)

    def release(self) -> None:
        """Let go of the recording and of who watches, which know the run in turn.

        So a device's memory is given back at once, not when Python next looks for circles of references.
        """
        self.recording, self.monitor, self.reporter, self.contexts = None, None, None, iter(())

    def pack(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        states = self._sound_states()
        tensors = {f"{name}.{k}": t for name, state in states.items() for k, t in state.tensors.items()}
        layout = encode_layout(self.problem.layout)
        numbers = {name: dict(s.numbers) for name, s in states.items()}
        return {"layout": layout, "done": self.steps, "numbers": numbers}, tensors

    def unpack(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Go on where it was packed; Diverged, where nobody should."""
        header, tensors = translate_legacy(header, tensors, self.members.nets)
        if type(header["done"]) is not int or header["done"] < 0 or header["done"] % self.source.period:
            raise ValueError(f"done is {header['done']!r:.80}, not a number of steps")
        for name in ("training", "source"):
            restore(self.stateful_parts()[name].state().tensors, tensors, f"{name}.")
        for name in ("optimiser", "collector", "monitor"):
            self.stateful_parts()[name].load(select_prefix(tensors, f"{name}."), header["numbers"][name])
        self.steps = header["done"]
        self._sound_states()

    def _sound_states(self) -> dict[str, State]:
        """What all parts remember, if it is something to go on with."""
        states: dict[str, State] = {name: part.state() for name, part in self.stateful_parts().items()}
        trouble = state_trouble(self.gradient, self.problem, self.required_monitor.resting(), states)
        if trouble is not None:
            raise Diverged(trouble)
        return states


def schedule_values(schedules: Sequence[Schedule], moments: Sequence[Moment]) -> Tensor:
    """Numbers of each schedule at some moments [moments, K], in double precision; of equal ones one alone is asked."""
    values_by_schedule: dict[Any, Tensor] = {}
    keys = [_schedule_key(schedule) for schedule in schedules]
    for key, schedule in zip(keys, schedules, strict=True):
        if key not in values_by_schedule:
            values = [float(schedule(moment)) for moment in moments]
            values_by_schedule[key] = torch.tensor(values, dtype=torch.float64)
    return torch.stack([values_by_schedule[key] for key in keys], 1)


def _schedule_key(schedule: Schedule) -> Any:
    """What a schedule is known by: itself, or its place in memory where its class does not say which are equal."""
    try:
        hash(schedule)
    except TypeError:
        return id(schedule)
    return schedule


@contextmanager
def training_context(problem: Problem, device: torch.device) -> Iterator[None]:
    """The device, the net's mode and the generators as a training needs them; all get back what they had."""
    device_context = torch.cuda.device(device) if device.type == "cuda" else nullcontext()
    with device_context, isolated_rng(device), learning_mode(problem.net), torch.enable_grad():
        yield
