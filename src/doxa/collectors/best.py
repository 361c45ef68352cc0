"""The state that scored best on validation rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from doxa.contracts import Batch
from doxa.engine.context import StepContext
from doxa.engine.contracts import Beliefs, Collector, Gradient, State
from doxa.engine.states import restore


class BestCollector:
    """What another collector kept, as it stood when its net scored best: early stopping.

    Prechelt (1998), Early stopping, but when?
    """

    def __init__(self, gradient: Gradient, inner: Collector) -> None:
        self.gradient, self.inner = gradient, inner
        self.moments, self.observe, self.beliefs = inner.moments, inner.observe, inner.beliefs
        self.best_tensors: dict[str, Tensor] = {}  # rows [K, ·]
        self.nets_with_best: set[int] = set()  # nets that have a best

    moments: Callable[[range], Collection[int]]
    observe: Callable[[StepContext], None]
    beliefs: Callable[[], Beliefs]

    def _tensors(self) -> dict[str, Tensor]:
        return {**self.gradient.state().tensors, **{f"inner.{k}": t for k, t in self.inner.state().tensors.items()}}

    @torch.no_grad()
    def improved(self, nets: Sequence[int]) -> None:
        for name, tensor in self._tensors().items():
            if name not in self.best_tensors:
                self.best_tensors[name] = tensor.clone()
            for k in nets:
                self.best_tensors[name][k] = tensor[k]
        self.nets_with_best.update(nets)

    @torch.no_grad()
    def finish(self, nets: Sequence[int], data: Callable[[], Iterator[Batch]]) -> None:
        """Put nets back to the best that they have been."""
        for name, tensor in self._tensors().items():
            for k in self.nets_with_best.intersection(nets):
                tensor[k] = self.best_tensors[name][k]
        self.inner.finish(nets, data)

    def state(self) -> State:
        inner = self.inner.state()
        tensors = {f"best.{k}": t for k, t in self.best_tensors.items()} | {
            f"inner.{k}": t for k, t in inner.held.items()
        }
        moving = {f"inner.{k}": t for k, t in inner.moving.items()}
        return State(tensors, moving, {"known": sorted(self.nets_with_best), "inner": dict(inner.numbers)})

    def load(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        like = self.gradient.parameters[0].values
        inner_tensors = {k.removeprefix("inner."): t for k, t in tensors.items() if k.startswith("inner.")}
        self.inner.load(inner_tensors, numbers.get("inner", {}))
        self.nets_with_best = set(numbers.get("known", ()))
        self.best_tensors = {k.removeprefix("best."): t for k, t in tensors.items() if k.startswith("best.")}
        if not self.nets_with_best <= {*range(len(like))}:
            raise ValueError(f"known names nets that are not among {len(like)}")
        if self.best_tensors or self.nets_with_best:
            expected = {name: torch.empty_like(t, device="cpu") for name, t in self._tensors().items()}
            restore(expected, self.best_tensors)
            self.best_tensors = {name: t.to(like.device) for name, t in expected.items()}
