"""Variational optimisation of nets, as a learner for `doxa.fit`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from doxa.collectors.last import Last
from doxa.contracts import Prior, Problem, Schedule
from doxa.errors import BadInput, require_from_zero, require_positive, require_whole
from doxa.kl_weights import uniform
from doxa.search import sensitivity
from doxa.search.distribution import gradients
from doxa.search.distribution.coordinates import Coordinate, log_scale, require_coordinate
from doxa.search.distribution.gradients import Gradient, require_gradient
from doxa.search.engines.contract import Engine
from doxa.search.engines.in_process import InProcess, resolve_engine
from doxa.search.objectives import Measure, Objective, require_measure
from doxa.search.perturbations.local import Local
from doxa.search.score_function import Perturbation, ScoreFunction
from doxa.search.shaping import raw, require_shaping


@dataclass(frozen=True)
class VariationalOptimisation:
    """A Gaussian over the weights, moved to where the net does well on average, from values of the objective alone.

    min_θ U(θ) = E_p(w|θ) f(w),   ∇U = E_p(w|θ) f(w) ∇log p(w|θ)

    `minimise` or `maximise` is any measure of outputs and targets, a number a row or one for all; without one it is the
    likelihood's −log p(y | output). N is `size` perturbations a step, around scales that start at `scale`, one `per`
    weight, tensor, layer or network; `scale_rate` times the learning rate is that of the scales, and at 0 they stay as
    they are. `decay` draws the mean towards zero: by lr · decay a step of Adam's, as a term of the gradient with
    others. With a `sensitivity`, "sum", "abs" or "sum_by_tensor", weights that move the outputs much are perturbed
    little. `engine`, one of doxa.search.engines, says who evaluates. What was searched becomes the belief.
    Staines & Barber (2013), Optimization by variational bounding; Wierstra et al. (2014), Natural evolution strategies.
    """

    estimator: Perturbation = field(default_factory=Local)
    minimise: Measure | None = None
    maximise: Measure | None = None
    size: int = 100
    scale: float = 0.05
    per: str = "network"
    scale_rate: float = 0.0
    gradient: Gradient = gradients.plain
    coordinate: Coordinate = log_scale
    decay: float = 0.0
    sensitivity: str | None = None
    engine: Engine = field(default_factory=InProcess)

    nets = 1
    prior: ClassVar[Prior | None] = None  # what is searched for is a best place, not a posterior
    kl_weight: ClassVar[Schedule] = uniform()

    def __post_init__(self) -> None:
        require_whole("size", self.size, least=2)
        require_positive("scale", self.scale)
        if self.minimise is not None and self.maximise is not None:
            raise BadInput("give minimise or maximise, not both")
        if self.per not in ("weight", "tensor", "layer", "network"):
            raise BadInput(f'per must be "weight", "tensor", "layer" or "network"; got {self.per!r}')
        require_measure("minimise", self.minimise)
        require_measure("maximise", self.maximise)
        require_from_zero("scale_rate", self.scale_rate)
        require_from_zero("decay", self.decay)
        require_gradient(self.gradient)
        require_coordinate(self.coordinate)
        if not hasattr(self.estimator, "start"):
            raise BadInput(f"estimator must be one of doxa.search, e.g. doxa.search.local(); got {self.estimator!r}")
        require_shaping(getattr(self.estimator, "shaping", raw))
        resolve_engine(self.engine)
        if self.sensitivity is not None and self.sensitivity not in sensitivity.TABLE:
            raise BadInput(f'sensitivity must be "sum", "abs" or "sum_by_tensor", or None; got {self.sensitivity!r}')
        if self.estimator.name == "low_rank" and (self.per == "weight" or self.scale_rate or self.sensitivity):
            raise BadInput("low-rank perturbations leave scales as they are, one per tensor, layer or network")

    @property
    def objective(self) -> Objective:
        return Objective(self.minimise) if self.maximise is None else Objective(self.maximise, -1.0)

    @property
    def kind(self) -> tuple[Any, ...]:
        """What learners must have in common to work as one program."""
        return VariationalOptimisation, self.per, self.coordinate.name, self.engine

    def start(self, problem: Problem, fleet: Sequence[VariationalOptimisation]) -> ScoreFunction:
        return ScoreFunction(fleet, problem)

    def optimiser(self, fleet: Sequence[VariationalOptimisation]) -> None:
        return None

    def collector(self, fleet: Sequence[VariationalOptimisation]) -> Last:
        return Last()
