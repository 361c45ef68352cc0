"""A search over one flat vector, generation by generation: ask for points, tell what they are worth."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from doxa.errors import BadInput, Diverged, nearest, require_from_zero, require_positive, whole
from doxa.search import shaping
from doxa.search.distribution import gradients
from doxa.search.distribution.adaptation_sampling import FASTER, adapted
from doxa.search.distribution.coordinates import Coordinate, coordinate_of, log_scale
from doxa.search.distribution.gaussian import Gaussian, Slopes, scores
from doxa.search.distribution.gradients import Gradient, gradient_of
from doxa.search.distribution.importance_mixing import Memory, Mixed, mixed
from doxa.search.engines.contract import Evaluate, Placed
from doxa.search.perturbations.population import Population, population
from doxa.search.shaping import Shaping, shaping_of

# Makes a torch optimiser of two groups of parameters: the mean, and the coordinates of the scales.
Make = Callable[[list[dict[str, Any]]], torch.optim.Optimizer]

PER = ("weight", "network")

CALMER = (
    "Lower lr and scale_lr, take natural gradients (gradient=doxa.search.natural), let values count by their z-score "
    "or rank (shaping=doxa.search.shaping.z_score, utilities), or search the logarithm of the scales "
    "(coordinate=doxa.search.log_scale)"
)


FROM_GROUPS = "from two groups of parameters, e.g. torch.optim.Adam or functools.partial(torch.optim.SGD, momentum=0.9)"


@dataclass(frozen=True)
class Settings:
    """How a vector is searched; without a word a separable natural evolution strategy.

    `lr` and `scale_lr` are the rates of mean and scales, 0 for a scale that stays; `decay` draws the mean to zero at
    each step, and with `baseline` a value counts against the mean of the others. With `refresh`, a share, points of the
    last generation are kept by importance mixing, and at least so many are new. With `adapts` the rate of the scales is
    found by adaptation sampling.
    Wierstra et al. (2014), Natural evolution strategies.
    """

    scale: float = 1.0
    per: str = "weight"
    size: int | None = None
    antithetic: bool = True
    gradient: Gradient = gradients.natural
    shaping: Shaping = shaping.utilities
    baseline: bool = False
    coordinate: Coordinate = log_scale
    lr: float = 1.0
    scale_lr: float | None = None
    decay: float = 0.0
    optimiser: Make | None = None
    refresh: float | None = None
    adapts: bool = False

    def __post_init__(self) -> None:
        require_positive("scale", self.scale)
        if self.per not in PER:
            raise BadInput(f'per must be "weight" or "network", one scale for each number or for all; got {self.per!r}')
        if self.refresh is not None and not (isinstance(self.refresh, Real) and 0 < self.refresh <= 1):
            raise BadInput(f"refresh is the least share of new points, above 0 and at most 1; got {self.refresh!r}")
        if self.adapts and (self.optimiser is not None or self.scale_lr == 0):
            raise BadInput(
                "adaptation sampling chooses the rate of plain steps: leave optimiser out, and scale_lr above 0"
            )
        if self.refresh is not None and self.antithetic:
            raise BadInput("importance mixing keeps points one by one, and pairs would be torn: say antithetic=False")
        require_from_zero("lr", self.lr)
        require_from_zero("scale_lr", 0.0 if self.scale_lr is None else self.scale_lr)
        require_from_zero("decay", self.decay)
        gradient_of(self.gradient)
        shaping_of(self.shaping)
        coordinate_of(self.coordinate)
        if self.optimiser is not None and not callable(self.optimiser):
            raise BadInput(f"optimiser must make a torch optimiser {FROM_GROUPS}; got {self.optimiser!r}")

    def sized(self, dimension: int) -> int:
        """N: so many perturbations a generation, more where there are more directions; never few.

        Few would do for a bowl; in narrow valleys and among many minima they let scales fall before the mean is there.
        """
        return 2 * max(25, 2 * (4 + int(3 * math.log(dimension)))) if self.size is None else self.size

    def scale_rate(self, dimension: int) -> float:
        """A fifth of that of the separable natural evolution strategy, for the same reason, unless another is given."""
        return (3 + math.log(dimension)) / (25 * math.sqrt(dimension)) if self.scale_lr is None else self.scale_lr


def settings_of(given: Mapping[str, Any], others: Sequence[str] = ()) -> Settings:
    """Settings by name, or which of the names there is none of, here or among others."""
    known = [*(f.name for f in fields(Settings)), *others]
    for name in given:
        if name not in known:
            raise BadInput(f"there is no setting {name!r} of a search{nearest(name, known, most=len(known))}")
    return Settings(**given)


class Search:
    """A search under way. `ask` gives N points, `tell` takes their values, lower being better, and moves on.

    Everything random is a function of the seed and the generation: told the same values, it asks for the same points.
    """

    def __init__(self, start: Any, settings: Settings | None = None, seed: int = 0) -> None:
        self.settings = _settings(settings)
        self.seed = whole("seed", seed, least=None)
        self.mean = _vector(start)
        dimension = len(self.mean)
        self.groups = None if self.settings.per == "weight" else (dimension,)
        count = dimension if self.groups is None else 1
        self.coordinate = self.settings.coordinate.of(self.mean.new_full((count,), self.settings.scale))
        self.population: Population = population(
            self.settings.sized(dimension), self.settings.antithetic, (self.seed, "search"), self.mean.device
        )
        self.generation = 0
        self.optimiser = self._optimiser()
        self.memory: Memory | None = None  # of the last generation, where points may be kept
        self.mixed: Mixed | None = None  # this one, where some were
        self.larger: Tensor | None = None  # the coordinate that a larger last step would have led to

    def _optimiser(self) -> torch.optim.Optimizer:
        own = self.settings
        groups: list[dict[str, Any]] = [
            {"params": [self.mean], "lr": own.lr},
            # A decay of weights would draw a scale to wherever its coordinate is zero.
            {"params": [self.coordinate], "lr": own.scale_rate(len(self.mean)), "weight_decay": 0.0},
        ]
        made = torch.optim.SGD(groups) if own.optimiser is None else own.optimiser(groups)
        if not isinstance(made, torch.optim.Optimizer) or len(made.param_groups) != len(groups):
            raise BadInput(f"optimiser must make a torch optimiser {FROM_GROUPS}, and keep both; it made {made!r:.80}")
        return made

    @property
    def at(self) -> Gaussian:
        """Where it looks now."""
        return Gaussian(self.mean, self.settings.coordinate.scale(self.coordinate), self.groups)

    def ask(self) -> Tensor:
        """The points of this generation whose values are wanted: all N [N, d], or those that are new [M, d]."""
        return torch.cat([self.mean.new_empty(0, len(self.mean)), *(self.points(units) for units in self.blocks())])

    @property
    def wanted(self) -> Population:
        """The perturbations whose values are wanted."""
        if self.mixed is None:
            return self.population
        many = len(self.mixed.fresh)
        return Population(many, False, self.population.seeds[:many])

    def blocks(self, parts: int = 1) -> list[slice]:
        """What is asked for, in at least so many stretches."""
        return list(self.wanted.blocks(len(self.mean), parts=parts))

    def points(self, units: slice) -> Tensor:
        """Those of some units."""
        if self.mixed is not None:  # a copy: an objective that writes into its argument must not change what is kept
            return self.mixed.fresh[units].clone()
        return self.population.points(self.at, self.population.noise(self.generation, units, self.mean))

    def tell(self, values: Any, here: Tensor | None = None) -> dict[str, float]:
        """Take the values of the points that were asked for; what came of it, by name.

        That is the mean and the lowest value, the scale they were drawn with (the geometric mean of all), and the norms
        of the slopes by the mean, `gradient`, and by the logarithms of the scales, `scale_gradient`.
        Where some were lost, `here` says of which points these are the values. A generation whose step cannot be taken
        is an error, and changes nothing.
        """
        try:
            given = torch.as_tensor(values, dtype=self.mean.dtype, device=self.mean.device).clone()
        except (TypeError, ValueError, RuntimeError) as error:
            raise BadInput(f"values must be numbers, one for each point; got {values!r:.80}: {error}") from error
        arrived = self._arrived(here)
        if given.shape != (int(arrived.sum()),):
            raise BadInput(
                f"values have shape {tuple(given.shape)}; there must be one for each of the {int(arrived.sum())} "
                "points that were asked for"
            )
        at = self.at
        slopes, memory = self._slopes(at, given, arrived)
        by_mean, by_scale = self.settings.gradient(slopes, at, self.settings.coordinate)
        if not bool(by_mean.isfinite().all() and by_scale.isfinite().all()):
            raise Diverged(
                f"the gradient is no longer finite in generation {self.generation + 1}: the scales have come down to "
                f"{float(at.scale.min()):.3g}. {CALMER}"
            )
        before = self.mean.clone(), self.coordinate.clone(), copy.deepcopy(self.optimiser.state_dict())
        rate, larger = self._adapted(at, given, arrived, by_scale, memory)
        self._step(by_mean, by_scale, rate)
        if not bool(self.mean.isfinite().all() and self.at.scale.isfinite().all()):
            self.mean.copy_(before[0])
            self.coordinate.copy_(before[1])
            self.optimiser.load_state_dict(before[2])
            raise Diverged(f"the step of generation {self.generation + 1} leads beyond all numbers. {CALMER}")
        self.larger, self.memory = larger, memory
        self.generation += 1
        self._mix()
        every = given if self.memory is None else self.memory.values
        known = every[every.isfinite()]
        return {
            "generation": self.generation,
            "value": float(known.mean()),
            "lowest": float(known.min()),
            "scale": float(at.scale.log().mean().exp()),
            **slopes.norms(),
        }

    def _arrived(self, here: Any) -> Tensor:
        """Which of the points have values [N], all of them without a word."""
        if here is None:
            return torch.ones(self.wanted.size, dtype=torch.bool)
        arrived = torch.as_tensor(here, device=self.mean.device)
        if arrived.dtype != torch.bool or arrived.shape != (self.wanted.size,):
            raise BadInput(
                f"here must say True or False for each of the {self.wanted.size} points that were asked for; got "
                f"{arrived.dtype} of shape {tuple(arrived.shape)}"
            )
        if self.settings.antithetic and self.settings.baseline:
            torn = int((arrived[::2] != arrived[1::2]).sum())
            if torn:
                raise BadInput(
                    f"{torn} mirrored pairs have lost one of their two points, and a baseline compares pair with pair: "
                    "leave both points of such a pair out of here, or search with antithetic=False or baseline=False"
                )
        return arrived

    def _step(self, by_mean: Tensor, by_scale: Tensor, rate: float) -> None:
        self.optimiser.param_groups[1]["lr"] = rate
        # What has no gradient is left alone by all optimisers; some take a step even at a rate of 0.
        self.mean.grad, self.coordinate.grad = by_mean, by_scale if rate > 0 else None
        if self.settings.decay:
            self.mean.mul_(1 - self.settings.lr * self.settings.decay)
        self.optimiser.step()
        self.coordinate.copy_(self.settings.coordinate.within(self.coordinate))

    def _slopes(self, at: Gaussian, given: Tensor, arrived: Tensor) -> tuple[Slopes, Memory | None]:
        """Those by all points of the generation, old and new, and what to remember of it."""
        shaping, baseline = self._shaped, self.settings.baseline
        if self.settings.refresh is None:
            weights = self.population.weighed(given, arrived, shaping, baseline)
            return self.population.slopes(at, self.generation, weights), None
        points = (
            self.ask()[arrived]
            if self.mixed is None
            else torch.cat([self.mixed.points[: len(self.mixed.values)], self.mixed.fresh[arrived]])
        )
        values = given if self.mixed is None else torch.cat([self.mixed.values, given])
        # The mean and the scales move in place: what was drawn from them is remembered with copies.
        memory = Memory(Gaussian(at.mean.clone(), at.scale.clone(), at.groups), points, values)
        by_mean, by_log = scores(at, (points - at.mean) / at.scales)
        weights = self.population.shaped(values, shaping, baseline) / len(values)
        return Slopes(weights @ by_mean, weights @ by_log), memory

    def _shaped(self, values: Tensor) -> Tensor:
        weights = self.settings.shaping(values)
        if not isinstance(weights, Tensor) or weights.shape != values.shape:
            gave = tuple(weights.shape) if isinstance(weights, Tensor) else type(weights).__name__
            raise BadInput(f"shaping must give a weight for each of {len(values)} values, a tensor; it gave {gave}")
        return weights

    @property
    def rate(self) -> float:
        """That of the scales, as it is now."""
        return float(self.optimiser.param_groups[1]["lr"])

    def _adapted(
        self, at: Gaussian, given: Tensor, arrived: Tensor, by_scale: Tensor, memory: Memory | None
    ) -> tuple[float, Tensor | None]:
        """The rate of the next step of the scales, and where a larger one would lead: asked after, it says the next."""
        if not self.settings.adapts:
            return self.rate, None
        rate = self.rate
        if self.larger is not None:
            points = self.ask()[arrived] if memory is None else memory.points
            values = given if memory is None else memory.values
            other = Gaussian(at.mean, self.settings.coordinate.scale(self.larger), self.groups)
            rate = adapted(rate, self.settings.scale_rate(len(self.mean)), values, points, at, other)
        return rate, self.coordinate - FASTER * rate * by_scale

    def recall(self, memory: Memory | None) -> None:
        """Go on from a generation that is over."""
        self.memory, self.mixed = memory, None
        self._mix()

    def _mix(self) -> None:
        """Keep what the new distribution might as well have drawn, and draw the rest."""
        if self.memory is None:
            return
        assert self.settings.refresh is not None
        seed = self.population.seeds[:1]
        self.mixed = mixed(self.memory, self.at, self.population.size, self.settings.refresh, seed, self.generation)

    def placed(self, evaluate: Evaluate) -> Placed:
        """An evaluation for others, that tells where this search stands."""
        return Placed(evaluate, (self.mean, self.coordinate, self.population.seeds))

    def state(self) -> dict[str, Any]:
        """All that a search needs to go on, to the bit; it stays as it is while the search goes on."""
        return {
            "mean": self.mean.clone(),
            "coordinate": self.coordinate.clone(),
            "generation": self.generation,
            "optimiser": copy.deepcopy(self.optimiser.state_dict()),
            "memory": self.memory,
            "larger": self.larger,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on where a state was taken."""
        self.mean.copy_(state["mean"])
        self.coordinate.copy_(state["coordinate"])
        self.generation = int(state["generation"])
        self.optimiser.load_state_dict(copy.deepcopy(state["optimiser"]))  # torch would go on in the given tensors
        self.larger = state["larger"]
        self.recall(state["memory"])


def _settings(given: Any) -> Settings:
    if given is None:
        return Settings()
    if not isinstance(given, Settings):
        raise BadInput(f"settings must be a doxa.search.Settings; got a {type(given).__name__}")
    return given


def _vector(start: Any) -> Tensor:
    """A copy of a start as a flat vector, in double precision unless it is a tensor of floating-point numbers."""
    given = start.detach().clone() if isinstance(start, Tensor) else torch.tensor(_plain(start), dtype=torch.float64)
    found = given if given.is_floating_point() else given.double()
    if found.dim() != 1 or not len(found):
        raise BadInput(f"start must be a vector with at least one number; it has shape {tuple(found.shape)}")
    if not bool(found.isfinite().all()):
        raise BadInput("start holds NaN or infinity; a search needs a finite place to begin")
    return found


def _plain(start: Any) -> Any:
    if isinstance(start, Sequence) or hasattr(start, "__array__"):
        return start if isinstance(start, Sequence) else start.__array__()
    raise BadInput(f"start must be a vector: a tensor, an array or a list of numbers; got a {type(start).__name__}")
