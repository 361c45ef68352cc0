"""The seam between a search and those who evaluate for it."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from doxa.engine.contracts import SharedGradient
from doxa.errors import BadInput, Diverged, DoxaError

# What the units of a stretch of the population come to, at the present version of the distribution: a pure function.
Evaluate = Callable[[slice], Tensor]

# (generation, evaluate, blocks) -> what each block came to; None for one that was lost.
Exchange = Callable[[int, Evaluate, Sequence[slice]], list[Tensor | None]]


@dataclass(frozen=True)
class EvaluationAtState:
    """An evaluation that tells where its search stands: at a mean and scales, with seeds of its noise."""

    evaluate: Evaluate
    search_state: tuple[Tensor, ...]

    def __call__(self, units: slice) -> Tensor:
        return self.evaluate(units)


def search_state_of(evaluate: Evaluate) -> tuple[Tensor, ...]:
    """Where the search stands whose evaluation this is; nothing of one that does not tell."""
    return evaluate.search_state if isinstance(evaluate, EvaluationAtState) else ()


# A search as it stands, for one who is to work at its side: bytes that `follower.deserialize_search` can open.
CopySearch = Callable[[], bytes]


class Engine(Protocol):
    """Workers for a search: frozen settings that start them.

    A worker holds a copy of the search and moves it on by the same values as everyone else, so that seeds and values
    are all that travels. `parts` is how finely a generation is divided, whoever works: results depend on it, and not
    on how many workers there are.
    """

    @property
    def parts(self) -> int: ...

    @property
    def leads(self) -> bool:
        """Whether this process is the one that keeps records; where all run the same script, one does."""
        ...

    def start_workers(self, copy: CopySearch) -> AbstractContextManager[Exchange]:
        """Start the workers, let them evaluate, and stop them."""
        ...


@runtime_checkable
class GradientWithEngine(SharedGradient, Protocol):
    """What a gradient has besides, whose evaluations the workers of an engine share."""

    engine: Engine


class FollowingSearch(Protocol):
    """A search that can be copied, and whose copy can work at its side."""

    def follow(self, exchange: Exchange) -> None:
        """Go on as the original does, with what the exchange says that blocks came to."""
        ...


class EvaluationFailed(DoxaError, RuntimeError):
    """The objective raised an error, or nobody is left to evaluate it; the search stands before the generation.

    `found` holds what a function's or a policy's search had come to.
    """

    def __init__(self, message: str, found: Any = None) -> None:
        super().__init__(message)
        self.found = found


class OutOfStep(DoxaError, RuntimeError):
    """Those who work for a search do not stand where it stands, and what they say is of something else."""


# Errors of Doxa's own that stay what they are, wherever they were raised.
PROPAGATED_ERRORS: dict[str, type[DoxaError]] = {kind.__name__: kind for kind in (BadInput, Diverged)}


def describe_error(error: BaseException) -> tuple[str, str]:
    """An error as words that travel: its kind, and what it says."""
    kind = type(error).__name__
    return kind, str(error) if kind in PROPAGATED_ERRORS else "".join(traceback.format_exception_only(error)).strip()


def failure(generation: int, block: int, kind: str, message: str) -> DoxaError:
    """The error with which a generation ends that another process could not evaluate."""
    description = f"in generation {generation + 1}, block {block} of the population: {message}"
    unchanged = "Nothing was changed by this generation"
    if kind in PROPAGATED_ERRORS:
        return PROPAGATED_ERRORS[kind](f"{description}. {unchanged}")
    return EvaluationFailed(f"the objective raised an error {description}. {unchanged}")
