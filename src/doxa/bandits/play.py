"""Agents at a contextual bandit, all at once."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import nn

from doxa.bandits.agent import Agent
from doxa.bandits.bandit import Bandit
from doxa.bandits.game import Game, GameSettings
from doxa.bandits.game_monitor import SPAN, GameMonitor
from doxa.bandits.outcome import Outcome
from doxa.collectors.last import Last, LastCollector
from doxa.contracts import Likelihood
from doxa.engine.checkpoint import Checkpointer, reserved
from doxa.engine.contracts import Learner
from doxa.engine.driver import drive
from doxa.engine.feed import InMemoryFeed
from doxa.engine.members import Members, repeat_per_net
from doxa.engine.run import Calendar, Run, training_context
from doxa.errors import BadInput, BrokenFile, Interrupted, require_whole
from doxa.optimisers.adam import Adam
from doxa.optimisers.sgd import Sgd
from doxa.random.keys import seed_of
from doxa.rates import constant
from doxa.storage.describe import describe
from doxa.terminal.interrupt import gentle_interrupt
from doxa.terminal.progress import Progress
from doxa.training.members import Member, net_keys, require_training_arguments
from doxa.training.problem import build_problem, to_device
from doxa.training.threads import limit_threads
from doxa.weights.layout import lay_out

STATE = "doxa.bandits"  # the kind of its checkpoints


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
    replacement: bool = True,
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
    latest things they remember, and take `updates` steps of Adam on minibatches of `batch_size` drawn from these;
    without `replacement` nothing is drawn twice in a step, so that minibatches enough are one pass over the memory. At
    first they remember `prefill` actions taken at random, as many as fit unless told otherwise, which count for no
    regret. `net` is one for all or one an agent, from context and action [B, D + A] to what the likelihood takes.
    Agents of one kind play as one program; on a GPU a step is one CUDA graph. With `checkpoint`, a folder, the game is
    saved every so many steps and when interrupted; `resume=True` goes on from there, to the same bits.
    Blundell et al. (2015), Weight uncertainty in neural networks, section 5.3.
    """
    agents = _require_agents(agents)
    nets = [net] * len(agents) if isinstance(net, nn.Module) else list(net)
    if len(nets) != len(agents):
        raise BadInput(f"give one net for all or one an agent; got {len(nets)} nets for {len(agents)} agents")
    if not isinstance(bandit, Bandit):
        raise BadInput(f"bandit must be a doxa.bandits.Bandit, e.g. mushrooms(); got {type(bandit).__name__}")
    for agent_net, agent in zip(nets, agents, strict=True):
        require_training_arguments(agent_net, agent.learner, likelihood, None, None)
        _require_playing(agent.learner)
    optimiser = Adam() if optimiser is None else optimiser
    if not isinstance(optimiser, Adam | Sgd):
        raise BadInput("optimiser must be one of doxa.optimisers, whose steps need no word from the CPU: e.g. adam()")
    rules = _game_settings(steps, updates, batch_size, memory, prefill, replacement)
    every = require_whole("checkpoint_every", checkpoint_every)
    groups: dict[Any, list[int]] = {}
    for k, agent in enumerate(agents):
        groups.setdefault(agent.kind, []).append(k)
    root = None if checkpoint is None else Path(checkpoint)
    outcome_of_agent: dict[int, Outcome] = {}
    with gentle_interrupt() as stop:
        for number, group in enumerate(groups.values()):
            part = f"part {number + 1}/{len(groups)}, " if len(groups) > 1 else ""
            folder = root if root is None or len(groups) == 1 else root / f"part-{number}"
            members = [Member(nets[k], agents[k].learner, agents[k].seed, agents[k].lr) for k in group]
            run, game_monitor, settings = start_game(
                members, bandit, [agents[k] for k in group], likelihood, optimiser, device, rules
            )
            file = Checkpointer(
                STATE, "game", folder, settings, is_due=partial(_is_due, every), unsaved_note="", show_values=False
            )
            with ExitStack() as stack:
                stack.callback(run.release)
                stack.enter_context(reserved(file.folder))
                file.reopen(run, resume)
                _require_same_step(run, game_monitor.game, file)
                if stop.is_set() and not run.finished:
                    raise Interrupted(
                        f"stopped before part {number + 1} of {len(groups)} of the game", None, stop.signal
                    )
                progress_bar = Progress(progress, rules.steps, 1, run.done, len(group), part, "step")
                game_monitor.shown = progress_bar.bar is not None
                with (
                    limit_threads(members[0].net, rules.batch_size * len(members)),
                    training_context(run.problem, run.device),
                ):
                    if not run.finished:
                        # By all steps, not by those left: a game that is resumed must run on the same kernels.
                        run.record(run.calendar.units * run.source.period)
                    drive(run, file, progress_bar, stop)
                outcomes = [replace(o, belief=game_monitor.belief(i)) for i, o in enumerate(game_monitor.outcomes())]
                outcome_of_agent |= dict(zip(group, outcomes, strict=True))
    return [outcome_of_agent[k] for k in range(len(agents))]


