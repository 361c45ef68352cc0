"""OBJECTIVE: what a net's outputs are worth beside the targets; any function of both will do.

A function takes outputs [B, ...] and targets [B, ...] and gives one number a row [B], or one for all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from doxa.errors import BadInput

Measure = Callable[[Tensor, Tensor], Tensor]


def zero_one(output: Tensor, y: Tensor) -> Tensor:
    """1 where the likeliest class is not the label, 0 where it is [B]: to be minimised."""
    return (output.argmax(-1) != y).to(output.dtype)


def f1(output: Tensor, y: Tensor) -> Tensor:
    """The mean over classes of F₁ = 2 TP / (2 TP + FP + FN), a number: to be maximised.

    Classes that are neither there nor said do not count. Van Rijsbergen (1979), Information retrieval.
    """
    classes = torch.arange(output.shape[-1], device=output.device)
    predicted, actual = output.argmax(-1)[:, None] == classes, y[:, None] == classes
    hits, predicted_or_actual = (predicted & actual).sum(0), predicted.sum(0) + actual.sum(0)
    return (2 * hits / predicted_or_actual.clamp_min(1)).sum().to(output.dtype) / (predicted_or_actual > 0).sum()


def require_measure(name: str, measure: Any) -> None:
    """Refuse what is no function of outputs and targets; None is the likelihood's own."""
    if measure is not None and not callable(measure):
        raise BadInput(
            f"{name} must be a function of outputs and targets, e.g. doxa.search.zero_one or f1, or None; got "
            f"{measure!r}"
        )


@dataclass(frozen=True)
class Objective:
    """A measure with its direction: values are lower where they are better."""

    measure: Measure | None  # None: −log p(y | output)
    sign: float = 1.0

    def by_row(self, output: Tensor, y: Tensor) -> bool:
        """Whether it is a number for each row, found by asking with all rows and with the first ones alone."""
        if self.measure is None:
            return True
        values = self._call_measure(output, y)
        if values.dim() == 0:
            return False
        if values.shape != y.shape[:1]:
            raise BadInput(
                f"the objective gave a tensor of shape {tuple(values.shape)} for {len(y)} rows; it must give one "
                "number a row, or one number"
            )
        half = max(1, len(y) // 2)
        if not torch.allclose(self._call_measure(output[:half], y[:half]), values[:half], equal_nan=True):
            raise BadInput(
                "the objective gives a number for each row that depends on the other rows; let it give one number for "
                "all, or leave its rows to themselves"
            )
        return True

    def _call_measure(self, output: Tensor, y: Tensor) -> Tensor:
        assert self.measure is not None
        returned = self.measure(output, y)
        try:
            values = returned if isinstance(returned, Tensor) else torch.as_tensor(returned)
        except (TypeError, ValueError, RuntimeError) as error:
            raise BadInput(f"the objective must give numbers; it gave {returned!r:.80}: {error}") from error
        return values.detach().to(output)

    def values(self, outputs: Tensor, y: Tensor, nll: Tensor, by_row: bool) -> Tensor:
        """Of outputs [n, B, ...]: a number a row [n, B], or one for each of n perturbations."""
        if self.measure is None:
            return nll
        if by_row:
            flat_arguments = outputs.flatten(0, 1), y.repeat(len(outputs), *[1] * (y.dim() - 1))
            return self.sign * _require_shape(self._call_measure(*flat_arguments), (nll.numel(),), "a row").view(
                nll.shape
            )
        per_perturbation = [_require_shape(self._call_measure(output, y), (), "for all rows") for output in outputs]
        return self.sign * torch.stack(per_perturbation)


def _require_shape(values: Tensor, shape: tuple[int, ...], unit: str) -> Tensor:
    """What an objective gave, of the shape that it first had."""
    if tuple(values.shape) != shape:
        raise BadInput(
            f"the objective first gave one number {unit}, and now a tensor of shape {tuple(values.shape)} instead of "
            f"{shape}: it must give the same for any outputs"
        )
    return values
