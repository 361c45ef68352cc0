"""Policies for reinforcement learning, with whole episodes as evaluations."""

from doxa.search.episodes.actions import clip, tanh
from doxa.search.episodes.learn import policy
from doxa.search.episodes.result import Player, Policy, Weights, load_policy
from doxa.search.episodes.sight import Normalise, Sight

__all__ = ["Normalise", "Player", "Policy", "Sight", "Weights", "clip", "load_policy", "policy", "tanh"]
