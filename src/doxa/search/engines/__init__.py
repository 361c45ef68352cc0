"""ENGINE: who evaluates a generation: the process itself, other processes, other machines."""

from typing import TYPE_CHECKING

from doxa.moved.names import renamed
from doxa.search.engines.contract import Engine, Evaluate, EvaluationFailed, Exchange, OutOfStep
from doxa.search.engines.follower import serialize_search
from doxa.search.engines.in_process import InProcess as in_process
from doxa.search.engines.on_ray import Ray as ray
from doxa.search.engines.pool import Pool as pool
from doxa.search.engines.torchrun import Torchrun as torchrun

if not TYPE_CHECKING:  # a type checker shall report the old names
    __getattr__ = renamed(__name__, {"copied": "serialize_search"})

__all__ = [
    "Engine",
    "Evaluate",
    "EvaluationFailed",
    "Exchange",
    "OutOfStep",
    "in_process",
    "pool",
    "ray",
    "serialize_search",
    "torchrun",
]
