"""A game under way: M agents decide, see what comes of it, remember it and learn, step by step, as one program."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from doxa import checkpoint as files
from doxa.belief import Belief
from doxa.capture import record, tried, why_not
from doxa.contracts import Batch, Moment, Now, Problem, Record, Training
from doxa.errors import BadInput, Interrupted
from doxa.feed import InMemory
from doxa.judge.bandits.agent import Agent
from doxa.judge.bandits.bandit import Bandit, Episode, below
from doxa.judge.bandits.outcome import Outcome
from doxa.judge.bandits.replay import Replay
from doxa.judge.bandits.scene import BATCHES, Deciding, Scene
from doxa.layout import settle
from doxa.philox import Stream, fill_uniform
from doxa.progress import Progress
from doxa.rates import constant
from doxa.resume import CHECKPOINT, restore, versions
from doxa.run import all_calm

STATE = "doxa.bandits"
SPAN = 250  # steps whose weights, rates and corrections lie in the device's memory; between two, the CPU has a say

# A step of learning: its number, and Adam's corrections at it.
Update = tuple[int | Tensor, tuple[float, float] | Tensor]


@dataclass(frozen=True)
class Rules:
    """How long a game is, and how agents remember and learn."""

    steps: int
    updates: int
    batch_size: int
    memory: int
    prefill: int


@dataclass
class Game:
    """All that a checkpoint holds, and how to go on."""

    bandit: Bandit
    agents: Sequence[Agent]
    problem: Problem
    training: Training
    optimiser: Any
    source: InMemory
    words: Tensor  # [K]: the seed of each net's random words
    rules: Rules
    settings: dict[str, Any]
    folder: Path | None = None
    every: int = 5000
    done: int = 0
    troubles: dict[int, str] = field(default_factory=dict)  # of agents that have diverged, and rest

    def __post_init__(self) -> None:
        device, nets = self.words.device, self.training.nets // len(self.agents)
        self.seeds = sorted({agent.seed for agent in self.agents})
        self.episodes = [self.bandit.episode(seed, self.rules.prefill + self.rules.steps) for seed in self.seeds]
        self.own = torch.tensor([self.seeds.index(agent.seed) for agent in self.agents], device=device)
        assert isinstance(self.source.x, Tensor)
        self.inputs = self.source.x
        self.rows = torch.stack([e.rows for e in self.episodes]).to(device)
        self.pays = torch.stack([e.pays for e in self.episodes]).to(self.inputs)
        self.scales = self.inputs.new_tensor([agent.reward_scale for agent in self.agents])
        self.agent_of = torch.arange(len(self.agents), device=device).repeat_interleave(nets)
        self.replay = Replay(len(self.agents), self.rules.memory, self.inputs)
        self.taken = torch.zeros(len(self.agents), self.rules.steps, dtype=torch.uint8, device=device)
        self.clock, self.position = (torch.zeros(1, dtype=torch.int64, device=device) for _ in range(2))
        self.table = self.inputs.new_full((min(SPAN, self.rules.steps), 2, self.training.nets), -1.0)  # everybody rests
        self.lefts = self.inputs.new_ones(len(self.table), self.rules.updates, 2)
        scene = Scene(self.problem, self.training, self.replay, self.inputs, nets)
        self.policy: Deciding = self.agents[0].policy.start(scene, [agent.policy for agent in self.agents])
        self.graph: torch.cuda.CUDAGraph | None = None
        self._fill()

    def _fill(self) -> None:
        """What everybody remembers at first: actions at random, the same for all agents of a seed."""
        device, kinds = self.words.device, len(self.bandit.actions)
        first = slice(0, self.rules.prefill)
        blind = torch.stack([e.blind[first] for e in self.episodes]).to(device)[self.own]
        rows, pays = self.rows[self.own, first], self.pays[self.own, first]
        self.replay.cells[:, first] = rows * kinds + blind
        self.replay.rewards[:, first] = pays.gather(2, blind[..., None])[..., 0] / self.scales[:, None]

    def go(self, stop: threading.Event, progress: Progress) -> None:
        """Play to the end, or until asked to stop."""
        self.graph = self._fast() if self.done < self.rules.steps else None
        saved = self.done
        with progress as shown:
            while self.done < self.rules.steps:
                span = self._begin()
                for _ in range(span):
                    self.policy.refresh(self.replay.count(self.clock + self.rules.prefill - 1))
                    if self.graph is not None:
                        self.graph.replay()
                    else:
                        self._turn(self.done, [self._update(self.done, u) for u in range(self.rules.updates)])
                    self.done += 1
                    shown.step(self.done)
                    if stop.is_set():
                        break
                self._look(shown)
                if self.folder is not None and (self.done - saved >= self.every or self.done == self.rules.steps):
                    self.save()
                    saved = self.done
                if stop.is_set() and self.done < self.rules.steps:
                    self._interrupted()

    def _begin(self) -> int:
        """Lay out weights, rates and corrections of the steps to come; how many these are."""
        count = min(len(self.table), self.rules.steps - self.done)
        moments = [Moment(self.done + i, self.rules.steps, 0, 1) for i in range(count)]
        nets = self.training.nets // len(self.agents)
        rates = [agent.lr if callable(agent.lr) else constant(float(agent.lr)) for agent in self.agents]
        weights = [agent.learner.kl_weight for agent in self.agents]
        for place, schedules in enumerate((weights, rates)):
            each = {id(s): s for s in schedules}  # each is asked once
            asked = {key: [float(s(moment)) for moment in moments] for key, s in each.items()}
            columns = torch.tensor([asked[id(s)] for s in schedules], dtype=torch.float64)
            if place == 1 and not bool((columns.isfinite() & (columns >= 0)).all()):
                raise BadInput("a learning rate is negative or no number; a schedule gives numbers from 0 up")
            if place == 1:
                columns[list(self.troubles)] = -1.0
            self.table[:count, place] = columns.repeat_interleave(nets, 0).T.to(self.table)
        if self.graph is not None:
            numbers = range(self.done * self.rules.updates + 1, (self.done + count) * self.rules.updates + 1)
            found = torch.tensor([self.optimiser.corrections(n) for n in numbers], dtype=torch.float64)
            self.lefts[:count] = found.view(count, self.rules.updates, 2).to(self.lefts)
        self.clock.fill_(self.done)
        self.position.zero_()
        return count

    def _update(self, turn: int, number: int) -> Update:
        step = turn * self.rules.updates + number
        return step, self.optimiser.corrections(step + 1)

    def _turn(self, turn: int | Tensor, updates: Sequence[Update]) -> None:
        """One step of the environment: decide, see, remember, learn."""
        now, kinds = self.clock + self.rules.prefill, len(self.bandit.actions)
        rows = self.rows[self.own, now]
        offers = rows[:, None] * kinds + torch.arange(kinds, device=rows.device)
        action = self.policy.choose(self.inputs[offers], Stream(self.words, turn))
        reward = self.pays[self.own, now].gather(1, action[:, None])[:, 0]
        self.replay.push(now, rows * kinds + action, reward / self.scales)
        self.taken.index_copy_(1, self.clock, action[:, None].to(torch.uint8))
        if updates:
            self._learn(turn, updates, self.replay.count(now))
        self.clock += 1
        self.position += 1

    def _learn(self, turn: int | Tensor, updates: Sequence[Update], count: Tensor) -> None:
        """Steps along the free energy of what is remembered, on minibatches drawn from it at random."""
        u = torch.empty(self.training.nets, len(updates) * self.rules.batch_size, device=self.words.device)
        fill_uniform(u, Stream(self.words, turn, BATCHES))
        cells, rewards = self.replay.at(self.agent_of, below(u, count))
        weights, rates = self.table.index_select(0, self.position)[0]
        weights = weights / count
        shape = (self.training.nets, self.rules.batch_size, *self.source.y.shape[1:])
        for number, (step, left) in enumerate(updates):
            own = slice(number * self.rules.batch_size, (number + 1) * self.rules.batch_size)
            now = Now(Stream(self.words, step), weights)
            self.training.step(Batch(self.inputs[cells[:, own]], rewards[:, own].reshape(shape)), now)
            self.optimiser.step(now, rates, left)

    def _turn_in_memory(self) -> None:
        """The same step with all that changes in the device's memory, as a graph has it."""
        numbers = self.clock * self.rules.updates + torch.arange(self.rules.updates, device=self.words.device)
        left = self.lefts.index_select(0, self.position)[0]
        self._turn(self.clock[0], [(numbers[u], left[u]) for u in range(self.rules.updates)])

    def _fast(self) -> torch.cuda.CUDAGraph | None:
        """The step as a recording, or None where it runs as written."""
        if self.words.device.type != "cuda":
            return None
        why = why_not(self.problem, self.optimiser, self.source)
        # By all steps, not by those left: a game that is resumed must run on the same kernels.
        return tried(self._recorded, self.training, why, self.rules.steps * self.rules.updates)

    def _recorded(self, compiled: bool) -> torch.cuda.CUDAGraph:
        """The step as a CUDA graph; what it was warmed up on is put back."""
        changes = {"clock": self.clock, "position": self.position, "taken": self.taken, **self.replay.state()}
        changes |= {k: t for k, t in self.training.state().items() if k.startswith("buffers.")}
        before = {k: t.detach().clone() for k, t in changes.items()}
        self.training.passes.compiled = compiled
        self.table[:, 1] = -1.0

        def reset() -> None:
            self.clock.zero_()
            self.position.zero_()

        device = self.words.device
        aside = torch.cuda.Stream(device)
        try:
            return record(self._turn_in_memory, reset, device, aside)
        finally:
            torch.cuda.current_stream(device).wait_stream(aside)
            with torch.no_grad():
                for name, tensor in changes.items():
                    tensor.copy_(before[name])

    def _look(self, shown: Progress) -> None:
        """See who has diverged, and how all are doing."""
        calm = all_calm(self.training)
        for k, agent in enumerate(self.agents):
            trouble = None if calm[k] or k in self.troubles else self.training.trouble(k)
            if trouble is not None:
                self.troubles[k] = f"{trouble} after {self.done} steps"
                warnings.warn(
                    f"agent {agent.name or k} of seed {agent.seed} diverged and learns no more: {trouble}", stacklevel=5
                )
        if shown.bar is not None:
            regrets = sorted(float(o.regret[-1]) for o in self.outcomes())
            shown.words = f"{len(regrets)} agents  regret {regrets[len(regrets) // 2]:,.0f}"

    def outcomes(self) -> list[Outcome]:
        """What has come of it so far, agent by agent."""
        taken = self.taken[:, : self.done].cpu().long()
        here = slice(self.rules.prefill, self.rules.prefill + self.done)
        found = []
        for k, agent in enumerate(self.agents):
            episode: Episode = self.episodes[self.seeds.index(agent.seed)]
            found.append(
                Outcome(self.bandit, agent, episode.rows[here], episode.pays[here], taken[k], self.troubles.get(k))
            )
        return found

    def belief(self, member: int) -> Belief:
        """What an agent believes now."""
        learner = self.agents[member].learner
        return Belief(
            net=self.problem.net,
            likelihood=self.problem.likelihood,
            posterior=self.training.posterior(member),
            layout=self.problem.layout,
            buffers=self.training.buffers(member),
            prior=settle(learner.prior, self.problem.layout, self.training.mean.detach()[0]),
            noise=self.training.noise,
            record=Record({**self.settings["agents"][member], "steps": self.done, "versions": versions()}),
        )

    def state(self) -> dict[str, Tensor]:
        parts: dict[str, Mapping[str, Tensor]] = {
            "training": self.training.state(),
            "optimiser": self.optimiser.state(),
            "replay": self.replay.state(),
            "policy": self.policy.state(),
            "game": {"taken": self.taken},
        }
        return {f"{part}.{name}": tensor for part, own in parts.items() for name, tensor in own.items()}

    def save(self) -> None:
        """Write the game as it stands to one file in its folder."""
        assert self.folder is not None
        troubles = {str(k): what for k, what in self.troubles.items()}
        header = {"settings": self.settings, "versions": versions(), "done": self.done, "troubles": troubles}
        files.write(self.folder / CHECKPOINT, STATE, header, self.state())

    def reopen(self, resume: bool) -> None:
        """Start afresh, or where the checkpoint in the folder stands."""
        if self.folder is None:
            if resume:
                raise BadInput("resume=True needs the folder of the game to go on with: pass checkpoint=")
            return
        if self.folder.exists() and not self.folder.is_dir():
            raise BadInput(f"checkpoint must be a folder, but {self.folder} is a file; choose another name")
        path = self.folder / CHECKPOINT
        if not path.exists():
            return
        if not resume:
            raise BadInput(f"{self.folder} already holds a game; pass resume=True to go on, or choose another folder")
        header, tensors = files.read(path, STATE)
        changed = [name for name, value in self.settings.items() if header["settings"].get(name) != value]
        if changed:
            raise BadInput(
                f"{path} belongs to a game with other settings ({', '.join(changed)}); use the same call to go on"
            )
        if header["versions"] != versions():
            warnings.warn(
                f"{path} was written by {header['versions']}, this is {versions()}: bits may differ", stacklevel=3
            )
        self.done = header["done"]
        self.troubles = {int(k): what for k, what in header["troubles"].items()}
        restore(self.state(), "", tensors)

    def _interrupted(self) -> None:
        words = f"stopped at step {self.done} of {self.rules.steps}"
        if self.folder is None:
            words += "; nothing was saved, since no checkpoint folder was given"
        else:
            self.save()
            words += f"; saved in {self.folder}. Go on with the same call and resume=True"
        raise Interrupted(words, [self.belief(k) for k in range(len(self.agents))])
