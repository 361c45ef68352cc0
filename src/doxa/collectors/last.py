"""The last state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from doxa.contracts import Batch
from doxa.engine.context import StepContext
from doxa.engine.contracts import Beliefs, CollectorSetup, Gradient, State


@dataclass(frozen=True)
class Last:
    """What the parameters are when the last step is done."""

    def start(self, gradient: Gradient, setup: CollectorSetup) -> LastCollector:
        """Nothing to keep."""
        return LastCollector(gradient)


class LastCollector:
    """The parameters themselves."""

    def __init__(self, gradient: Gradient) -> None:
        self.gradient = gradient

    def moments(self, span: range) -> Sequence[int]:
        return ()

    def observe(self, context: StepContext) -> None:
        pass

    def improved(self, nets: Sequence[int]) -> None:
        pass

    def finish(self, nets: Sequence[int], data: Callable[[], Iterator[Batch]]) -> None:
        pass

    def beliefs(self) -> Beliefs:
        return self.gradient.beliefs()

    def state(self) -> State:
        return State()

    def load(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        pass


last = Last
EXAMPLES = {"last": (Last(),)}
