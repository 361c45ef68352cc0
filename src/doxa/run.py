"""A training under way: steps, epochs, early stopping, checkpoints, exact resume."""

from __future__ import annotations

import math
import signal
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from doxa import checkpoint as files
from doxa import native
from doxa.belief import Belief
from doxa.capture import Captured, captured
from doxa.contracts import Batch, Inputs, Learner, Moment, Now, Problem, Record, Schedule, Training
from doxa.errors import BadInput, BrokenFile, Diverged, Interrupted
from doxa.feed import Feed
from doxa.layout import Layout
from doxa.optimisers.torchs import TorchAtWork
from doxa.philox import Stream
from doxa.predict import sweep
from doxa.progress import Progress
from doxa.version import VERSION

STATE = "doxa.training"
CHECKPOINT, BELIEF = "checkpoint.doxa", "belief.doxa"


@contextmanager
def gentle_interrupt() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into a request to stop between two steps; the second one stops at once."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def ask(number: int, frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


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
    words: Tensor  # [K]: the seed of each net's random words
    held_out: Sequence[tuple[Inputs, Tensor]] | None  # one a member
    validation_samples: int
    patience: int | None
    folder: Path | None
    every: int
    settings: Sequence[dict[str, Any]]  # one a member
    done: int = 0  # steps taken
    best: dict[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        device, members = self.problem.start.device, len(self.learners)
        self.running = torch.zeros(self.training.nets, dtype=torch.float64, device=device)
        self.histories: list[list[dict[str, float]]] = [[] for _ in range(members)]
        self.best_epochs = [-1] * members
        self.fast: Captured | None = None

    @property
    def steps(self) -> int:
        return self.epochs * self.source.batches

    def resting(self, member: int) -> bool:
        """Whether a member has stopped early: its validation NLL has long not improved."""
        waited = len(self.histories[member]) - 1 - self.best_epochs[member]
        return self.patience is not None and self.best_epochs[member] >= 0 and waited >= self.patience

    @property
    def finished(self) -> bool:
        stopped = all(self.resting(k) for k in range(len(self.learners)))
        return self.done >= self.steps or (stopped and self.done % self.source.batches == 0)

    def go(self, stop: threading.Event, progress: bool) -> None:
        """Step until finished, or until asked to stop."""
        batches = self.source.batches
        if not self.finished:
            left = self.steps - self.done
            self.fast = captured(self.problem, self.training, self.optimiser, self.source, self.words, left)
            if self.fast is not None:
                self.fast.running.copy_(self.running)
                self.running = self.fast.running
        with Progress(progress, self.epochs, batches, self.done, len(self.learners)) as shown:
            if self.histories[0]:
                shown.epoch([rows[-1] for rows in self.histories])
            while not self.finished:
                epoch, skip = divmod(self.done, batches)
                weights, rates = self.score(epoch, skip)
                for _ in self.steps_of(epoch, skip, weights, rates):
                    shown.step(self.done)
                    if stop.is_set():
                        break
                if self.done % batches == 0:
                    self.end_epoch(rates[-1].tolist())
                    shown.epoch([rows[-1] for rows in self.histories])
                    if self.folder is not None and ((epoch + 1) % self.every == 0 or self.finished):
                        self.save()
                if stop.is_set() and not self.finished:
                    self.interrupted()

    def score(self, epoch: int, skip: int) -> tuple[Tensor, Tensor]:
        """The KL weight over N and the rate of every net [batches, K], from a batch of an epoch on; −1 lets it rest.

        The rates are in double precision, as torch's optimisers take them.
        """
        batches, nets = self.source.batches, self.training.nets // len(self.learners)
        weights, rates = [], []
        for batch in range(skip, batches):
            moment = Moment(epoch * batches + batch, self.steps, batch, batches)
            weights.append([float(own.kl_weight(moment)) / self.source.size for own in self.learners])
            own = [0.0] * len(self.learners) if self.rates is None else [float(r(moment)) for r in self.rates]
            for rate in own:
                if not 0 <= rate < math.inf:
                    raise BadInput(
                        f"the learning rate at step {moment.step} is {rate}; a schedule gives numbers from 0 up"
                    )
            rates.append([-1.0 if self.resting(k) else rate for k, rate in enumerate(own)])
        found = [torch.tensor(rows, dtype=torch.float64).repeat_interleave(nets, 1) for rows in (weights, rates)]
        return found[0].to(self.problem.start), found[1]

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
            worst = int((~losses.isfinite()).nonzero()[0])
            self.training.fill_gradients(now)
            raise self.diverged(f"the loss became {float(losses[worst])}", worst)
        corrections = self.optimiser.corrections(self.done + 1)
        self.optimiser.step(now, exact if isinstance(self.optimiser, TorchAtWork) else rates, corrections)
        self.running += losses
        self.done += 1

    def end_epoch(self, rates: Sequence[float]) -> None:
        nets = self.training.nets // len(self.learners)
        means = (self.running / self.source.batches).view(-1, nets).mean(1).tolist()
        self.running.zero_()
        asleep = [self.resting(k) for k in range(len(self.learners))]
        for k, nll in enumerate(means):
            if asleep[k]:
                continue
            trouble = self.training.trouble(k)
            if not math.isfinite(nll) or trouble:
                raise self.diverged(trouble or f"the mean loss of the epoch is {nll}", k * nets)
            rate = self.optimiser.rate if isinstance(self.optimiser, TorchAtWork) else rates[k * nets]
            row = {"nll": nll, "kl": self.training.complexity(k).value, "lr": rate}
            if self.held_out is not None:
                row["validation_nll"] = self.validate(k)
                if math.isnan(row["validation_nll"]):
                    raise self.diverged("the validation NLL became nan", k * nets)
            self.histories[k].append(row)
            if self.patience is not None and self._is_best(k):
                self.best_epochs[k] = len(self.histories[k]) - 1
                self._keep(k, nets)

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

    def validate(self, member: int) -> float:
        """Validation NLL of the posterior predictive, with the same draws' noise every epoch."""
        assert self.held_out is not None
        x, y = self.held_out[member]
        draws = sweep(
            self.problem.net,
            self.problem.layout,
            self.training.posterior(member),
            self.problem.likelihood,
            self.training.buffers(member),
            x,
            self.validation_samples,
            (self.seeds[member], "validation"),
            autocast=self.problem.autocast,
        )
        log_p = draws.log_prob(y)
        return -float((log_p.logsumexp(0) - math.log(len(log_p))).mean())

    def diverged(self, what: str, net: int) -> Diverged:
        epoch = self.done // self.source.batches + 1
        bad = [f"gradient of {n}" for n in self._bad_gradients(net)]
        where = f"; not finite: {', '.join(bad)}" if bad else ""
        good = self.folder is not None and (self.folder / CHECKPOINT).exists()
        saved = f" The last good checkpoint is in {self.folder}." if good else ""
        who = f"net {net}: " if self.training.nets > 1 else ""
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
            self.save()
            words += f"; saved in {self.folder}. Go on with the same call and resume=True"
        found = self.beliefs()
        raise Interrupted(words, found[0] if len(found) == 1 else found)

    def save(self) -> None:
        """All that an exact resume needs, in one file."""
        assert self.folder is not None
        header = {
            "settings": list(self.settings),
            "versions": _versions(),
            "layout": files.encode_layout(self.problem.layout),
            "done": self.done,
            "histories": self.histories,
            "best_epochs": self.best_epochs,
            "optimiser": self.optimiser.numbers() if isinstance(self.optimiser, TorchAtWork) else {},
        }
        tensors = {f"training.{k}": t for k, t in self.training.state().items()}
        tensors |= {f"best.{k}": t for k, t in self.best.items()}
        tensors |= {f"optimiser.{k}": t for k, t in self.optimiser.state().items()}
        tensors["running"] = self.running
        files.write(self.folder / CHECKPOINT, STATE, header, tensors)

    def open(self, resume: bool) -> None:
        """Start afresh, or where the checkpoint in the folder stands."""
        if self.folder is not None and self.folder.exists() and not self.folder.is_dir():
            raise BadInput(f"checkpoint must be a folder, but {self.folder} is a file; choose another name")
        path = None if self.folder is None else self.folder / CHECKPOINT
        if path is None:
            if resume:
                raise BadInput("resume=True needs the folder of the run to go on with: pass checkpoint=")
            return
        if not path.exists():
            return
        if not resume:
            raise BadInput(
                f"{self.folder} already holds a run; pass resume=True to go on with it, or choose another folder"
            )
        header, tensors = files.read(path, STATE)
        buffers = {k: b[0] for k, b in self.problem.buffers.items()}
        files.require_same_net(path, files.decode_layout(header["layout"]), buffers, self.problem.net)
        if files.decode_layout(header["layout"]) != self.problem.layout:
            raise BadInput(
                f"{path} belongs to a run in which other weights were random or frozen; use the same call to go on"
            )
        self._require_same_settings(path, header["settings"])
        if header["versions"] != _versions():
            warnings.warn(
                f"{path} was written by {header['versions']}, this is {_versions()}: bits may differ",
                stacklevel=3,
            )
        self.done, self.histories, self.best_epochs = header["done"], header["histories"], header["best_epochs"]
        self._restore(self.training.state(), "training.", tensors)
        device = self.problem.start.device
        self.best = {k.removeprefix("best."): t.to(device) for k, t in tensors.items() if k.startswith("best.")}
        self.running.copy_(tensors["running"])
        if isinstance(self.optimiser, TorchAtWork):
            own = {k.removeprefix("optimiser."): t for k, t in tensors.items() if k.startswith("optimiser.")}
            self.optimiser.load(own, header["optimiser"])
        else:
            self._restore(self.optimiser.state(), "optimiser.", tensors)

    def _require_same_settings(self, path: Path, there: list[dict[str, Any]]) -> None:
        if len(there) != len(self.settings):
            raise BadInput(f"{path} belongs to a fleet of {len(there)}, not of {len(self.settings)}; use the same call")
        for member, (old, new) in enumerate(zip(there, self.settings, strict=True)):
            changed = [
                f"{k}: {old.get(k)} there, {v} here"
                for k, v in new.items()
                if k != "epochs" and old.get(k) != files.describe(v)
            ]
            if changed:
                who = f"member {member} of " if len(there) > 1 else ""
                raise BadInput(
                    f"{path} belongs to {who}a run with other settings ({'; '.join(changed)}); use the same call to "
                    "go on"
                )

    @torch.no_grad()
    def _restore(self, into: dict[str, Tensor], prefix: str, tensors: dict[str, Tensor]) -> None:
        for name, tensor in into.items():
            if prefix + name not in tensors:
                raise BrokenFile(f"the checkpoint has no {name!r}: it was written by another learner or optimiser")
            tensor.copy_(tensors[prefix + name])

    def beliefs(self) -> list[Belief]:
        """What each member believes now, with the record of how it came about."""
        return [
            Belief(
                net=self.problem.net,
                likelihood=self.problem.likelihood,
                posterior=self.training.posterior(k),
                layout=self.problem.layout,
                buffers=self.training.buffers(k),
                prior=self.priors[k],
                noise=self.training.noise,
                record=Record(
                    {**self.settings[k], "steps": self._taken(k), "versions": _versions()}, list(self.histories[k])
                ),
            )
            for k in range(len(self.learners))
        ]

    def _taken(self, member: int) -> int:
        """Steps that a member has taken."""
        return len(self.histories[member]) * self.source.batches if self.resting(member) else self.done

    def close(self) -> list[Belief]:
        """The finished beliefs: the best ones where patience kept them, also as files in the run's folder."""
        if self.best:
            self._restore(self.training.state(), "", self.best)
        found = self.beliefs()
        if self.folder is not None:
            for k, belief in enumerate(found):
                belief.save(self.folder / (BELIEF if len(found) == 1 else f"belief-{k}.doxa"))
        return found


def _random(layout: Layout) -> Layout:
    return Layout(layout.random_slots)


def _versions() -> dict[str, Any]:
    threads, kernels = torch.get_num_threads(), native.identity()
    return {"doxa": VERSION, "torch": torch.__version__, "threads": threads, "kernels": kernels}
