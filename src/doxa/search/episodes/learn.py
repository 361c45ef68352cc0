"""`doxa.search.policy`: a net that acts, found by the returns of whole episodes."""

from __future__ import annotations

import math
from os import PathLike
from typing import Any

import torch
from torch import nn

from doxa.errors import BadInput, require_whole
from doxa.search.ask_tell import Search
from doxa.search.engines.contract import Engine
from doxa.search.engines.in_process import resolve_engine
from doxa.search.episodes.actions import Bound, tanh
from doxa.search.episodes.environments import Environment, EnvironmentSpec
from doxa.search.episodes.observation_normalizer import empty_normalizer
from doxa.search.episodes.policy_network import PolicyNetwork
from doxa.search.episodes.policy_search import KIND, PolicySearch
from doxa.search.episodes.result import Policy
from doxa.search.resumable_search import CheckpointOptions, run_search
from doxa.search.settings import build_settings
from doxa.storage.describe import describe
from doxa.weights.layout import module_mode

# What serves policies better than the defaults of a search: few perturbations and long steps, so as to learn often.
POLICY_DEFAULTS = {"scale": 0.5, "size": 40, "lr": 2.0}


def natural_scale_rate(dimension: int) -> float:
    """The rate of the scales that the separable natural evolution strategy takes."""
    return (3 + math.log(dimension)) / (5 * math.sqrt(dimension))


@torch.no_grad()
def policy(
    environment: Environment,
    net: nn.Module,
    *,
    seed: int = 0,
    generations: int = 1000,
    episodes: int = 2,
    common: bool = True,
    normalise: bool = True,
    bound: Bound = tanh,
    longest: int | None = None,
    target: float | str | None = "threshold",
    engine: Engine | None = None,
    checkpoint: str | PathLike[str] | None = None,
    resume: bool = False,
    progress: bool = True,
    **settings: Any,
) -> Policy:
    """The weights of a net that acts, from the returns of whole episodes alone.

    max_θ E_p(w|θ) R(w),  R = Σ_t r_t of an episode in which the net with weights w chooses every action

    `environment` is a name that gymnasium knows, or a function that makes one. Every perturbation plays so many
    `episodes`; `common` gives all of a generation the same ones, so that returns differ by weights alone. With
    `normalise` observations are shown less their mean and over their spread, of all that was seen in generations before
    this one. A net may remember: `forward(observations, state=None)` then gives outputs and a state, tensors with a row
    for each observation, which it is handed at the next step of the same episode. Discrete actions are the highest
    output, continuous ones lie within their bounds by `bound`. It ends after so many `generations`, or when the mean's
    returns over 100 new episodes reach `target` by two standard errors: a number, "threshold" for the one at which
    gymnasium calls the environment solved, or None. `engine`, one of doxa.search.engines, says who plays; an episode
    must be a function of its seed and of the actions. `settings` are those of doxa.search.Settings, usually with a
    scale of ½, 40 perturbations, a rate of 2 and faster scales. With a `checkpoint` folder each generation is saved;
    `resume=True` goes on, to the same bits.
    Salimans et al. (2017), Evolution strategies as a scalable alternative to reinforcement learning; Mania et al.
    (2018), Simple random search of static linear policies is competitive for reinforcement learning.
    """
    if not isinstance(net, nn.Module):
        raise BadInput(f"net must be a torch module; got {type(net).__name__}")
    seed = require_whole("seed", seed, least=None)
    env_spec = EnvironmentSpec(environment, None if longest is None else require_whole("longest", longest))
    goal = _target(target, env_spec)
    with module_mode(net, training=False):
        network = PolicyNetwork(net, env_spec.observation_shape, env_spec.output_count)
        search_settings = build_settings(
            {**POLICY_DEFAULTS, "scale_lr": natural_scale_rate(len(network.initial_weights)), **settings}
        )
        if search_settings.refresh is not None or search_settings.adapts:
            raise BadInput(
                "refresh and adapts compare returns of one generation with another's, which had other episodes; leave "
                "them out"
            )
        resolved_engine = resolve_engine(engine)
        policy_search = PolicySearch(
            search=Search(network.initial_weights, search_settings, seed),
            env_spec=env_spec,
            network=network,
            bound=bound,
            seed=seed,
            episodes=require_whole("episodes", episodes),
            common=common,
            target=goal,
            generations=require_whole("generations", generations),
            parts=resolved_engine.parts,
            normalizer=empty_normalizer(env_spec.observation_shape) if normalise else None,
        )
        recorded_settings = {
            "environment": env_spec.name,
            "longest": env_spec.longest,
            "net": describe(net),
            "search": describe(search_settings),
            "seed": seed,
            "episodes": episodes,
            "common": common,
            "normalise": normalise,
            "bound": describe(bound),
            "target": goal,
            "parts": resolved_engine.parts,
        }
        run_search(
            policy_search, resolved_engine, CheckpointOptions(KIND, checkpoint, recorded_settings, 1, resume), progress
        )
    return policy_search.partial_result()


def _target(target: Any, env_spec: EnvironmentSpec) -> float | None:
    if target == "threshold":
        return env_spec.threshold
    if target is None or isinstance(target, int | float):
        return target
    raise BadInput(f'target must be a number, "threshold" or None; got {target!r}')
