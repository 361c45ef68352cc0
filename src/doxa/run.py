"""A training under way: steps, epochs, early stopping, checkpoints, exact resume."""

from __future__ import annotations

import math
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from doxa import checkpoint as files
from doxa import native
from doxa.belief import Belief
from doxa.contracts import Inputs, Moment, Problem, Record, Schedule, Training
from doxa.errors import BadInput, BrokenFile, Diverged, Interrupted
from doxa.feed import Feed
from doxa.layout import Layout
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
    """A training under way: all that a checkpoint holds, and how to go on."""

    problem: Problem
    prior: Any
    source: Feed
    training: Training
    optimiser: torch.optim.Optimizer
    rate: Schedule | None  # None leaves the optimiser's own
    epochs: int
    seed: int
    held_out: tuple[Inputs, Tensor] | None
    validation_samples: int
    patience: int | None
    folder: Path | None
    every: int
    settings: dict[str, Any]
    done: int = 0  # steps taken
    history: list[dict[str, float]] = field(default_factory=list)
    best: dict[str, Tensor] = field(default_factory=dict)
    best_epoch: int = -1

    def __post_init__(self) -> None:
        self.running = torch.zeros((), dtype=torch.float64, device=self.problem.start.device)

    @property
    def steps(self) -> int:
        return self.epochs * self.source.batches

    @property
    def finished(self) -> bool:
        waited = len(self.history) - 1 - self.best_epoch
        stopped = self.patience is not None and self.best_epoch >= 0 and waited >= self.patience
        return self.done >= self.steps or (stopped and self.done % self.source.batches == 0)

    def go(self, stop: threading.Event, progress: bool) -> None:
        """Step until finished, or until asked to stop."""
        batches = self.source.batches
        with Progress(progress, self.epochs, batches, self.done) as shown:
            if self.history:
                shown.epoch(self.history[-1])
            while not self.finished:
                epoch, skip = divmod(self.done, batches)
                for batch in self.source.epoch(epoch, (self.seed,), self.training.streams, skip):
                    self.step(batch)
                    shown.step(self.done)
                    if stop.is_set():
                        break
                if self.done % batches == 0:
                    self.end_epoch()
                    shown.epoch(self.history[-1])
                    if self.folder is not None and (len(self.history) % self.every == 0 or self.finished):
                        self.save()
                if stop.is_set() and not self.finished:
                    self.interrupted()

    def step(self, batch: Any) -> None:
        moment = Moment(
            step=self.done,
            steps=self.steps,
            batch=self.done % self.source.batches,
            batches=self.source.batches,
            key=(self.seed, "step", self.done),
        )
        if self.rate is not None:
            rate = float(self.rate(moment))
            if not 0 <= rate < math.inf:
                raise BadInput(f"the learning rate at step {self.done} is {rate}; a schedule gives numbers from 0 up")
            for group in self.optimiser.param_groups:
                group["lr"] = rate
        loss = self.training.step(batch, moment)
        # On a GPU asking would wait for the device: there it is asked once an epoch.
        if loss.device.type == "cpu" and not math.isfinite(float(loss)):
            raise self.diverged(f"the loss became {float(loss)}")
        self.optimiser.step()
        self.running += loss
        self.done += 1

    def end_epoch(self) -> None:
        nll = float(self.running) / self.source.batches
        self.running.zero_()
        trouble = self.training.trouble()
        if not math.isfinite(nll) or trouble:
            raise self.diverged(trouble or f"the mean loss of the epoch is {nll}")
        row = {
            "nll": nll,
            "kl": self.training.complexity().value,
            "lr": float(self.optimiser.param_groups[0]["lr"]),
        }
        if self.held_out is not None:
            row["validation_nll"] = self.validate()
            if math.isnan(row["validation_nll"]):
                raise self.diverged("the validation NLL became nan")
        self.history.append(row)
        if self.patience is not None and self._is_best():
            self.best_epoch = len(self.history) - 1
            self.best = {k: t.detach().clone() for k, t in self.training.state().items()}

    def _is_best(self) -> bool:
        scores = [row["validation_nll"] for row in self.history]
        return self.best_epoch < 0 or scores[-1] < scores[self.best_epoch]

    def validate(self) -> float:
        """Validation NLL of the posterior predictive, with the same draws' noise every epoch."""
        assert self.held_out is not None
        x, y = self.held_out
        draws = sweep(
            self.problem.net,
            self.problem.layout,
            self.training.posterior(),
            self.problem.likelihood,
            self.training.buffers,
            x,
            self.validation_samples,
            (self.seed, "validation"),
            autocast=self.problem.autocast,
        )
        log_p = draws.log_prob(y)
        return -float((log_p.logsumexp(0) - math.log(len(log_p))).mean())

    def diverged(self, what: str) -> Diverged:
        epoch = self.done // self.source.batches + 1
        bad = [f"gradient of {n}" for n in self._bad_gradients()]
        where = f"; not finite: {', '.join(bad)}" if bad else ""
        good = self.folder is not None and (self.folder / CHECKPOINT).exists()
        saved = f" The last good checkpoint is in {self.folder}." if good else ""
        return Diverged(
            f"{what} at step {self.done} (epoch {epoch}){where}. Lower lr, scale the inputs to about unit size, or "
            f"start from a smaller scale.{saved}"
        )

    def _bad_gradients(self) -> list[str]:
        names = []
        for p in self.training.parameters:
            if p.grad is None or bool(p.grad.isfinite().all()):
                continue
            fits = p.grad.numel() in (self.problem.layout.size, self.problem.layout.random)
            layout = Layout(
                self.problem.layout.slots
                if p.grad.numel() == self.problem.layout.size
                else self.problem.layout.random_slots
            )
            names += [k for k, g in layout.views(p.grad).items() if not bool(g.isfinite().all())] if fits else ["scale"]
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
        raise Interrupted(words, self.belief())

    def save(self) -> None:
        """All that an exact resume needs, in one file."""
        assert self.folder is not None
        header = {
            "settings": self.settings,
            "versions": _versions(),
            "layout": files.encode_layout(self.problem.layout),
            "done": self.done,
            "history": self.history,
            "best_epoch": self.best_epoch,
            "optimiser": {},
        }
        tensors = {f"training.{k}": t for k, t in self.training.state().items()}
        tensors |= {f"best.{k}": t for k, t in self.best.items()}
        tensors["running"] = self.running
        for index, state in self.optimiser.state_dict()["state"].items():
            for name, value in state.items():
                if isinstance(value, Tensor):
                    tensors[f"optimiser.{index}.{name}"] = value
                elif value is None or isinstance(value, bool | int | float):
                    header["optimiser"][f"{index}.{name}"] = value  # type: ignore[index]
                else:
                    raise BadInput(f"the optimiser's {name} is a {type(value).__name__}, which cannot be saved exactly")
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
        files.require_same_net(path, files.decode_layout(header["layout"]), self.problem.buffers, self.problem.net)
        if files.decode_layout(header["layout"]) != self.problem.layout:
            raise BadInput(
                f"{path} belongs to a run in which other weights were random or frozen; use the same call to go on"
            )
        changed = [
            f"{k}: {header['settings'].get(k)} there, {v} here"
            for k, v in self.settings.items()
            if k != "epochs" and header["settings"].get(k) != files.describe(v)
        ]
        if changed:
            raise BadInput(
                f"{path} belongs to a run with other settings ({'; '.join(changed)}); use the same call to go on"
            )
        if header["versions"] != _versions():
            warnings.warn(
                f"{path} was written by {header['versions']}, this is {_versions()}: bits may differ",
                stacklevel=3,
            )
        self.done, self.history, self.best_epoch = header["done"], header["history"], header["best_epoch"]
        self._restore("training.", tensors)
        device = self.problem.start.device
        self.best = {k.removeprefix("best."): t.to(device) for k, t in tensors.items() if k.startswith("best.")}
        self.running.copy_(tensors["running"])
        state: dict[int, dict[str, Any]] = {}
        for name, tensor in tensors.items():
            if name.startswith("optimiser."):
                _, index, field_name = name.split(".", 2)
                state.setdefault(int(index), {})[field_name] = tensor
        for name, value in header["optimiser"].items():
            index, field_name = name.split(".", 1)
            state.setdefault(int(index), {})[field_name] = value
        self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": state})

    @torch.no_grad()
    def _restore(self, prefix: str, tensors: dict[str, Tensor]) -> None:
        for name, tensor in self.training.state().items():
            if prefix + name not in tensors:
                raise BrokenFile(f"the checkpoint has no {name!r}: it was written by another learner")
            tensor.copy_(tensors[prefix + name])

    def belief(self) -> Belief:
        """What is believed now, with the record of how it came about."""
        return Belief(
            net=self.problem.net,
            likelihood=self.problem.likelihood,
            posterior=self.training.posterior(),
            layout=self.problem.layout,
            buffers=self.training.buffers,
            prior=self.prior,
            noise=self.training.noise,
            record=Record({**self.settings, "steps": self.done, "versions": _versions()}, list(self.history)),
        )

    def close(self) -> Belief:
        """The finished belief: the best one where patience kept it, also as a file in the run's folder."""
        if self.best:
            self._restore("", self.best)
        belief = self.belief()
        if self.folder is not None:
            belief.save(self.folder / BELIEF)
        return belief


def _versions() -> dict[str, Any]:
    threads, kernels = torch.get_num_threads(), native.identity()
    return {"doxa": VERSION, "torch": torch.__version__, "threads": threads, "kernels": kernels}
