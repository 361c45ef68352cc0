"""`doxa.search.minimise` and `maximise`: the lowest or the highest that a black box over a vector can be brought to."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from doxa.errors import BadInput, whole
from doxa.search.ask_tell import Search, Settings

Objective = Callable[[Tensor], Any]

PATH = 1 << 24  # numbers of means that are remembered
PLATEAU = 100  # generations without any difference between values, after which there is nothing left to go by


@dataclass(frozen=True)
class Found:
    """What a search came to: the best point that was tried, its value, and how it got there."""

    best: Tensor  # [d]
    value: float
    mean: Tensor  # [d]
    scale: Tensor  # [d]
    trajectory: list[dict[str, float]] = field(repr=False)
    path: Tensor = field(repr=False)  # [generations + 1, d]: the means; of long ones the last alone


@torch.no_grad()
def minimise(
    f: Objective,
    start: Any,
    *,
    seed: int = 0,
    generations: int = 2000,
    tolerance: float = 1e-9,
    batched: bool = False,
    **settings: Any,
) -> Found:
    """The lowest value of `f` over a vector, from values alone, by search gradients.

    min_θ U(θ) = E_p(w|θ) f(w) ≥ min_w f(w);   ∇U = E_p(w|θ) f(w) ∇log p(w|θ)

    `f` takes one vector [d], or with `batched` many [N, d], and gives a number for each; a value that is no number
    counts as the worst of its generation. It ends after so many `generations`, when all scales have fallen below
    `tolerance` beside the mean, or when values have not differed for a hundred generations. `settings` are those of
    doxa.search.Settings. Of a noisy `f` the best value is a lucky one.
    Staines & Barber (2013), Optimization by variational bounding; Wierstra et al. (2014).
    """
    search = Search(start, Settings(**settings), seed)
    generations = whole("generations", generations)
    evaluate = _checked(f, batched)
    best, lowest, flat = search.mean.clone(), math.inf, 0
    trajectory: list[dict[str, float]] = []
    path = [search.mean.clone()]
    keep = generations * len(search.mean) <= PATH
    for _ in range(generations):
        points = search.ask()
        values = evaluate(points)
        trajectory.append(search.tell(values))
        known = values.masked_fill(~values.isfinite(), math.inf)
        k = int(known.argmin())
        if float(known[k]) < lowest:
            best, lowest = points[k].clone(), float(known[k])
        if keep:
            path.append(search.mean.clone())
        flat = flat + 1 if bool((known == known[0]).all()) else 0
        near = tolerance * search.mean.abs().max().clamp_min(1)
        if flat >= PLATEAU or bool((search.at.scale <= near).all()):
            break
    middle = float(evaluate(search.mean[None])[0])
    if middle < lowest:
        best, lowest = search.mean.clone(), middle
    means = torch.stack(path if keep else [search.mean])
    return Found(best, lowest, search.mean.clone(), search.at.scales, trajectory, means)


def maximise(f: Objective, start: Any, **more: Any) -> Found:
    """The highest value of `f` over a vector: `minimise` of −f, with values and trajectory given as those of f."""
    found = minimise(lambda w: _negative(f(w)), start, **more)
    rows = [{**row, "value": -row["value"], "highest": -row["lowest"]} for row in found.trajectory]
    for row in rows:
        del row["lowest"]
    return Found(found.best, -found.value, found.mean, found.scale, rows, found.path)


def _negative(values: Any) -> Any:
    return [-v for v in values] if isinstance(values, list | tuple) else -values


def _checked(f: Objective, batched: bool) -> Callable[[Tensor], Tensor]:
    """The objective of rows [N, d] as a vector [N], or an error that says what it gave instead."""

    def evaluate(points: Tensor) -> Tensor:
        given = f(points) if batched else [f(point) for point in points]
        try:
            values = (
                torch.as_tensor(given, dtype=points.dtype, device=points.device)
                if batched
                else torch.stack([torch.as_tensor(v, dtype=points.dtype, device=points.device) for v in given])
            )
        except (TypeError, ValueError, RuntimeError) as error:
            raise BadInput(
                f"the objective must give numbers; it gave {given[0] if given else given!r}: {error}"
            ) from error
        if values.shape != points.shape[:1]:
            one = "many vectors [N, d] must give N values" if batched else "one vector must give one number"
            raise BadInput(
                f"the objective gave values of shape {tuple(values.shape)} for {len(points)} vectors: {one}"
                + ("" if batched else "; if it takes many at once, say batched=True")
            )
        return values

    return evaluate
