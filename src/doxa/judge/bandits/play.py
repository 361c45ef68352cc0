"""Agents at a contextual bandit, all at once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import nn

from doxa.checkpoint import describe
from doxa.contracts import Likelihood
from doxa.errors import BadInput, Interrupted, whole
from doxa.feed import InMemory
from doxa.fit import Member, keys, on, pose, require_members
from doxa.interrupt import gentle_interrupt
from doxa.judge.bandits.agent import Agent
from doxa.judge.bandits.bandit import Bandit
from doxa.judge.bandits.game import Game, Rules
from doxa.judge.bandits.outcome import Outcome
from doxa.layout import lay_out, mode
from doxa.optimisers.adam import Adam
from doxa.optimisers.sgd import Sgd
from doxa.progress import Progress
from doxa.randomness import isolated, seed_of
from doxa.threads import threads


def play(
    net: nn.Module | Sequence[nn.Module],
    bandit: Bandit,
    agents: Sequence[Agent],
    *,
    likelihood: Likelihood,
    steps: int,
    updates: int = 64,
    batch_size: int = 64,
    memory: int = 4096,
    prefill: int | None = None,
    optimiser: Adam | Sgd | None = None,
    device: torch.device | str | None = None,
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_every: int = 5000,
    resume: bool = False,
    progress: bool = True,
) -> list[Outcome]:
    """Let agents play so many steps, each learning from what it did; agents of a seed meet the same, to the coin.

    regret_T = Σ_{t ≤ T} (r_t(oracle) − r_t(agent)),  oracle = argmaxₐ E[r | x_t, a]

    In every step all agents choose, see what their action pays, put it in the place of the oldest of the `memory`
    latest things they remember, and take `updates` steps of Adam on minibatches of `batch_size` drawn from these. At
    first they remember `prefill` actions taken at random, as many as fit unless told otherwise, which count for no
    regret. `net` is one for all or one an agent, from context and action [B, D + A] to what the likelihood takes.
    Agents of one kind play as one program; on a GPU a step is one CUDA graph. With `checkpoint`, a folder, the game is
    saved every so many steps and when interrupted; `resume=True` goes on from there, to the same bits.
    Blundell et al. (2015), Weight uncertainty in neural networks, section 5.3.
    """
    agents = _agents(agents)
    nets = [net] * len(agents) if isinstance(net, nn.Module) else list(net)
    if len(nets) != len(agents):
        raise BadInput(f"give one net for all or one an agent; got {len(nets)} nets for {len(agents)} agents")
    if not isinstance(bandit, Bandit):
        raise BadInput(f"bandit must be a doxa.judge.bandits.Bandit, e.g. mushrooms(); got {type(bandit).__name__}")
    for own, agent in zip(nets, agents, strict=True):
        require_members(own, agent.learner, likelihood, None, None)
    optimiser = Adam() if optimiser is None else optimiser
    if not isinstance(optimiser, Adam | Sgd):
        raise BadInput("optimiser must be one of doxa.optimisers, whose steps need no word from the CPU: e.g. adam()")
    rules = Rules(
        steps=whole("steps", steps),
        updates=whole("updates", updates, least=0),
        batch_size=whole("batch_size", batch_size),
        memory=whole("memory", memory),
        prefill=whole("memory", memory) if prefill is None else whole("prefill", prefill, least=0),
    )
    every = whole("checkpoint_every", checkpoint_every)
    if rules.prefill > rules.memory:
        raise BadInput(f"prefill={prefill}, but memory={memory}: no more can be remembered than fits")
    groups: dict[Any, list[int]] = {}
    for k, agent in enumerate(agents):
        groups.setdefault(agent.kind, []).append(k)
    root = None if checkpoint is None else Path(checkpoint)
    found: dict[int, Outcome] = {}
    with gentle_interrupt() as stop:
        for number, group in enumerate(groups.values()):
            part = f"part {number + 1}/{len(groups)}, " if len(groups) > 1 else ""
            folder = root if root is None or len(groups) == 1 else root / f"part-{number}"
            members = [Member(nets[k], agents[k].learner, agents[k].seed, agents[k].lr) for k in group]
            game = begun(members, bandit, [agents[k] for k in group], likelihood, optimiser, device, rules)
            game.folder, game.every = folder, every
            game.reopen(resume)
            if stop.is_set() and game.done < rules.steps:
                raise Interrupted(f"stopped before part {number + 1} of {len(groups)} of the game")
            where = game.words.device
            here = torch.cuda.device(where) if where.type == "cuda" else nullcontext()
            few = threads(members[0].net, rules.batch_size * len(members))
            with here, few, isolated(where), mode(members[0].net, training=True), torch.enable_grad():
                game.go(stop, Progress(progress, rules.steps, 1, game.done, len(group), part, "step"))
            ends = [replace(o, belief=game.belief(i)) for i, o in enumerate(game.outcomes())]
            found |= dict(zip(group, ends, strict=True))
    return [found[k] for k in range(len(agents))]


def _agents(agents: Any) -> list[Agent]:
    found = [agents] if isinstance(agents, Agent) else list(agents)
    if not found or not all(isinstance(agent, Agent) for agent in found):
        raise BadInput("agents must be a list of doxa.judge.bandits.agent(…), at least one")
    seen: set[Any] = set()
    for agent in found:
        key = repr((describe(agent.learner), agent.policy, agent.seed, describe(agent.lr), agent.reward_scale))
        if key in seen:
            warnings.warn(f"two agents are the same in everything, and will do the same: {agent}", stacklevel=3)
        seen.add(key)
    return found


def begun(
    members: Sequence[Member],
    bandit: Bandit,
    agents: Sequence[Agent],
    likelihood: Likelihood,
    optimiser: Adam | Sgd,
    device: torch.device | str | None,
    rules: Rules,
) -> Game:
    """A game before its first step."""
    _, start = lay_out(members[0].net)
    like = on(device, start[:1])
    source = InMemory(bandit.inputs.to(like), bandit.expected.reshape(-1).to(like), rules.batch_size)
    problem = pose(members, source, likelihood, None, like.device, None)
    training = members[0].learner.start(problem, [one.learner for one in members])
    settings = {
        "bandit": {"name": bandit.name, "data": source.fingerprint()},
        "likelihood": describe(likelihood),
        "optimiser": describe(optimiser),
        "net": [describe(one.net) for one in members],
        "agents": [describe(agent) for agent in agents],
        **asdict(rules),
    }
    words = torch.tensor([seed_of(key) for key in keys(members)], device=like.device)
    light = replace(problem.light(), buffers=problem.buffers)
    return Game(
        bandit=bandit,
        agents=agents,
        problem=light,
        training=training,
        optimiser=optimiser.start(training),
        source=source,
        words=words,
        settings=settings,
        rules=rules,
    )
