"""BANDITS: what a belief is worth to those who act on it. To add a policy: a file here and a line in TABLE."""

from typing import TYPE_CHECKING

from doxa.bandits.agent import Agent as agent
from doxa.bandits.bandit import Bandit, Episode
from doxa.bandits.comparison import LinearFit, PairedDifference, paired, slope, thinned
from doxa.bandits.greedy import Greedy as greedy
from doxa.bandits.mushrooms import mushrooms
from doxa.bandits.neural_linear import NeuralLinear as neural_linear
from doxa.bandits.outcome import Outcome
from doxa.bandits.play import play
from doxa.bandits.replay import Replay
from doxa.bandits.thompson import Thompson as thompson
from doxa.moved.names import renamed

TABLE = {"thompson": thompson, "greedy": greedy, "neural_linear": neural_linear}

if not TYPE_CHECKING:  # a type checker shall report the old names
    __getattr__ = renamed(__name__, {"Line": "LinearFit", "Paired": "PairedDifference"})

__all__ = [
    "TABLE",
    "Bandit",
    "Episode",
    "LinearFit",
    "Outcome",
    "PairedDifference",
    "Replay",
    "agent",
    "greedy",
    "mushrooms",
    "neural_linear",
    "paired",
    "play",
    "slope",
    "thinned",
    "thompson",
]
