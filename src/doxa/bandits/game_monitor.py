"""What is seen of a game from time to time: who has diverged, and how everybody does."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from doxa.bandits.agent import Agent
from doxa.bandits.bandit import Episode
from doxa.bandits.game import Game
from doxa.bandits.outcome import Outcome
from doxa.contracts import Record
from doxa.engine.checkpoint import versions
from doxa.engine.context import StepContext
from doxa.engine.contracts import State
from doxa.engine.run import Run
from doxa.engine.soundness import net_trouble, parameters_in_range
from doxa.predict.belief import Belief
from doxa.weights.layout import bind_prior

SPAN = 250  # steps of the environment from one look to the next


@dataclass(eq=False)
class GameMonitor:
    """Who watches over a game; an agent that has diverged rests."""

    run: Run
    game: Game
    agents: Sequence[Agent]
    agent_settings: Sequence[Any]  # each agent's settings, as records tell them
    shown: bool = False  # whether anybody looks at a line of progress
    troubles: dict[int, str] = field(default_factory=dict)

    over = False

    def resting(self) -> list[bool]:
        return [k in self.troubles for k in range(len(self.agents)) for _ in range(self.run.members.nets)]

    def add(self, losses: Tensor) -> None:
        pass

    def check(self, losses: Tensor, context: StepContext) -> StepContext:
        return context

    def end(self, numbers: Mapping[str, Tensor]) -> None:
        in_range = parameters_in_range(self.run.gradient)
        for k, agent in enumerate(self.agents):
            if k in self.troubles:
                continue
            nets = [j for j in self.run.members.net_range(k) if not in_range[j]]
            problems = [
                problem for j in nets if (problem := net_trouble(self.run.gradient, self.run.problem.layout, j))
            ]
            if problems:
                self.troubles[k] = f"{'; '.join(problems)} after {self.run.done} steps"
                warnings.warn(
                    f"agent {agent.name or k} of seed {agent.seed} diverged and learns no more: {'; '.join(problems)}",
                    stacklevel=6,
                )

    def progress_text(self) -> str:
        if not self.shown:
            return ""
        regrets = sorted(float(o.regret[-1]) for o in self.outcomes())
        return f"{len(regrets)} agents  regret {regrets[len(regrets) // 2]:,.0f}"

    def position(self) -> str:
        return f"at step {self.run.done} of {self.game.rules.steps}"

    def partial_result(self) -> list[Belief]:
        return [self.belief(k) for k in range(len(self.agents))]

    def outcomes(self) -> list[Outcome]:
        """What has come of it so far, agent by agent."""
        game, done = self.game, self.run.done
        actions = game.taken[:, :done].cpu().long()
        played_steps = slice(game.rules.prefill, game.rules.prefill + done)
        outcomes = []
        for k, agent in enumerate(self.agents):
            episode: Episode = game.episodes[game.seeds.index(agent.seed)]
            rows, pays = episode.rows[played_steps], episode.pays[played_steps]
            outcomes.append(Outcome(game.bandit, agent, rows, pays, actions[k], self.troubles.get(k)))
        return outcomes

    def belief(self, member: int) -> Belief:
        """What an agent believes now."""
        problem, beliefs = self.run.problem, self.run.collector.beliefs()
        prior = bind_prior(self.agents[member].learner.prior, problem.layout, beliefs.mean[0])
        record = Record({**self.agent_settings[member], "steps": self.run.done, "versions": versions()})
        return self.run.members.belief(problem, beliefs, member, prior, record)

    def state(self) -> State:
        return State(numbers={"troubles": {str(k): trouble for k, trouble in self.troubles.items()}})

    def load(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        self.troubles = {int(k): trouble for k, trouble in numbers["troubles"].items()}
