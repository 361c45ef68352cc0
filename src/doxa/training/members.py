"""Who is trained: a net, a learner, and what may differ from its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from doxa.contracts import Schedule
from doxa.engine.contracts import Learner
from doxa.errors import BadInput
from doxa.random.keys import Key
from doxa.training.options import require_autocast, require_optimiser


@dataclass(frozen=True)
class Member:
    """One of a fleet: where its net starts, how it learns, and what may differ from its neighbours."""

    net: nn.Module
    learner: Learner
    seed: int = 0
    lr: float | Schedule | None = None
    validation: Any = None
    rows: Any = None  # indices of the data that it learns from
    number: int | None = None  # in its fleet


def net_keys(members: Sequence[Member]) -> list[Key]:
    """A name for the random numbers of every net: what it is alone, it is in a fleet."""
    return [(member.seed, "net", j) for member in members for j in range(member.learner.nets)]


def keeps_records(members: Sequence[Member]) -> bool:
    """Whether this process writes down what members learn; where workers run the same script, one of them does."""
    return all(getattr(_engine(member.learner), "leads", True) for member in members)


def _engine(learner: Any) -> Any:
    """The workers of a search, be it within an ensemble or an average; others have none."""
    while hasattr(learner, "learner"):
        learner = learner.learner
    return getattr(learner, "engine", None)


def require_training_arguments(net: Any, learner: Any, likelihood: Any, optimiser: Any, autocast: Any) -> None:
    """Refuse what is not a member of its room, before anything else happens."""
    if not isinstance(net, nn.Module):
        raise BadInput(f"net must be a torch module; got {type(net).__name__}")
    for name, value, method in (("learner", learner, "start"), ("likelihood", likelihood, "log_prob")):
        if isinstance(value, type) or not hasattr(value, method):
            raise BadInput(
                f"{name} must be one of doxa.{name}s, with brackets: e.g. doxa.{name}s.{EXAMPLES[name]}; got {value!r}"
            )
    require_optimiser(optimiser)
    require_autocast(autocast)


EXAMPLES = {"learner": "variational(doxa.priors.gaussian(1.0))", "likelihood": "categorical()"}
