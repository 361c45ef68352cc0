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
from doxa.engine.before import translated
from doxa.engine.capture import Recording, captured
from doxa.engine.context import Numbers, StepContext
from doxa.engine.contracts import Collector, Gradient, Group, Monitor, Source, State, Stepper
from doxa.engine.driver import accompany
from doxa.engine.members import Members
from doxa.engine.recipes import group_numbers
from doxa.engine.states import restore, under
from doxa.errors import BadInput
from doxa.random.keys import isolated
from doxa.weights.layout import learning
from doxa.weights.saved_layout import encode_layout


@dataclass(frozen=True)
class Calendar:
    """How many units there are, how many make an epoch for schedules, and a span for the CPU to have a say after."""

    units: int
    epoch: int
    span: int

    def moment(self, unit: int) -> Moment:
        return Moment(unit, self.units, unit % self.epoch, self.epoch)


class Front(Protocol):
    """Who started a run, and is asked what to say of it."""

    def words(self) -> str:
        """What it has come to, for a line of progress."""
        ...

    def place(self) -> str:
        """Where it stands, as in `at step 3 of 5`."""
        ...

    def found(self) -> Any:
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
    words: Tensor  # [K]: the seed of each net's random words
    rates: Sequence[Schedule]  # one a net
    kl_weights: Sequence[Schedule]  # one a net
    calendar: Calendar
    data: Callable[[], Iterator[Batch]]  # a pass over all rows, for collectors that finish with some
    monitor: Monitor | None = None  # who watches over it knows it, and comes after it
    front: Front | None = None
    steps: int = 0  # taken

    def __post_init__(self) -> None:
        self.recording: Recording | None = None
        self.period = self.source.period
        self.contexts: Iterator[StepContext] = iter(())
        self.wanted: frozenset[int] = frozenset()
        self.laid_out = (0, 0)  # the units that contexts or the recording's table are ready for
        self.last: dict[str, Tensor] = {}  # the rates and other numbers of the last step that is laid out
        self.said: str | None = None
        self.counted: dict[str, tuple[int, int]] = {}  # the unit up to which a group's steps were counted, and they
        every = range(self.calendar.units * self.source.period)
        self.observes_all = self.collector.moments(every) is every
        names, _ = group_numbers(self.gradient)
        self.groups: list[Group] = [
            next(p.group for p in self.gradient.parameters if p.group.name == name) for name in names
        ]
        self.rates = self.stepper.schedules().get("rate", self.rates)

    def __getstate__(self) -> dict[str, Any]:
        """A copy for a worker: it records nothing, and lays its steps out anew."""
        fresh = {"recording": None, "contexts": iter(()), "laid_out": (0, 0)}
        return {**self.__dict__, **fresh}

    @property
    def device(self) -> torch.device:
        return self.words.device

    @property
    def like(self) -> Tensor:
        return self.gradient.parameters[0].values

    @property
    def span(self) -> int:
        """Units from one word of the CPU to the next."""
        return min(self.calendar.span, self.calendar.units)

    @property
    def watch(self) -> Monitor:
        assert self.monitor is not None
        return self.monitor

    @property
    def _front(self) -> Front:
        assert self.front is not None
        return self.front

    def place(self) -> str:
        return self._front.place()

    def found(self) -> Any:
        return self._front.found()

    @property
    def done(self) -> int:
        return self.steps // self.period

    @property
    def finished(self) -> bool:
        unit = self.steps // self.period
        return unit >= self.calendar.units or (unit % self.calendar.span == 0 and self.watch.over)

    def record(self, steps: int) -> None:
        """Have units recorded, where they can be; a run of so many steps in all may repay compiling its nets too."""
        self.recording = captured(self, steps)

    def advance(self) -> str:
        """The next unit, with all that ends with it."""
        unit = self.steps // self.period
        if not self.laid_out[0] <= unit < self.laid_out[1]:
            self._lay_out(unit)
        self.source.begin(unit)
        if self.recording is not None:
            self.recording.replay(unit)
        # What a recording read of its steps lies in its table: a collector that looks afterwards is told of them here.
        for context in islice(self.contexts, self.period if self.recording is None or self.wanted else 0):
            if self.recording is None:
                self.step(context)
        self.steps += self.period
        if self.wanted and self.steps - 1 in self.wanted:
            self.collector.observe(context)
        if unit + 1 == self.laid_out[1]:
            self.laid_out, self.said = (0, 0), None
            self.watch.end(self.last)
        if self.said is None:
            self.said = self._front.words()
        return self.said

    def step(self, context: StepContext) -> None:
        """One step of all nets; nothing in it waits for a device."""
        batch = self.source.batch(context)
        if batch is not None:
            losses = self.gradient.evaluate(batch, context)
            if context.exact is not None and not losses.is_cuda:
                context = self.watch.check(losses, context)
            self.stepper.step(self.gradient, context)
            self.watch.add(losses)
        if self.observes_all:
            self.collector.observe(context)

    def _lay_out(self, unit: int) -> None:
        """Ask all schedules about the units up to the end of the span."""
        span, period = self.calendar.span, self.source.period
        end = min(unit - unit % span + span, self.calendar.units)
        numbers = self.numbers(unit, end - unit)
        self.laid_out = unit, end
        self.last = {"lr": numbers.rates[-1, 0], **{k: v[-1] for k, v in numbers.numbers.items()}}
        if self.recording is not None:
            self.recording.table.lay_out(numbers, self.steps, unit % span)
        self.contexts = numbers.contexts(self.words, self.steps, unit % span, period, self.like)
        steps = range(self.steps, end * period)
        self.wanted = frozenset() if self.observes_all else frozenset(self.collector.moments(steps))

    def numbers(self, unit: int, count: int) -> Numbers:
        """What schedules say of units, and who rests: a rate of −1."""
        period = self.source.period
        moments = [self.calendar.moment(u) for u in range(unit, unit + count)]
        sizes = torch.tensor([self.source.size(u) for u in range(unit, unit + count)], dtype=torch.float64)
        weights = columns(self.kl_weights, moments) / sizes[:, None]
        rates = columns(self.rates, moments)
        bad = (~(rates >= 0) | rates.isinf()).nonzero().tolist()
        if bad:
            step, rate = moments[bad[0][0]].step, float(rates[*bad[0]])
            raise BadInput(
                f"the learning rate at step {step} is {rate}; a schedule gives numbers from 0 up, never negative ones"
            )
        resting = [k for k, rests in enumerate(self.watch.resting()) if rests]
        rates[:, resting] = -1.0
        each = torch.stack([self._active(group, rates, moments) for group in self.groups], 1)
        own = {k: columns(v, moments) for k, v in self.stepper.schedules().items() if k != "rate"}
        counts = [self._counts(group, unit, count) for group in self.groups]
        scalars = [tuple(self.stepper.numbers(of[i]) for of in counts) for i in range(count * period)]

        def steps(of_units: Tensor) -> Tensor:
            return of_units if period == 1 else of_units.repeat_interleave(period, 0)

        named = {k: steps(v) for k, v in own.items()}
        return Numbers(steps(weights), steps(each), named, steps(sizes), scalars)

    def _active(self, group: Group, rates: Tensor, moments: Sequence[Moment]) -> Tensor:
        if group.active is None:
            return rates
        off = torch.tensor([not group.active(moment) for moment in moments])
        return rates.masked_fill(off[:, None], -1.0)

    def _counts(self, group: Group, unit: int, count: int) -> list[int]:
        """The number of a group's own step at each step of some units, counted from 1."""
        period = self.source.period
        if group.active is None:
            return list(range(unit * period + 1, (unit + count) * period + 1))
        known, taken = self.counted.get(group.name, (0, 0))
        if known > unit:
            known, taken = 0, 0
        taken += sum(group.active(self.calendar.moment(u)) for u in range(known, unit)) * period
        self.counted[group.name] = unit, taken
        found = []
        for u in range(unit, unit + count):
            moves = group.active(self.calendar.moment(u))
            found += [taken + 1 + i * moves for i in range(period)]
            taken += period * moves
        return found

    def parts(self) -> dict[str, Any]:
        """Whatever has a state, by the name that it has in a checkpoint."""
        return {
            "training": self.gradient,
            "optimiser": self.stepper,
            "collector": self.collector,
            "source": self.source,
            "monitor": self.watch,
        }

    def follow(self, exchange: Any) -> None:
        """Go on beside the run that this is a copy of, by what it and all others find."""
        gradient: Any = self.gradient
        gradient.exchange = exchange
        with at_work(self.problem, self.device):
            accompany(self)

    def finish(self, members: Sequence[int]) -> None:
        """Let members make of what was kept what there is to make."""
        self.collector.finish(self.members.nets_of(members), self.data)

    def release(self) -> None:
        """Let go of the recording and of who watches, which know the run in turn.

        So a device's memory is given back at once, not when Python next looks for circles of references.
        """
        self.recording, self.monitor, self.front, self.contexts = None, None, None, iter(())

    def pack(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        states: dict[str, State] = {name: part.state() for name, part in self.parts().items()}
        tensors = {f"{name}.{k}": t for name, state in states.items() for k, t in state.tensors.items()}
        layout = encode_layout(self.problem.layout)
        numbers = {name: dict(s.numbers) for name, s in states.items()}
        return {"layout": layout, "done": self.steps, "numbers": numbers}, tensors

    def unpack(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Go on where it was packed."""
        header, tensors = translated(header, tensors, self.members.nets)
        for name in ("training", "source"):
            restore(self.parts()[name].state().tensors, tensors, f"{name}.")
        for name in ("optimiser", "collector", "monitor"):
            self.parts()[name].load(under(tensors, f"{name}."), header["numbers"][name])
        self.steps = header["done"]


def columns(schedules: Sequence[Schedule], moments: Sequence[Moment]) -> Tensor:
    """Each schedule's numbers at some moments [moments, K], in double precision; each is asked once."""
    made: dict[int, list[float]] = {}
    for schedule in schedules:
        if id(schedule) not in made:
            made[id(schedule)] = [float(schedule(moment)) for moment in moments]
    return torch.tensor([made[id(schedule)] for schedule in schedules], dtype=torch.float64).T.contiguous()


@contextmanager
def at_work(problem: Problem, device: torch.device) -> Iterator[None]:
    """The device, the net's mode and the generators as a training needs them; all get back what they had."""
    here = torch.cuda.device(device) if device.type == "cuda" else nullcontext()
    with here, isolated(device), learning(problem.net), torch.enable_grad():
        yield
