"""BANDITS: what a belief is worth to those who act on it. To add a policy: a file here and a line in TABLE."""

from doxa.judge.bandits.agent import Agent as agent
from doxa.judge.bandits.bandit import Bandit, Episode
from doxa.judge.bandits.comparison import Line, Paired, paired, slope, thinned
from doxa.judge.bandits.greedy import Greedy as greedy
from doxa.judge.bandits.mushrooms import mushrooms
from doxa.judge.bandits.neural_linear import NeuralLinear as neural_linear
from doxa.judge.bandits.outcome import Outcome
from doxa.judge.bandits.play import play
from doxa.judge.bandits.replay import Replay
from doxa.judge.bandits.thompson import Thompson as thompson

TABLE = {"thompson": thompson, "greedy": greedy, "neural_linear": neural_linear}

__all__ = [
    "TABLE",
    "Bandit",
    "Episode",
    "Line",
    "Outcome",
    "Paired",
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
