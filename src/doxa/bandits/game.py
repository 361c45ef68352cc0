"""The game that M agents play: they decide, see what comes of it and remember it; what they learn from is memory."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from doxa.bandits.agent import Agent
from doxa.bandits.agent_context import ActionSelector, AgentContext
from doxa.bandits.bandit import Bandit, uniform_integers
from doxa.bandits.replay import Replay, shuffled_places
from doxa.contracts import Batch, Problem
from doxa.engine.context import StepContext
from doxa.engine.contracts import Gradient, State
from doxa.engine.feed import InMemoryFeed
from doxa.random import streams
from doxa.random.philox import Stream, fill_uniform


@dataclass(frozen=True)
class GameSettings:
    """How long a game is, and how agents remember and learn."""

    steps: int
    updates: int
    batch_size: int
    memory: int
    prefill: int
    replacement: bool = True


class Game:
    """A source of batches: a unit is one step of the environment and all updates that follow it.

    Before the first update of a unit everybody acts; the minibatches of all of them are drawn from what is remembered
    then.
    """

    eager = None

    def __init__(
        self,
        bandit: Bandit,
        agents: Sequence[Agent],
        problem: Problem,
        gradient: Gradient,
        rows: InMemoryFeed,
        net_seeds: Tensor,
        rules: GameSettings,
    ) -> None:
        self.bandit, self.agents, self.net_seeds, self.rules = bandit, agents, net_seeds, rules
        self.period = max(1, rules.updates)
        device, nets = net_seeds.device, len(net_seeds) // len(agents)
        self.seeds = sorted({agent.seed for agent in agents})
        self.episodes = [bandit.episode(seed, rules.prefill + rules.steps) for seed in self.seeds]
        self.episode_of_agent = torch.tensor([self.seeds.index(agent.seed) for agent in agents], device=device)
        assert isinstance(rows.x, Tensor)
        self.inputs, self.shape = rows.x, (len(net_seeds), rules.batch_size, *rows.y.shape[1:])
        self.rows = torch.stack([e.rows for e in self.episodes]).to(device)
        self.pays = torch.stack([e.pays for e in self.episodes]).to(self.inputs)
        self.scales = self.inputs.new_tensor([agent.reward_scale for agent in agents])
        self.agent_of = torch.arange(len(agents), device=device).repeat_interleave(nets)
        self.replay = Replay(len(agents), rules.memory, self.inputs)
        self.taken = torch.zeros(len(agents), rules.steps, dtype=torch.uint8, device=device)
        self.clock = torch.zeros(1, dtype=torch.int64, device=device)  # steps of the environment, where it is played
        self.step = 0  # the same on the CPU
        self.minibatches: tuple[Tensor, Tensor] | None = None  # cells and rewards [K, updates · B]
        agent_context = AgentContext(problem, gradient, self.replay, self.inputs, nets, len(bandit.actions))
        self.policy: ActionSelector = agents[0].policy.start(agent_context, [agent.policy for agent in agents])
        self._prefill()

    def _prefill(self) -> None:
        """What everybody remembers at first: actions at random, the same for all agents of a seed."""
        device, action_count = self.net_seeds.device, len(self.bandit.actions)
        first = slice(0, self.rules.prefill)
        random_actions = torch.stack([e.random_actions[first] for e in self.episodes]).to(device)[self.episode_of_agent]
        rows, pays = self.rows[self.episode_of_agent, first], self.pays[self.episode_of_agent, first]
        self.replay.cells[:, first] = rows * action_count + random_actions
        self.replay.rewards[:, first] = pays.gather(2, random_actions[..., None])[..., 0] / self.scales[:, None]

    def size(self, unit: int) -> int:
        """How many things are remembered once the step's is in."""
        return min(self.rules.prefill + unit + 1, self.rules.memory)

    def form(self, unit: int) -> Hashable:
        return None

    def begin(self, unit: int) -> None:
        if unit != self.step:
            self.clock.fill_(unit)
        self.step = unit
        self.policy.refresh(self.replay.count(self.clock + self.rules.prefill - 1))
        self.step += 1

    def batch(self, context: StepContext) -> Batch | None:
        if context.part == 0:
            self._act(self.clock[0] if isinstance(context.position, Tensor) else self.step - 1)
        if self.minibatches is None:
            return None
        size = self.rules.batch_size
        cells, rewards = (t[:, context.part * size : (context.part + 1) * size] for t in self.minibatches)
        return Batch(self.inputs[cells], rewards.reshape(self.shape))

    def _act(self, unit: int | Tensor) -> None:
        """One step of the environment: decide, see, remember; then draw what is learned from, at random."""
        position, action_count = self.clock + self.rules.prefill, len(self.bandit.actions)
        rows = self.rows[self.episode_of_agent, position]
        cells_offered = rows[:, None] * action_count + torch.arange(action_count, device=rows.device)
        action = self.policy.choose(self.inputs[cells_offered], Stream(self.net_seeds, unit))
        reward = self.pays[self.episode_of_agent, position].gather(1, action[:, None])[:, 0]
        self.replay.push(position, rows * action_count + action, reward / self.scales)
        self.taken.index_copy_(1, self.clock, action[:, None].to(torch.uint8))
        if self.rules.updates:
            places = self._draw_places(unit, self.replay.count(position))
            self.minibatches = self.replay.look_up(self.agent_of, places)
        self.clock += 1

    def _draw_places(self, unit: int | Tensor, count: Tensor) -> Tensor:
        """Where in its memory each net finds the minibatches of a step [K, updates · B]."""
        rules, nets = self.rules, len(self.net_seeds)
        size = rules.updates * rules.batch_size
        u = torch.empty(nets, size if rules.replacement else rules.memory, device=self.net_seeds.device)
        fill_uniform(u, Stream(self.net_seeds, unit, streams.BANDIT_BATCH))
        return uniform_integers(u, count) if rules.replacement else shuffled_places(u, count)[:, :size]

    def state(self) -> State:
        memory = {f"replay.{k}": t for k, t in self.replay.state().items()}
        policy = {f"policy.{k}": t for k, t in self.policy.state().tensors.items()}
        return State(moving={"clock": self.clock, "taken": self.taken, **memory, **policy})
