"""How a vector is searched: the settings of a search, what they may be, and what the dimension makes of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any

import torch

from doxa.errors import BadInput, did_you_mean, require_from_zero, require_positive
from doxa.search import shaping
from doxa.search.distribution import gradients
from doxa.search.distribution.coordinates import Coordinate, log_scale, require_coordinate
from doxa.search.distribution.gradients import Gradient, require_gradient
from doxa.search.shaping import Shaping, require_shaping

# Makes a torch optimiser of two groups of parameters: the mean, and the coordinates of the scales.
OptimiserFactory = Callable[[list[dict[str, Any]]], torch.optim.Optimizer]

PER = ("weight", "network")

OPTIMISER_HINT = (
    "from two groups of parameters, e.g. torch.optim.Adam or functools.partial(torch.optim.SGD, momentum=0.9)"
)


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
    optimiser: OptimiserFactory | None = None
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
        require_gradient(self.gradient)
        require_shaping(self.shaping)
        require_coordinate(self.coordinate)
        if self.optimiser is not None and not callable(self.optimiser):
            raise BadInput(f"optimiser must make a torch optimiser {OPTIMISER_HINT}; got {self.optimiser!r}")

    def population_size(self, dimension: int) -> int:
        """N: so many perturbations a generation, more where there are more directions; never few.

        Few would do for a bowl; in narrow valleys and among many minima they let scales fall before the mean is there.
        """
        return 2 * max(25, 2 * (4 + int(3 * math.log(dimension)))) if self.size is None else self.size

    def scale_rate(self, dimension: int) -> float:
        """A fifth of that of the separable natural evolution strategy, for the same reason, unless another is given."""
        return (3 + math.log(dimension)) / (25 * math.sqrt(dimension)) if self.scale_lr is None else self.scale_lr


def build_settings(options: Mapping[str, Any], other_names: Sequence[str] = ()) -> Settings:
    """Settings by name, or which of the names there is none of, here or among others."""
    setting_names = [*(f.name for f in fields(Settings)), *other_names]
    for name in options:
        if name not in setting_names:
            raise BadInput(
                f"there is no setting {name!r} of a search{did_you_mean(name, setting_names, most=len(setting_names))}"
            )
    return Settings(**options)


def require_settings(settings: Any) -> Settings:
    """Settings as given, or the defaults; what is none is refused."""
    if settings is None:
        return Settings()
    if not isinstance(settings, Settings):
        raise BadInput(f"settings must be a doxa.search.Settings; got a {type(settings).__name__}")
    return settings
