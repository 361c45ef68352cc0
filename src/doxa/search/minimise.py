"""`doxa.search.minimise` and `maximise`: the lowest or the highest that a black box over a vector can be brought to."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from typing import Any

import torch
from torch import Tensor

from doxa.checkpoint import describe
from doxa.errors import BadInput, whole
from doxa.interrupt import gentle_interrupt
from doxa.progress import Progress, told
from doxa.search import saved
from doxa.search.ask_tell import Search, Settings
from doxa.search.engines import copied
from doxa.search.engines.contract import Engine, Exchange
from doxa.search.engines.in_process import InProcess

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


class Minimising:
    """A search for the lowest value of a function under way."""

    def __init__(
        self, search: Search, f: Objective, batched: bool, generations: int, tolerance: float, parts: int
    ) -> None:
        self.search, self.f, self.batched = search, f, batched
        self.generations, self.tolerance, self.parts = generations, tolerance, parts
        self.best, self.lowest, self.flat = search.mean.clone(), math.inf, 0
        self.trajectory: list[dict[str, float]] = []
        self.path = [search.mean.clone()]
        self.remembers = generations * len(search.mean) <= PATH

    def follow(self, exchange: Exchange) -> None:
        """Go on beside the search that this is a copy of, by what it and all others find."""
        self.go(exchange)

    @torch.no_grad()
    def go(self, exchange: Exchange, after: Callable[[Minimising], None] = lambda under_way: None) -> None:
        """Generation by generation, until there is nothing left to gain; `after` each of them is told."""
        search = self.search
        while search.generation < self.generations and not self.done:
            blocks = search.blocks(self.parts)
            found = exchange(search.generation, self._evaluate, blocks)
            values, here = search.wanted.arrived(found, blocks)
            self._keep_best(values, here)
            same = len(values) > 0 and bool((values.isfinite() & (values == values[0])).all())
            self.flat = self.flat + 1 if same else 0
            self.trajectory.append(search.tell(values, here))
            if self.remembers:
                self.path.append(search.mean.clone())
            after(self)

    def _evaluate(self, units: slice) -> Tensor:
        return evaluated_at(self.f, self.batched, self.search.points(units))

    @property
    def done(self) -> bool:
        """Whether nothing is left to gain."""
        near = self.tolerance * self.search.mean.abs().max().clamp_min(1)
        return self.flat >= PLATEAU or bool((self.search.at.scale <= near).all())

    def _keep_best(self, values: Tensor, here: Tensor) -> None:
        if not len(values):
            return
        k = int(values.masked_fill(~values.isfinite(), math.inf).argmin())
        if float(values[k]) < self.lowest:
            number, per_unit = int(here.nonzero()[k]), self.search.population.per_unit
            unit = number // per_unit
            self.best = self.search.points(slice(unit, unit + 1))[number % per_unit].clone()
            self.lowest = float(values[k])

    def found(self) -> Found:
        """What it came to: the best point that was tried, the last mean among them."""
        search = self.search
        middle = float(evaluated_at(self.f, self.batched, search.mean[None])[0])
        if middle < self.lowest:
            self.best, self.lowest = search.mean.clone(), middle
        path = torch.stack(self.path if self.remembers else [search.mean])
        return Found(self.best, self.lowest, search.mean.clone(), search.at.scales, self.trajectory, path)


@torch.no_grad()
def minimise(
    f: Objective,
    start: Any,
    *,
    seed: int = 0,
    generations: int = 2000,
    tolerance: float = 1e-9,
    batched: bool = False,
    engine: Engine | None = None,
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_every: int = 1,
    resume: bool = False,
    progress: bool = True,
    **settings: Any,
) -> Found:
    """The lowest value of `f` over a vector, from values alone, by search gradients.

    min_θ U(θ) = E_p(w|θ) f(w) ≥ min_w f(w);   ∇U = E_p(w|θ) f(w) ∇log p(w|θ)

    `f` takes one vector [d], or with `batched` many [N, d], and gives a number for each; a value that is no number
    counts as the worst of its generation. It ends after so many `generations`, when all scales have fallen below
    `tolerance` beside the mean, or when values have not differed for a hundred generations. `engine`, one of
    doxa.search.engines, says who evaluates. With `checkpoint`, a folder, the search is saved every `checkpoint_every`
    generations and when interrupted; `resume=True` goes on from there, to the same bits. `settings` are those of
    doxa.search.Settings. Of a noisy `f` the best value is a lucky one.
    Staines & Barber (2013), Optimization by variational bounding; Wierstra et al. (2014).
    """
    search = Search(start, Settings(**settings), seed)
    crew = InProcess() if engine is None else engine
    under_way = Minimising(search, f, batched, whole("generations", generations), tolerance, crew.parts)
    asked = {"seed": seed, "start": describe(_start(start)), "parts": crew.parts, **describe(search.settings)}
    file = saved.File(checkpoint, asked, whole("checkpoint_every", checkpoint_every), resume)
    file.reopen(under_way)
    if not crew.leads:
        file.folder = None
    shown = Progress(progress and crew.leads, under_way.generations, 1, search.generation, unit="generation")
    with shown, gentle_interrupt() as stop, crew.working(partial(copied, under_way)) as exchange:

        def after(_: Minimising) -> None:
            shown.words = told(under_way.trajectory[-1], "value")
            shown.step(search.generation)
            file.after(under_way)
            if stop.is_set() and search.generation < under_way.generations:
                raise file.interrupted(under_way)

        under_way.go(exchange, after)
    return under_way.found()


def _start(start: Any) -> Any:
    return start if isinstance(start, Tensor) else torch.as_tensor(start)


def maximise(f: Objective, start: Any, **more: Any) -> Found:
    """The highest value of `f` over a vector: `minimise` of −f, with values and trajectory given as those of f."""
    found = minimise(Negative(f), start, **more)
    rows = [{**row, "value": -row["value"], "highest": -row["lowest"]} for row in found.trajectory]
    for row in rows:
        del row["lowest"]
    return Found(found.best, -found.value, found.mean, found.scale, rows, found.path)


@dataclass(frozen=True)
class Negative:
    """−f, for workers to open: a function inside another cannot be copied to them."""

    f: Objective

    def __call__(self, w: Tensor) -> Any:
        values = self.f(w)
        return [-v for v in values] if isinstance(values, list | tuple) else -values


def evaluated_at(f: Objective, batched: bool, points: Tensor) -> Tensor:
    """The objective of rows [N, d] as a vector [N], or an error that says what it gave instead."""
    given = f(points) if batched else [f(point) for point in points]
    try:
        values = torch.as_tensor(given) if batched else torch.stack([torch.as_tensor(v) for v in given])
        values = values.to(points)
    except (TypeError, ValueError, RuntimeError) as error:
        raise BadInput(f"the objective must give numbers; it gave {given!r:.80}: {error}") from error
    if values.shape != points.shape[:1]:
        one = "many vectors [N, d] must give N values" if batched else "one vector must give one number"
        raise BadInput(
            f"the objective gave values of shape {tuple(values.shape)} for {len(points)} vectors: {one}"
            + ("" if batched else "; if it takes many at once, say batched=True")
        )
    return values
