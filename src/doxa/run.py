"""A training under way: steps, epochs, early stopping, checkpoints, exact resume."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from doxa.belief import Belief
from doxa.capture import Captured, captured
from doxa.contracts import Batch, Inputs, Learner, Moment, Now, Problem, Record, Schedule, Training
from doxa.errors import BadInput, Diverged, Interrupted
from doxa.feed import Feed
from doxa.flat import FAR
from doxa.layout import Layout
from doxa.optimisers.torchs import TorchAtWork
from doxa.philox import Stream
from doxa.progress import Progress
from doxa.resume import BELIEF, CHECKPOINT, save, versions
from doxa.sweep import Question, sweep

# Numbers for the record, of each of some beliefs under way.
Watch = Callable[[list[Belief]], Sequence[Mapping[str, float]]]


@dataclass
class Run:
    """The training of a fleet under way: all that a checkpoint holds, and how to go on. A fit is a fleet of one."""

    problem: Problem
    learners: Sequence[Learner]  # one a member
    priors: Sequence[Any]
    source: Feed
    training: Training
    optimiser: Any
    rates: Sequence[Schedule] | None  # one a member; None leaves the optimiser's own
    epochs: int
    seeds: Sequence[int]  # one a member
    numbers: Sequence[int | None]  # one a member: its place in the fleet, of which this may be a part
    words: Tensor  # [K]: the seed of each net's random words
    held_out: Sequence[tuple[Inputs, Tensor]] | None  # one a member
    validation_samples: int
    patience: int | None
    folder: Path | None
    every: int
    settings: Sequence[dict[str, Any]]  # one a member
    watch: Watch | None = None
    watch_every: int = 1  # epochs
    done: int = 0  # steps taken
    best: dict[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        device, members = self.problem.start.device, len(self.learners)
        self.running = torch.zeros(self.training.nets, dtype=torch.float64, device=device)
        self.histories: list[list[dict[str, float]]] = [[] for _ in range(members)]
        self.best_epochs = [-1] * members
        self.troubles: dict[int, str] = {}  # of members of a fleet that have diverged
        self.fast: Captured | None = None

    @property
    def steps(self) -> int:
        return self.epochs * self.source.batches

    @property
    def members(self) -> int:
        return len(self.learners)

    def resting(self, member: int) -> bool:
        """Whether a member has stopped early: it diverged, or its validation NLL has long not improved."""
        if member in self.troubles:
            return True
        waited = len(self.histories[member]) - 1 - self.best_epochs[member]
        return self.patience is not None and self.best_epochs[member] >= 0 and waited >= self.patience

    @property
    def finished(self) -> bool:
        stopped = all(self.resting(k) for k in range(self.members))
        return self.done >= self.steps or (stopped and self.done % self.source.batches == 0)

    def go(self, stop: threading.Event, progress: Progress) -> None:
        """Step until finished, or until asked to stop."""
        batches = self.source.batches
        if not self.finished:
            left = self.steps - self.done
            self.fast = captured(self.problem, self.training, self.optimiser, self.source, self.words, left)
            if self.fast is not None:
                self.fast.running.copy_(self.running)
                self.running = self.fast.running
        with progress as shown:
            shown.epoch([rows[-1] for rows in self.histories if rows])
            while not self.finished:
                epoch, skip = divmod(self.done, batches)
                weights, rates = self.score(epoch, skip)
                for _ in self.steps_of(epoch, skip, weights, rates):
                    shown.step(self.done)
                    if stop.is_set():
                        break
                if self.done % batches == 0:
                    self.end_epoch(rates[-1].tolist())
                    shown.epoch([rows[-1] for rows in self.histories if rows])
                    if self.folder is not None and ((epoch + 1) % self.every == 0 or self.finished):
                        save(self)
                if stop.is_set() and not self.finished:
                    self.interrupted()

    def score(self, epoch: int, skip: int) -> tuple[Tensor, Tensor]:
        """The KL weight over N and the rate of every net [batches, K], from a batch of an epoch on; −1 lets it rest.

        The rates are in double precision, as torch's optimisers take them.
        """
        batches, nets = self.source.batches, self.training.nets // self.members
        moments = [Moment(epoch * batches + b, self.steps, b, batches) for b in range(skip, batches)]
        weights = _columns([own.kl_weight for own in self.learners], moments) / self.source.size
        rates = torch.zeros_like(weights) if self.rates is None else _columns(self.rates, moments)
        bad = (~(rates >= 0) | rates.isinf()).nonzero().tolist()
        if bad:
            step, rate = moments[bad[0][0]].step, float(rates[*bad[0]])
            raise BadInput(f"the learning rate at step {step} is {rate}; a schedule gives numbers from 0 up")
        rates[:, [k for k in range(self.members) if self.resting(k)]] = -1.0
        weights, rates = (found.repeat_interleave(nets, 1) for found in (weights, rates))
        return weights.to(self.problem.start), rates

    def steps_of(self, epoch: int, skip: int, weights: Tensor, rates: Tensor) -> Iterator[None]:
        """Take an epoch's steps from a batch on: replayed where they are captured, else as they are written."""
        if self.fast is not None:
            numbers = range(self.done + 1, self.done + 1 + len(weights))
            corrections = torch.tensor([self.optimiser.corrections(n) for n in numbers], dtype=torch.float64)
            self.fast.begin(epoch, skip, self.done, weights, rates, corrections)
            for number in range(skip, self.source.batches):
                self.fast.replay(number)
                self.done += 1
                yield
            return
        given = rates.to(weights)
        for i, batch in enumerate(self.source.epoch(epoch, self.words, skip)):
            self.step(batch, weights[i], given[i], rates[i])
            yield

    def step(self, batch: Batch, weights: Tensor, rates: Tensor, exact: Tensor) -> None:
        now = Now(Stream(self.words, self.done), weights)
        losses = self.training.step(batch, now)
        # On a GPU asking would wait for the device: there it is asked once an epoch.
        if losses.device.type == "cpu" and not bool(losses.isfinite().all()):
            self._lose(losses.tolist(), now)
        if self.troubles:
            lost = torch.tensor([k in self.troubles for k in range(self.members)])
            lost = lost.repeat_interleave(self.training.nets // self.members)
            rates, exact = rates.masked_fill(lost.to(rates.device), -1.0), exact.masked_fill(lost, -1.0)
        corrections = self.optimiser.corrections(self.done + 1)
        self.optimiser.step(now, exact if isinstance(self.optimiser, TorchAtWork) else rates, corrections)
        self.running += losses
        self.done += 1

    def _lose(self, losses: Sequence[float], now: Now) -> None:
        """Let the members rest whose loss is no number; alone, it is the end."""
        nets = self.training.nets // self.members
        for net, loss in enumerate(losses):
            if math.isfinite(loss) or self.resting(net // nets):
                continue
            if self.members == 1:
                self.training.fill_gradients(now)
            self._fell(net // nets, f"the loss became {loss}", net)

    def _fell(self, member: int, what: str, net: int) -> None:
        epoch = self.done // self.source.batches + 1
        if self.members == 1:
            raise self.diverged(what, net)
        self.troubles[member] = f"{what} at step {self.done} (epoch {epoch})"

    def end_epoch(self, rates: Sequence[float]) -> None:
        nets = self.training.nets // self.members
        means = (self.running / self.source.batches).view(-1, nets).mean(1).tolist()
        self.running.zero_()
        calm = all_calm(self.training)
        awake = []
        for k, nll in enumerate(means):
            if self.resting(k):
                continue
            trouble = None if calm[k] else self.training.trouble(k)
            if not math.isfinite(nll) or trouble:
                self._fell(k, trouble or f"the mean loss of the epoch is {nll}", k * nets)
            else:
                awake.append(k)
        scores = self.validate(awake) if self.held_out is not None and awake else {}
        for k, complexity in zip(awake, self.training.complexities(awake), strict=True):
            rate = (self.optimiser.rates if isinstance(self.optimiser, TorchAtWork) else rates)[k * nets]
            row = {"nll": means[k], "kl": complexity.value, "lr": rate, **self.training.told(k)}
            if self.held_out is not None:
                row["validation_nll"] = scores[k]
                if math.isnan(scores[k]):
                    self._fell(k, "the validation NLL became nan", k * nets)
                    continue
            self.histories[k].append(row)
            if self.patience is not None and self._is_best(k):
                self.best_epochs[k] = len(self.histories[k]) - 1
                self._keep(k, nets)
        self._watched([k for k in awake if k not in self.troubles])

    def _watched(self, members: Sequence[int]) -> None:
        """Add what the watch sees in the members awake to their histories."""
        if self.watch is None or not members or len(self.histories[members[0]]) % self.watch_every:
            return
        seen = self.watch([self.belief(k) for k in members])
        if len(seen) != len(members):
            raise BadInput(
                f"watch was shown {len(members)} beliefs and gave {len(seen)} rows; it must give one for each"
            )
        for k, row in zip(members, seen, strict=True):
            self.histories[k][-1] |= {name: float(value) for name, value in row.items()}

    def _is_best(self, member: int) -> bool:
        scores = [row["validation_nll"] for row in self.histories[member]]
        return self.best_epochs[member] < 0 or scores[-1] < scores[self.best_epochs[member]]

    def _keep(self, member: int, nets: int) -> None:
        """Remember a member's state as the best so far."""
        own = slice(member * nets, (member + 1) * nets)
        for name, tensor in self.training.state().items():
            if name not in self.best:
                self.best[name] = tensor.detach().clone()
            self.best[name][own] = tensor.detach()[own]

    @torch.no_grad()
    def _settle(self, members: Sequence[int]) -> None:
        """Put members back to the best that they have been, where patience kept it."""
        nets = self.training.nets // self.members
        for name, tensor in self.training.state().items():
            for k in members:
                if self.best and self.best_epochs[k] >= 0:
                    own = slice(k * nets, (k + 1) * nets)
                    tensor[own] = self.best[name][own]

    def validate(self, members: Sequence[int]) -> dict[int, float]:
        """Validation NLL of the posterior predictive of some members, with the same draws' noise every epoch."""
        assert self.held_out is not None
        questions = [
            Question(
                self.training.posterior(k),
                self.training.buffers(k),
                self.held_out[k][0],
                (self.seeds[k], "validation"),
            )
            for k in members
        ]
        problem = self.problem
        answers = sweep(
            problem.net,
            problem.layout,
            problem.likelihood,
            questions,
            self.validation_samples,
            autocast=problem.autocast,
        )
        found = {}
        for k, draws in zip(members, answers, strict=True):
            log_p = draws.log_prob(self.held_out[k][1])
            found[k] = -float((log_p.logsumexp(0) - math.log(len(log_p))).mean())
        return found

    def diverged(self, what: str, net: int) -> Diverged:
        epoch = self.done // self.source.batches + 1
        bad = [f"gradient of {n}" for n in self._bad_gradients(net)]
        where = f"; not finite: {', '.join(bad)}" if bad else ""
        good = self.folder is not None and (self.folder / CHECKPOINT).exists()
        saved = f" The last good checkpoint is in {self.folder}." if good else ""
        who = f"net {net}: " if self.training.nets > 1 else ""  # of an ensemble
        return Diverged(
            f"{who}{what} at step {self.done} (epoch {epoch}){where}. Lower lr, scale the inputs to about unit size, "
            f"or start from a smaller scale.{saved}"
        )

    def _bad_gradients(self, net: int) -> list[str]:
        names = []
        for p in self.training.parameters:
            if p.grad is None or bool(p.grad[net].isfinite().all()):
                continue
            grad = p.grad[net]
            fits = grad.numel() in (self.problem.layout.size, self.problem.layout.random)
            layout = self.problem.layout if grad.numel() == self.problem.layout.size else _random(self.problem.layout)
            names += [k for k, g in layout.views(grad).items() if not bool(g.isfinite().all())] if fits else ["scale"]
        return sorted(set(names))

    def interrupted(self) -> None:
        epoch = self.done // self.source.batches + 1
        words = f"stopped at step {self.done} of {self.steps} (epoch {epoch} of {self.epochs})"
        if self.folder is None:
            words += (
                "; nothing was saved, since no checkpoint folder was given: this error's .belief holds what was learned"
            )
        else:
            save(self)
            words += f"; saved in {self.folder}. Go on with the same call and resume=True"
        self._settle([k for k in range(self.members) if self.resting(k)])
        found = self.beliefs()
        raise Interrupted(words, found[0] if self.members == 1 else found)

    def beliefs(self) -> list[Belief | None]:
        """What each member believes now, with the record of how it came about; None of one that has diverged."""
        return [None if k in self.troubles else self.belief(k) for k in range(self.members)]

    def belief(self, member: int) -> Belief:
        return Belief(
            net=self.problem.net,
            likelihood=self.problem.likelihood,
            posterior=self.training.posterior(member),
            layout=self.problem.layout,
            buffers=self.training.buffers(member),
            prior=self.priors[member],
            noise=self.training.noise,
            record=Record(
                {**self.settings[member], "steps": self._taken(member), "versions": versions()},
                list(self.histories[member]),
            ),
        )

    def _taken(self, member: int) -> int:
        """Steps that a member has taken."""
        return len(self.histories[member]) * self.source.batches if self.resting(member) else self.done

    def close(self) -> list[Belief]:
        """The finished beliefs: the best ones where patience kept them, also as files in the run's folder."""
        self._settle(range(self.members))
        found = self.beliefs()
        if self.folder is not None:
            for belief, number in zip(found, self.numbers, strict=True):
                if belief is not None:
                    belief.save(self.folder / (BELIEF if number is None else f"belief-{number}.doxa"))
        if self.troubles:
            raise Diverged.some(self.troubles, found)
        return [belief for belief in found if belief is not None]


def all_calm(training: Training) -> list[bool]:
    """Whether each member's parameters are so small that nothing can be wrong with them: one question for all.

    A GPU is slow to answer many.
    """
    small = [(p.detach().abs() < FAR).flatten(1).all(1) for p in training.parameters]
    found: list[bool] = torch.stack(small).all(0).view(training.members, -1).all(1).tolist()
    return found


def _columns(schedules: Sequence[Schedule], moments: Sequence[Moment]) -> Tensor:
    """Each schedule's numbers at some moments [moments, K], in double precision; each is asked once."""
    made: dict[int, list[float]] = {}
    for schedule in schedules:
        if id(schedule) not in made:
            made[id(schedule)] = [float(schedule(moment)) for moment in moments]
    return torch.tensor([made[id(schedule)] for schedule in schedules], dtype=torch.float64).T.contiguous()


def _random(layout: Layout) -> Layout:
    return Layout(layout.random_slots)
