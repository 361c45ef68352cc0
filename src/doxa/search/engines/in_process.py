"""No workers but the process itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from doxa.errors import BadInput
from doxa.search.engines.contract import CopySearch, Engine, Evaluate, Exchange


def evaluate_in_process(generation: int, evaluate: Evaluate, blocks: Sequence[slice]) -> list[Tensor | None]:
    """One block after the other, each of them as many nets as one program."""
    return [evaluate(block) for block in blocks]


@dataclass(frozen=True)
class InProcess:
    """The search evaluates by itself, vectorised, on a CPU or a GPU; a generation in one part unless it is told."""

    parts: int = 1

    leads = True

    @contextmanager
    def start_workers(self, copy: CopySearch) -> Iterator[Exchange]:
        yield evaluate_in_process


def resolve_engine(requested: Any) -> Engine:
    """The engine that was asked for; without a word the process itself."""
    if requested is None:
        return InProcess()
    if not hasattr(requested, "start_workers"):
        raise BadInput(f"engine must be one of doxa.search.engines, e.g. pool(4); got {requested!r}")
    engine: Engine = requested
    return engine
