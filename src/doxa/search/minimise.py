"""`doxa.search.minimise` and `maximise`: the lowest or the highest that a black box over a vector can be brought to."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from doxa.errors import BadInput, require_from_zero, require_whole
from doxa.search.ask_tell import Search
from doxa.search.engines.contract import Engine, Exchange
from doxa.search.engines.in_process import resolve_engine
from doxa.search.resumable_search import CheckpointOptions, follow_search, run_search
from doxa.search.settings import build_settings
from doxa.storage.describe import describe
from doxa.terminal.progress import format_metrics

Objective = Callable[[Tensor], Any]

KIND = "doxa.search"  # of its files
MAX_PATH_NUMBERS = 1 << 24  # numbers of means that are remembered
PLATEAU = 100  # generations without any difference between values, after which there is nothing left to go by


@dataclass(frozen=True)
class SearchResult:
    """What a search came to: the best point that was tried, its value, and how it got there."""

    best: Tensor  # [d]
    value: float
    mean: Tensor  # [d]
    scale: Tensor  # [d]
    trajectory: list[dict[str, float]] = field(repr=False)
    path: Tensor = field(repr=False)  # [generations + 1, d]: the means; of long ones the last alone


class Minimisation:
    """A search for the lowest value of a function under way; of the negative of one, it tells what is the highest."""

    def __init__(
        self, search: Search, f: Objective, batched: bool, generations: int, tolerance: float, parts: int
    ) -> None:
        self.search, self.f, self.batched = search, f, batched
        self.sign = -1.0 if isinstance(f, Negative) else 1.0
        self.generations, self.tolerance, self.parts = generations, tolerance, parts
        self.best, self.lowest, self.flat_generations = search.mean.clone(), math.inf, 0
        self.trajectory: list[dict[str, float]] = []
        self.path = [search.mean.clone()]
        self.keeps_path = generations * len(search.mean) <= MAX_PATH_NUMBERS

    def follow(self, exchange: Exchange) -> None:
        """Go on beside the search that this is a copy of, by what it and all others find."""
        follow_search(self, exchange)

    def run_generation(self, exchange: Exchange) -> None:
        """Have every point evaluated, and tell the search."""
        search = self.search
        blocks = search.blocks(self.parts)
        values, arrival_mask = search.pending_population.gather_arrived(
            exchange(search.generation, search.evaluation_at_state(self.evaluate), blocks), blocks
        )
        self._update_best(values, arrival_mask)
        self.trajectory.append(search.tell(values, arrival_mask))
        all_equal = len(values) > 0 and bool((values.isfinite() & (values == values[0])).all())
        self.flat_generations = self.flat_generations + 1 if all_equal else 0
        if self.keeps_path:
            self.path.append(search.mean.clone())

    def evaluate(self, units: slice) -> Tensor:
        first = units.start * self.search.pending_population.per_unit
        return evaluate_points(self.f, self.batched, self.search.points(units), first)

    @property
    def converged(self) -> bool:
        """Whether nothing is left to gain."""
        threshold = self.tolerance * self.search.mean.abs().max().clamp_min(1)
        return self.flat_generations >= PLATEAU or bool((self.search.distribution.scale <= threshold).all())

    def _update_best(self, values: Tensor, arrival_mask: Tensor) -> None:
        if not len(values):
            return
        best_index = int(values.masked_fill(~values.isfinite(), math.inf).argmin())
        if float(values[best_index]) < self.lowest:
            perturbation_number, per_unit = int(arrival_mask.nonzero()[best_index]), self.search.population.per_unit
            unit = perturbation_number // per_unit
            self.best = self.search.points(slice(unit, unit + 1))[perturbation_number % per_unit].clone()
            self.lowest = float(values[best_index])

    def try_mean(self) -> None:
        """Let the last mean count among the points that were tried."""
        mean_value = float(evaluate_points(self.f, self.batched, self.search.mean[None].clone())[0])
        if math.isfinite(mean_value) and mean_value < self.lowest:
            self.best, self.lowest = self.search.mean.clone(), mean_value

    def progress_text(self) -> str:
        return format_metrics(self._signed_row(self.trajectory[-1]), "value")

    def partial_result(self) -> SearchResult:
        """What it has come to: the best point that was tried."""
        search = self.search
        path = torch.stack(self.path if self.keeps_path else [search.mean])
        rows = [self._signed_row(row) for row in self.trajectory]
        return SearchResult(
            self.best, self.sign * self.lowest, search.mean.clone(), search.distribution.scales, rows, path
        )

    def _signed_row(self, row: dict[str, float]) -> dict[str, float]:
        """A generation as told to who asked for the lowest, or for the highest."""
        if self.sign > 0:
            return row
        rest = {k: v for k, v in row.items() if k not in ("value", "lowest")}
        return {**rest, "value": -row["value"], "highest": -row["lowest"]}

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        path = {"path": torch.stack(self.path)} if self.keeps_path else {}
        return {"lowest": self.lowest, "flat": self.flat_generations}, {"best": self.best, **path}

    def load(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        best, lowest, flat, mean = tensors["best"], header["lowest"], header["flat"], self.search.mean
        path = tensors.get("path", mean[None])
        if best.shape != mean.shape or path.dim() != 2 or path.shape[1:] != mean.shape or not len(path):
            raise ValueError(f"best has shape {tuple(best.shape)} and path {tuple(path.shape)}, of {len(mean)} numbers")
        if not bool(best.isfinite().all() and path.isfinite().all()):
            raise ValueError("best and path must be finite")
        if type(lowest) not in (int, float) or math.isnan(lowest) or type(flat) is not int:
            raise ValueError("lowest must be a number, and flat a number of generations")
        self.best, self.lowest, self.flat_generations = best.to(mean), lowest, flat
        if "path" in tensors and self.keeps_path:
            self.path = list(path.to(mean))

    def require_fit(self, path: Path, header: Mapping[str, Any]) -> None:
        """Refuse a file of a search over another number of coordinates."""
        stored_shape, dimension = header["settings"]["start"]["tensor"], len(self.search.mean)
        if stored_shape != [dimension]:
            raise BadInput(
                f"{path} holds a search over a vector of shape {stored_shape}, and start here has {dimension} numbers; "
                "use the same call to go on, or choose another folder"
            )


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
) -> SearchResult:
    """The lowest value of `f` over a vector, from values alone, by search gradients.

    min_θ U(θ) = E_p(w|θ) f(w) ≥ min_w f(w);   ∇U = E_p(w|θ) f(w) ∇log p(w|θ)

    `f` takes one vector [d], or with `batched` many [N, d], and gives a number for each; a value that is no number, or
    infinite, counts as the worst of its generation. It ends after so many `generations`, when all scales have fallen
    below `tolerance` beside the mean, or when values have not differed for a hundred generations. `engine`, one of
    doxa.search.engines, says who evaluates. With `checkpoint`, a folder, the search is saved every `checkpoint_every`
    generations and when interrupted; `resume=True` goes on from there, to the same bits, where all but `generations` is
    the same; of `f` itself nothing is kept. `settings` are those of doxa.search.Settings. Of a noisy `f` the best value
    is a lucky one.
    Staines & Barber (2013), Optimization by variational bounding; Wierstra et al. (2014).
    """
    _require_function(f.f if isinstance(f, Negative) else f)
    require_from_zero("tolerance", tolerance)
    search = Search(start, build_settings(settings, KEYWORDS), seed)
    resolved_engine = resolve_engine(engine)
    resumable_search = Minimisation(
        search, f, batched, require_whole("generations", generations), tolerance, resolved_engine.parts
    )
    stored_settings = {
        "seed": search.seed,
        "start": describe(_start_tensor(start)),
        "parts": resolved_engine.parts,
        "tolerance": tolerance,
        "batched": batched,
        "seeks": "highest" if isinstance(f, Negative) else "lowest",
        **describe(search.settings),
    }
    checkpoint_options = CheckpointOptions(
        KIND, checkpoint, stored_settings, require_whole("checkpoint_every", checkpoint_every), resume
    )
    work = run_search(resumable_search, resolved_engine, checkpoint_options, progress)
    try:
        resumable_search.try_mean()
    except Exception as error:
        raise work.with_partial_result(error) from error.__cause__
    return resumable_search.partial_result()


# What minimise itself takes by name: with the settings, all that a misspelled word may have meant.
KEYWORDS = [p.name for p in inspect.signature(minimise).parameters.values() if p.kind is p.KEYWORD_ONLY]


def _require_function(f: Any) -> None:
    if not callable(f):
        raise BadInput(f"f must be a function of a vector that gives a number; got {f!r:.80}")


def _start_tensor(start: Any) -> Any:
    return start if isinstance(start, Tensor) else torch.as_tensor(start)


def maximise(f: Objective, start: Any, **options: Any) -> SearchResult:
    """The highest value of `f` over a vector: `minimise` of −f, with values and trajectory given as those of f."""
    return minimise(Negative(f), start, **options)


@dataclass(frozen=True)
class Negative:
    """−f, for workers to open: a function inside another cannot be copied to them."""

    f: Objective

    def __call__(self, w: Tensor) -> Any:
        values = self.f(w)
        return [-v for v in values] if isinstance(values, list | tuple) else -values


def evaluate_points(f: Objective, batched: bool, points: Tensor, first: int = 0) -> Tensor:
    """The objective of rows [N, d] as a vector [N], or an error that says what it gave instead.

    `first` is the number of the first row in its generation, for errors to name.
    """
    returned = f(points) if batched else [_evaluate_point(f, point, first + n) for n, point in enumerate(points)]
    try:
        values = torch.as_tensor(returned) if batched else torch.stack([torch.as_tensor(v) for v in returned])
        values = values.to(points)
    except (TypeError, ValueError, RuntimeError) as error:
        raise BadInput(f"the objective must give numbers; it gave {returned!r:.80}: {error}") from error
    if values.shape != points.shape[:1]:
        expected = "many vectors [N, d] must give N values" if batched else "one vector must give one number"
        raise BadInput(
            f"the objective gave values of shape {tuple(values.shape)} for {len(points)} vectors: {expected}"
            + ("" if batched else "; if it takes many at once, say batched=True")
        )
    return values


def _evaluate_point(f: Objective, point: Tensor, number: int) -> Any:
    try:
        return f(point)
    except BaseException as error:
        error.add_note(f"at point {number} of the generation")
        raise
