"""What is seen of a training at the end of each epoch: losses, complexity, validation, who stops, who has diverged."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from doxa.contracts import Inputs, Record
from doxa.engine.checkpoint import Checkpointer, versions
from doxa.engine.context import StepContext
from doxa.engine.contracts import Beliefs, Gradient, State
from doxa.engine.recipes import materialised
from doxa.engine.run import Run
from doxa.engine.soundness import net_trouble, parameters_in_range
from doxa.engine.states import restore
from doxa.errors import BadInput, Diverged
from doxa.predict.belief import Belief
from doxa.predict.sweep import PredictionRequest, sweep
from doxa.terminal.progress import epoch_text
from doxa.weights.layout import Layout

# Numbers for the record, of each of some beliefs under way.
Watch = Callable[[list[Belief]], Sequence[Mapping[str, float]]]


@dataclass(frozen=True)
class Validation:
    """Rows to be scored on, one pair a member, and how many draws of the weights that takes."""

    held_out: Sequence[tuple[Inputs, Tensor]]
    samples: int


@dataclass(eq=False)
class EpochMonitor:
    """The histories of a run's members, and which of them rest: diverged, or long without a better validation score."""

    run: Run
    checkpointer: Checkpointer
    seeds: Sequence[int]  # one a member
    priors: Sequence[Any]
    settings: Sequence[dict[str, Any]]
    validation: Validation | None = None
    patience: int | None = None
    watch: Watch | None = None
    watch_every: int = 1
    histories: list[list[dict[str, float]]] = field(init=False)
    best_epochs: list[int] = field(init=False)
    troubles: dict[int, str] = field(init=False, default_factory=dict)  # of members of a fleet that have diverged

    def __post_init__(self) -> None:
        self.members = self.run.members
        self.loss_sums = torch.zeros(len(self.run.like), dtype=torch.float64, device=self.run.device)
        self.histories, self.best_epochs = [[] for _ in self.seeds], [-1] * len(self.seeds)

    def __getstate__(self) -> dict[str, Any]:
        """A copy for a worker: it keeps no records."""
        return {**self.__dict__, "watch": None}

    def rests(self, member: int) -> bool:
        """Whether a member has stopped early: it diverged, or its validation NLL has long not improved."""
        if member in self.troubles:
            return True
        waited = len(self.histories[member]) - 1 - self.best_epochs[member]
        return self.patience is not None and self.best_epochs[member] >= 0 and waited >= self.patience

    @property
    def over(self) -> bool:
        return all(self.rests(k) for k in range(self.members.count))

    def resting(self) -> list[bool]:
        return [self.rests(k) for k in range(self.members.count) for _ in range(self.members.nets)]

    def add(self, losses: Tensor) -> None:
        self.loss_sums += losses

    def check(self, losses: Tensor, context: StepContext) -> StepContext:
        # On a GPU asking would wait for the device: there it is asked once an epoch.
        if not bool(losses.isfinite().all()):
            self._rest_diverged(losses.tolist(), context)
        if not self.troubles:
            return context
        diverged = torch.tensor([k in self.troubles for k in range(self.members.count)])
        diverged = diverged.repeat_interleave(self.members.nets)
        rates, exact = (
            tuple(row.masked_fill(diverged, -1.0) for row in rows or ()) for rows in (context.rates, context.exact)
        )
        return context._replace(rates=rates, exact=exact)

    def _rest_diverged(self, losses: Sequence[float], context: StepContext) -> None:
        """Let the members rest whose loss is no number; alone, it is the end."""
        for net, loss in enumerate(losses):
            if not math.isfinite(loss) and not self.rests(net // self.members.nets):
                self._mark_diverged(net // self.members.nets, f"the loss became {loss}", net, context)

    def _mark_diverged(self, member: int, message: str, net: int, context: StepContext | None = None) -> None:
        if self.members.count == 1:
            raise self._divergence_error(message, net, context)
        self.troubles[member] = f"{message} at step {self.run.steps} (epoch {self._epoch(member)})"

    def _epoch(self, member: int) -> int:
        """The epoch that a member has come to, counted from 1: those before it are in its history."""
        return len(self.histories[member]) + 1

    def _divergence_error(self, message: str, net: int, context: StepContext | None) -> Diverged:
        bad_gradients = (
            [] if context is None else _bad_gradients(self.run.gradient, self.run.problem.layout, context, net)
        )
        gradient_note = f"; not finite: {', '.join(bad_gradients)}" if bad_gradients else ""
        checkpoint_note = f" The last good checkpoint is in {folder}." if (folder := self.checkpointer.saved_in) else ""
        net_note = f"net {net}: " if self.members.nets > 1 else ""  # of an ensemble
        return Diverged(
            f"{net_note}{message} at step {self.run.steps} (epoch {self._epoch(net // self.members.nets)})"
            f"{gradient_note}. Lower lr, scale the inputs to about unit size, or start from a smaller scale."
            f"{checkpoint_note}"
        )

    def end(self, numbers: Mapping[str, Tensor]) -> None:
        means = self.members.means(self.loss_sums / self.run.calendar.units_per_epoch)
        self.loss_sums.zero_()
        awake = self._awake_members(means)
        scores = self.validate(awake) if self.validation is not None and awake else {}
        beliefs = self.run.collector.beliefs()
        complexities = self.members.complexities(beliefs, awake)
        reports = self.members.reports(self.run.gradient.report(self.members.nets_of(awake)))
        for k, complexity, report in zip(awake, complexities, reports, strict=True):
            schedule_numbers = {name: float(values[k * self.members.nets]) for name, values in numbers.items()}
            row = {"nll": means[k], "kl": complexity.value, **schedule_numbers, **report}
            if self.validation is not None:
                row["validation_nll"] = scores[k]
                if math.isnan(scores[k]):
                    self._mark_diverged(k, "the validation NLL became nan", k * self.members.nets)
                    continue
            self.histories[k].append(row)
            if self.patience is not None and self._is_best(k):
                self.best_epochs[k] = len(self.histories[k]) - 1
                self.run.collector.improved(self.members.net_range(k))
        self._record_watch([k for k in awake if k not in self.troubles])

    def _awake_members(self, means: Sequence[float]) -> list[int]:
        """The members that learn on; who has diverged is told to rest."""
        in_range, awake = parameters_in_range(self.run.gradient), []
        for k, nll in enumerate(means):
            if self.rests(k):
                continue
            nets = self.members.net_range(k)
            trouble = self._member_trouble([j for j in nets if not in_range[j]])
            if not math.isfinite(nll) or trouble:
                self._mark_diverged(k, trouble or f"the mean loss of the epoch is {nll}", nets[0])
            else:
                awake.append(k)
        return awake

    def _member_trouble(self, nets: Sequence[int]) -> str | None:
        troubles = [
            (j, message) for j in nets if (message := net_trouble(self.run.gradient, self.run.problem.layout, j))
        ]
        several = self.members.nets > 1
        return "; ".join(f"member {j % self.members.nets}: {text}" if several else text for j, text in troubles) or None

    def _record_watch(self, members: Sequence[int]) -> None:
        """Add what the watch sees in the members awake to their histories."""
        if self.watch is None or not members or len(self.histories[members[0]]) % self.watch_every:
            return
        beliefs = self.run.collector.beliefs()
        watched_rows = self.watch([self.belief(k, beliefs) for k in members])
        if len(watched_rows) != len(members):
            raise BadInput(
                f"watch was shown {len(members)} beliefs and gave {len(watched_rows)} rows; it must give one for each"
            )
        for k, row in zip(members, watched_rows, strict=True):
            self.histories[k][-1] |= {name: float(value) for name, value in row.items()}

    def _is_best(self, member: int) -> bool:
        scores = [row["validation_nll"] for row in self.histories[member]]
        return self.best_epochs[member] < 0 or scores[-1] < scores[self.best_epochs[member]]

    def validate(self, members: Sequence[int]) -> dict[int, float]:
        """Validation NLL of the posterior predictive of some members, with the same draws' noise every epoch."""
        assert self.validation is not None
        held_out, beliefs, problem = self.validation.held_out, self.run.collector.beliefs(), self.run.problem
        requests = [
            PredictionRequest(
                self.members.posterior(beliefs, k),
                self.members.buffers(beliefs, k),
                held_out[k][0],
                (self.seeds[k], "validation"),
            )
            for k in members
        ]
        draws_by_member = sweep(
            problem.net,
            problem.layout,
            problem.likelihood,
            requests,
            self.validation.samples,
            autocast=problem.autocast,
        )
        scores = {}
        for k, draws in zip(members, draws_by_member, strict=True):
            log_p = draws.log_prob(held_out[k][1])
            scores[k] = -float((log_p.logsumexp(0) - math.log(len(log_p))).mean())
        return scores

    def beliefs(self) -> list[Belief | None]:
        """What each member believes now, with the record of how it came about; None of one that has diverged."""
        beliefs = self.run.collector.beliefs()
        return [None if k in self.troubles else self.belief(k, beliefs) for k in range(self.members.count)]

    def belief(self, member: int, beliefs: Beliefs) -> Belief:
        record = Record(
            {**self.settings[member], "steps": self._steps_taken(member), "versions": versions()},
            list(self.histories[member]),
        )
        return self.members.belief(self.run.problem, beliefs, member, self.priors[member], record)

    def _steps_taken(self, member: int) -> int:
        """Steps that a member has taken."""
        return len(self.histories[member]) * self.run.calendar.units_per_epoch if self.rests(member) else self.run.steps

    def progress_text(self) -> str:
        """The last epoch of every member in a line."""
        return epoch_text([rows[-1] for rows in self.histories if rows], self.members.count)

    def position(self) -> str:
        calendar = self.run.calendar
        epoch, epochs = self.run.steps // calendar.units_per_epoch + 1, calendar.units // calendar.units_per_epoch
        return f"at step {self.run.steps} of {calendar.units} (epoch {epoch} of {epochs})"

    def partial_result(self) -> Any:
        """What each member believes; those that rest, at their best."""
        self.run.finish([k for k in range(self.members.count) if self.rests(k)])
        beliefs = self.beliefs()
        return beliefs[0] if self.members.count == 1 else beliefs

    def state(self) -> State:
        troubles = {str(k): message for k, message in self.troubles.items()}
        numbers = {"histories": self.histories, "best_epochs": self.best_epochs, "troubles": troubles}
        return State(moving={"running": self.loss_sums}, numbers=numbers)

    def load(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        restore({"running": self.loss_sums}, tensors)
        _require_histories(numbers["histories"], numbers["best_epochs"], self.members.count)
        self.histories, self.best_epochs = numbers["histories"], numbers["best_epochs"]
        self.troubles = {int(k): message for k, message in numbers["troubles"].items()}


def _require_histories(histories: Any, best_epochs: Any, members: int) -> None:
    """Refuse what is not a list of rows and a best epoch for every member."""
    if not isinstance(histories, list) or not isinstance(best_epochs, list) or len(histories) != members:
        raise ValueError(f"histories and best_epochs must be lists, one entry for each of {members} members")
    for rows, best in zip(histories, best_epochs, strict=True):
        values = [value for row in rows for value in row.values()]
        if not all(type(value) in (int, float) for value in values):
            raise ValueError("histories must hold numbers")
        if type(best) is not int or not -1 <= best < max(len(rows), 1):
            raise ValueError(f"best_epochs holds {best!r:.80}, and there are {len(rows)} epochs")


def _bad_gradients(gradient: Gradient, layout: Layout, context: StepContext, net: int) -> list[str]:
    """The names of weights whose gradient is not finite."""
    names: list[str] = []
    for rows in materialised(gradient, context).values():
        grad = rows[net]
        if bool(grad.isfinite().all()):
            continue
        has_slots = grad.numel() in (layout.size, layout.random)
        slots_layout = layout if grad.numel() == layout.size else Layout(layout.random_slots)
        names += (
            [k for k, g in slots_layout.views(grad).items() if not bool(g.isfinite().all())] if has_slots else ["scale"]
        )
    return sorted({f"gradient of {name}" for name in names})
