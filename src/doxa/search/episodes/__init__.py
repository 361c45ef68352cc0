"""Policies for reinforcement learning, with whole episodes as evaluations."""

from doxa.search.episodes.actions import clip, tanh
from doxa.search.episodes.learn import policy
from doxa.search.episodes.result import Policy, Weights
from doxa.search.episodes.sight import Normalise, Sight

__all__ = ["Normalise", "Policy", "Sight", "Weights", "clip", "policy", "tanh"]
