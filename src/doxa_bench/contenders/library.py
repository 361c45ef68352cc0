"""What every library is given, and what it offers."""

from __future__ import annotations

import copy
import importlib.metadata
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn

from doxa_bench.net_kinds import ROWS
from doxa_bench.tables import NOT_INSTALLED
from doxa_bench.trainables import NamedTensors, TrainableModel


@dataclass(frozen=True)
class LearningTask:
    """A belief to begin with and how to learn it: means are the net's weights, scales go by their names."""

    net: nn.Module
    scales: NamedTensors
    rows: float = ROWS  # over which the KL is divided
    noise: str = "shared"
    samples: int = 1


@dataclass(frozen=True)
class Library:
    """A library as the package registry knows it, its noises, and what it makes of KL(q‖p)/rows."""

    name: str
    noises: tuple[str, ...]
    kl: str
    build_trainable: Callable[[LearningTask], TrainableModel]  # may change the net it is given

    @property
    def version(self) -> str | None:
        """The installed version, or None."""
        return installed_version(self.name)


def installed_version(name: str) -> str | None:
    """The version of a package, or None where it is not."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def try_library(library: Library, task: LearningTask, x: Tensor, y: Tensor) -> TrainableModel | str:
    """The library's pupil, or why there is none; one step of another is tried, so that this is known at once."""
    if task.noise not in library.noises:
        return f"has no {task.noise} noise"
    if library.version is None:
        return NOT_INSTALLED
    try:
        with suppress_warnings():
            library.build_trainable(_copy_task(task)).step(x, y)
            return library.build_trainable(_copy_task(task))
    except Exception as error:
        return f"fails: {type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"


def describe_libraries(libraries: Iterable[Library]) -> dict[str, dict[str, Any]]:
    """What a result says of the libraries: their versions, and what each makes of the KL."""
    return {library.name: {"version": library.version, "kl": library.kl} for library in libraries}


@contextmanager
def suppress_warnings() -> Iterator[None]:
    """Without the libraries' warnings, which are about themselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _copy_task(task: LearningTask) -> LearningTask:
    return replace(task, net=copy.deepcopy(task.net))