def _game_settings(
    steps: int, updates: int, batch_size: int, memory: int, prefill: int | None, replacement: bool
) -> GameSettings:
    """How a game is played, if it can be."""
    rules = GameSettings(
        steps=require_whole("steps", steps),
        updates=require_whole("updates", updates, least=0),
        batch_size=require_whole("batch_size", batch_size),
        memory=require_whole("memory", memory),
        prefill=require_whole("memory", memory) if prefill is None else require_whole("prefill", prefill, least=0),
        replacement=bool(replacement),
    )
    if rules.prefill > rules.memory:
        raise BadInput(f"prefill={prefill}, but memory={memory}: no more can be remembered than fits")
    at_first = min(rules.prefill + 1, rules.memory)
    if not rules.replacement and rules.updates * rules.batch_size > at_first:
        raise BadInput(
            f"without replacement {rules.updates} minibatches of {rules.batch_size} are made of "
            f"{rules.updates * rules.batch_size} things, but at first {at_first} are remembered"
        )
    return rules


def _require_same_step(run: Run, game: Game, file: Checkpointer) -> None:
    """Refuse a checkpoint whose run and game stand at different steps."""
    if int(game.clock) != run.done:
        raise BrokenFile(
            f"{file.saved_in} holds a run of {run.done} steps and a game of {int(game.clock)}; restore it from a copy"
        )


def _require_agents(agents: Any) -> list[Agent]:
    agent_list = [agents] if isinstance(agents, Agent) else list(agents)
    if not agent_list or not all(isinstance(agent, Agent) for agent in agent_list):
        raise BadInput("agents must be a list of doxa.bandits.agent(…), at least one")
    known_keys: set[Any] = set()
    for agent in agent_list:
        key = repr((describe(agent.learner), agent.policy, agent.seed, describe(agent.lr), agent.reward_scale))
        if key in known_keys:
            warnings.warn(f"two agents are the same in everything, and will do the same: {agent}", stacklevel=3)
        known_keys.add(key)
    return agent_list


def _require_playing(learner: Learner) -> None:
    """Refuse a learner whose steps or whose way of keeping a game has no use for."""
    if learner.optimiser([learner]) is None and isinstance(learner.collector([learner]), Last):
        return
    raise BadInput(
        f"an agent acts on what it believes now, by steps of the game's optimiser, and {type(learner).__name__} keeps "
        "its way or takes steps of its own: use point, dropout, variational, a search, or an ensemble of these"
    )


def _is_due(every: int, done: int) -> bool:
    """Whether a game is saved after so many steps."""
    return done % every == 0


def start_game(
    members: Sequence[Member],
    bandit: Bandit,
    agents: Sequence[Agent],
    likelihood: Likelihood,
    optimiser: Adam | Sgd,
    device: torch.device | str | None,
    rules: GameSettings,
) -> tuple[Run, GameMonitor, dict[str, Any]]:
    """A game before its first step, who watches over it, and its settings."""
    _, start = lay_out(members[0].net)
    like = to_device(device, start[:1])
    rows = InMemoryFeed(bandit.inputs.to(like), bandit.expected.reshape(-1).to(like), rules.batch_size)
    problem = build_problem(members, rows, likelihood, None, like.device, None)
    gradient = members[0].learner.start(problem, [member.learner for member in members])
    settings = {
        "bandit": {"name": bandit.name, "data": rows.fingerprint()},
        "likelihood": describe(likelihood),
        "optimiser": describe(optimiser),
        "net": [describe(member.net) for member in members],
        "agents": [describe(agent) for agent in agents],
        **{k: v for k, v in asdict(rules).items() if k != "replacement" or not v},  # as games were saved before
    }
    net_seeds = torch.tensor([seed_of(key) for key in net_keys(members)], device=like.device)
    light_problem, nets = replace(problem.without_starts(), buffers=problem.buffers), members[0].learner.nets
    game = Game(bandit, agents, light_problem, gradient, rows, net_seeds, rules)
    rates = [agent.lr if callable(agent.lr) else constant(float(agent.lr)) for agent in agents]
    run = Run(
        problem=light_problem,
        members=Members(len(members), nets),
        gradient=gradient,
        stepper=optimiser.start(gradient),
        collector=LastCollector(gradient),
        source=game,
        net_seeds=net_seeds,
        rates=repeat_per_net(rates, nets),
        kl_weights=repeat_per_net([agent.learner.kl_weight for agent in agents], nets),
        calendar=Calendar(rules.steps, 1, SPAN),
        data=partial(rows.epoch, 0, net_seeds, 0),
    )
    game_monitor = GameMonitor(run, game, agents, settings["agents"])
    run.monitor, run.reporter = game_monitor, game_monitor
    return run, game_monitor, settings
