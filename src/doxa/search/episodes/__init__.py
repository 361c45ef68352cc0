"""Policies for reinforcement learning, with whole episodes as evaluations."""

from doxa.search.episodes.actions import clip, tanh
from doxa.search.episodes.learn import policy
from doxa.search.episodes.observation_normalizer import Normalise, ObservationNormalizer
from doxa.search.episodes.result import Player, Policy, Weights, load_policy

__all__ = ["Normalise", "ObservationNormalizer", "Player", "Policy", "Weights", "clip", "load_policy", "policy", "tanh"]
