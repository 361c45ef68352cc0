"""A search over one flat vector, generation by generation: ask for points, tell what they are worth."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from doxa.errors import BadInput, Diverged, require_whole
from doxa.search.distribution.adaptation_sampling import LARGER_STEP, adapt_rate
from doxa.search.distribution.gaussian import SearchDistribution, SearchSlopes, scores
from doxa.search.distribution.importance_mixing import MixedGeneration, PreviousGeneration, mix_generations
from doxa.search.engines.contract import Evaluate, EvaluationAtState
from doxa.search.perturbations.population import Population, make_population
from doxa.search.settings import OPTIMISER_HINT, Settings, require_settings

DIVERGENCE_ADVICE = (
    "Lower lr and scale_lr, take natural gradients (gradient=doxa.search.natural), let values count by their z-score "
    "or rank (shaping=doxa.search.shaping.z_score, utilities), or search the logarithm of the scales "
    "(coordinate=doxa.search.log_scale)"
)


class Search:
    """A search under way. `ask` gives N points, `tell` takes their values, lower being better, and moves on.

    Everything random is a function of the seed and the generation: told the same values, it asks for the same points.
    """

    def __init__(self, start: Any, settings: Settings | None = None, seed: int = 0) -> None:
        self.settings = require_settings(settings)
        self.seed = require_whole("seed", seed, least=None)
        self.mean = _start_vector(start)
        dimension = len(self.mean)
        self.groups = None if self.settings.per == "weight" else (dimension,)
        count = dimension if self.groups is None else 1
        self.coordinate = self.settings.coordinate.of(self.mean.new_full((count,), self.settings.scale))
        self.population: Population = make_population(
            self.settings.population_size(dimension), self.settings.antithetic, (self.seed, "search"), self.mean.device
        )
        self.generation = 0
        self.optimiser = self._build_optimiser()
        self.previous_generation: PreviousGeneration | None = None  # of the last generation, where points may be kept
        self.mixed_generation: MixedGeneration | None = None  # this one, where some were
        self.larger_coordinate: Tensor | None = None  # the coordinate that a larger last step would have led to

    def _build_optimiser(self) -> torch.optim.Optimizer:
        settings = self.settings
        groups: list[dict[str, Any]] = [
            {"params": [self.mean], "lr": settings.lr},
            # A decay of weights would draw a scale to wherever its coordinate is zero.
            {"params": [self.coordinate], "lr": settings.scale_rate(len(self.mean)), "weight_decay": 0.0},
        ]
        optimiser = torch.optim.SGD(groups) if settings.optimiser is None else settings.optimiser(groups)
        if not isinstance(optimiser, torch.optim.Optimizer) or len(optimiser.param_groups) != len(groups):
            raise BadInput(
                f"optimiser must make a torch optimiser {OPTIMISER_HINT}, and keep both; it made {optimiser!r:.80}"
            )
        return optimiser

    @property
    def distribution(self) -> SearchDistribution:
        """Where it looks now."""
        return SearchDistribution(self.mean, self.settings.coordinate.scale(self.coordinate), self.groups)

    def ask(self) -> Tensor:
        """The points of this generation whose values are wanted: all N [N, d], or those that are new [M, d]."""
        return torch.cat([self.mean.new_empty(0, len(self.mean)), *(self.points(units) for units in self.blocks())])

    @property
    def pending_population(self) -> Population:
        """The perturbations whose values are wanted."""
        if self.mixed_generation is None:
            return self.population
        new_count = len(self.mixed_generation.new_points)
        return Population(new_count, False, self.population.seeds[:new_count])

    def blocks(self, parts: int = 1) -> list[slice]:
        """What is asked for, in at least so many stretches."""
        return list(self.pending_population.blocks(len(self.mean), parts=parts))

    def points(self, units: slice) -> Tensor:
        """Those of some units."""
        if (
            self.mixed_generation is not None
        ):  # a copy: an objective that writes into its argument must not change what is kept
            return self.mixed_generation.new_points[units].clone()
        return self.population.points(self.distribution, self.population.noise(self.generation, units, self.mean))

    def tell(self, values: Any, here: Tensor | None = None) -> dict[str, float]:
        """Take the values of the points that were asked for; what came of it, by name.

        That is the mean and the lowest value, the scale they were drawn with (the geometric mean of all), and the norms
        of the slopes by the mean, `gradient`, and by the logarithms of the scales, `scale_gradient`.
        Where some were lost, `here` says of which points these are the values. A generation whose step cannot be taken
        is an error, and changes nothing.
        """
        try:
            new_values = torch.as_tensor(values, dtype=self.mean.dtype, device=self.mean.device).clone()
        except (TypeError, ValueError, RuntimeError) as error:
            raise BadInput(f"values must be numbers, one for each point; got {values!r:.80}: {error}") from error
        arrival_mask = self._arrival_mask(here)
        if new_values.shape != (int(arrival_mask.sum()),):
            raise BadInput(
                f"values have shape {tuple(new_values.shape)}; there must be one for each of the "
                f"{int(arrival_mask.sum())} points that were asked for"
            )
        distribution = self.distribution
        slopes, previous = self._estimate_slopes(distribution, new_values, arrival_mask)
        by_mean, by_scale = self.settings.gradient(slopes, distribution, self.settings.coordinate)
        if not bool(by_mean.isfinite().all() and by_scale.isfinite().all()):
            raise Diverged(
                f"the gradient is no longer finite in generation {self.generation + 1}: the scales have come down to "
                f"{float(distribution.scale.min()):.3g}. {DIVERGENCE_ADVICE}"
            )
        before = self.mean.clone(), self.coordinate.clone(), copy.deepcopy(self.optimiser.state_dict())
        rate, larger_coordinate = self._adapt_scale_lr(distribution, new_values, arrival_mask, by_scale, previous)
        self._step(by_mean, by_scale, rate)
        if not bool(self.mean.isfinite().all() and self.distribution.scale.isfinite().all()):
            self.mean.copy_(before[0])
            self.coordinate.copy_(before[1])
            self.optimiser.load_state_dict(before[2])
            raise Diverged(
                f"the step of generation {self.generation + 1} leads beyond all numbers. {DIVERGENCE_ADVICE}"
            )
        self.larger_coordinate, self.previous_generation = larger_coordinate, previous
        self.generation += 1
        self._mix_generations()
        all_values = new_values if self.previous_generation is None else self.previous_generation.values
        finite_values = all_values[all_values.isfinite()]
        return {
            "generation": self.generation,
            "value": float(finite_values.mean()),
            "lowest": float(finite_values.min()),
            "scale": float(distribution.scale.log().mean().exp()),
            **slopes.norms(),
        }

    def _arrival_mask(self, here: Any) -> Tensor:
        """Which of the points have values [N], all of them without a word."""
        if here is None:
            return torch.ones(self.pending_population.size, dtype=torch.bool)
        arrival_mask = torch.as_tensor(here, device=self.mean.device)
        if arrival_mask.dtype != torch.bool or arrival_mask.shape != (self.pending_population.size,):
            raise BadInput(
                f"here must say True or False for each of the {self.pending_population.size} points that were asked "
                f"for; got {arrival_mask.dtype} of shape {tuple(arrival_mask.shape)}"
            )
        if self.settings.antithetic and self.settings.baseline:
            torn_pairs = int((arrival_mask[::2] != arrival_mask[1::2]).sum())
            if torn_pairs:
                raise BadInput(
                    f"{torn_pairs} mirrored pairs have lost one of their two points, and a baseline compares pair with "
                    "pair: leave both points of such a pair out of here, or search with antithetic=False or "
                    "baseline=False"
                )
        return arrival_mask

    def _step(self, by_mean: Tensor, by_scale: Tensor, rate: float) -> None:
        self.optimiser.param_groups[1]["lr"] = rate
        # What has no gradient is left alone by all optimisers; some take a step even at a rate of 0.
        self.mean.grad, self.coordinate.grad = by_mean, by_scale if rate > 0 else None
        if self.settings.decay:
            self.mean.mul_(1 - self.settings.lr * self.settings.decay)
        self.optimiser.step()
        self.coordinate.copy_(self.settings.coordinate.within(self.coordinate))

    def _estimate_slopes(
        self, distribution: SearchDistribution, new_values: Tensor, arrival_mask: Tensor
    ) -> tuple[SearchSlopes, PreviousGeneration | None]:
        """Those by all points of the generation, old and new, and what to remember of it."""
        shaping, baseline = self._shape_values, self.settings.baseline
        if self.settings.refresh is None:
            weights = self.population.weigh_arrived(new_values, arrival_mask, shaping, baseline)
            return self.population.slopes(distribution, self.generation, weights), None
        points = (
            self.ask()[arrival_mask]
            if self.mixed_generation is None
            else torch.cat(
                [
                    self.mixed_generation.points[: len(self.mixed_generation.values)],
                    self.mixed_generation.new_points[arrival_mask],
                ]
            )
        )
        values = new_values if self.mixed_generation is None else torch.cat([self.mixed_generation.values, new_values])
        # The mean and the scales move in place: what was drawn from them is remembered with copies.
        previous = PreviousGeneration(
            SearchDistribution(distribution.mean.clone(), distribution.scale.clone(), distribution.groups),
            points,
            values,
        )
        by_mean, by_log = scores(distribution, (points - distribution.mean) / distribution.scales)
        weights = self.population.shape_values(values, shaping, baseline) / len(values)
        return SearchSlopes(weights @ by_mean, weights @ by_log), previous

    def _shape_values(self, values: Tensor) -> Tensor:
        weights = self.settings.shaping(values)
        if not isinstance(weights, Tensor) or weights.shape != values.shape:
            returned = tuple(weights.shape) if isinstance(weights, Tensor) else type(weights).__name__
            raise BadInput(f"shaping must give a weight for each of {len(values)} values, a tensor; it gave {returned}")
        return weights

    @property
    def current_scale_lr(self) -> float:
        """That of the scales, as it is now."""
        return float(self.optimiser.param_groups[1]["lr"])

    def _adapt_scale_lr(
        self,
        distribution: SearchDistribution,
        new_values: Tensor,
        arrival_mask: Tensor,
        by_scale: Tensor,
        previous: PreviousGeneration | None,
    ) -> tuple[float, Tensor | None]:
        """The rate of the next step of the scales, and where a larger one would lead: asked after, it says the next."""
        if not self.settings.adapts:
            return self.current_scale_lr, None
        rate = self.current_scale_lr
        if self.larger_coordinate is not None:
            points = self.ask()[arrival_mask] if previous is None else previous.points
            values = new_values if previous is None else previous.values
            larger_distribution = SearchDistribution(
                distribution.mean, self.settings.coordinate.scale(self.larger_coordinate), self.groups
            )
            rate = adapt_rate(
                rate, self.settings.scale_rate(len(self.mean)), values, points, distribution, larger_distribution
            )
        return rate, self.coordinate - LARGER_STEP * rate * by_scale

    def resume_from(self, previous: PreviousGeneration | None) -> None:
        """Go on from a generation that is over."""
        self.previous_generation, self.mixed_generation = previous, None
        self._mix_generations()

    def _mix_generations(self) -> None:
        """Keep what the new distribution might as well have drawn, and draw the rest."""
        if self.previous_generation is None:
            return
        assert self.settings.refresh is not None
        seed = self.population.seeds[:1]
        self.mixed_generation = mix_generations(
            self.previous_generation,
            self.distribution,
            self.population.size,
            self.settings.refresh,
            seed,
            self.generation,
        )

    def evaluation_at_state(self, evaluate: Evaluate) -> EvaluationAtState:
        """An evaluation for others, that tells where this search stands."""
        return EvaluationAtState(evaluate, (self.mean, self.coordinate, self.population.seeds))

    def state(self) -> dict[str, Any]:
        """All that a search needs to go on, to the bit; it stays as it is while the search goes on."""
        return {
            "mean": self.mean.clone(),
            "coordinate": self.coordinate.clone(),
            "generation": self.generation,
            "optimiser": copy.deepcopy(self.optimiser.state_dict()),
            "memory": self.previous_generation,
            "larger": self.larger_coordinate,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on where a state was taken."""
        self.mean.copy_(state["mean"])
        self.coordinate.copy_(state["coordinate"])
        self.generation = int(state["generation"])
        self.optimiser.load_state_dict(copy.deepcopy(state["optimiser"]))  # torch would go on in the given tensors
        self.larger_coordinate = state["larger"]
        self.resume_from(state["memory"])


def _start_vector(start: Any) -> Tensor:
    """A copy of a start as a flat vector, in double precision unless it is a tensor of floating-point numbers."""
    tensor = (
        start.detach().clone() if isinstance(start, Tensor) else torch.tensor(_as_sequence(start), dtype=torch.float64)
    )
    vector = tensor if tensor.is_floating_point() else tensor.double()
    if vector.dim() != 1 or not len(vector):
        raise BadInput(f"start must be a vector with at least one number; it has shape {tuple(vector.shape)}")
    if not bool(vector.isfinite().all()):
        raise BadInput("start holds NaN or infinity; a search needs a finite place to begin")
    return vector


def _as_sequence(start: Any) -> Any:
    if isinstance(start, Sequence) or hasattr(start, "__array__"):
        return start if isinstance(start, Sequence) else start.__array__()
    raise BadInput(f"start must be a vector: a tensor, an array or a list of numbers; got a {type(start).__name__}")
