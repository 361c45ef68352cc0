"""Policies for reinforcement learning, with whole episodes as evaluations."""

from typing import TYPE_CHECKING

from doxa.moved.names import renamed
from doxa.search.episodes.actions import clip, tanh
from doxa.search.episodes.learn import policy
from doxa.search.episodes.observation_normalizer import Normalise, ObservationNormalizer
from doxa.search.episodes.result import Player, Policy, Weights, load_policy

if not TYPE_CHECKING:  # a type checker shall report the old names
    __getattr__ = renamed(__name__, {"Sight": "ObservationNormalizer"})

__all__ = ["Normalise", "ObservationNormalizer", "Player", "Policy", "Weights", "clip", "load_policy", "policy", "tanh"]
