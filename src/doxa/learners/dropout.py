"""Dropout as variational inference."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from doxa.contracts import Prior, Problem, Schedule, Training
from doxa.errors import BadInput
from doxa.kl_weights import uniform
from doxa.layout import settle
from doxa.learners.point import PointTraining
from doxa.noise.interception import Apply, Interception, Site
from doxa.posteriors import dropout as posterior
from doxa.posteriors.dropout import masks


@dataclass(frozen=True)
class Dropout:
    """Random input channels of every linear map and convolution dropped while learning, and while predicting.

    min −(1/N) Σᵢ E_q log p(yᵢ | xᵢ, w) − (1/N) E_q log p(w),  w = mean·z/(1 − rate)

    The net needs no dropout layers of its own. While learning every row has its own mask; `input_rate` is for the
    net's first operation. Gal & Ghahramani (2016), Dropout as a Bayesian approximation.
    """

    rate: float = 0.5
    input_rate: float = 0.0
    prior: Prior | None = None
    kl_weight: Schedule = field(default_factory=uniform)

    def __post_init__(self) -> None:
        for name, rate in (("rate", self.rate), ("input_rate", self.input_rate)):
            if not 0 <= rate < 1:
                raise BadInput(f"{name} must lie between 0 and 1, 1 excluded; got {rate}")

    def start(self, problem: Problem) -> Training:
        layout, uses = problem.layout, problem.uses
        masked = masks(layout, uses, self.rate, self.input_rate)
        if not masked:
            raise BadInput(
                "dropout reaches no weight of this net: it has no linear map or convolution used once beyond the first "
                "one; set input_rate, or use another learner"
            )
        rates = {m.start: m.rate for m in masked}
        prior = settle(self.prior, layout, problem.start)
        keep = posterior(problem.start, layout.random, masked).keep

        def slope(w: Tensor) -> Tensor:
            return prior.grad_log_prob(w / keep)

        noise = {s.name: "dropout" if s.start in rates else "point" for s in layout.slots}
        training = PointTraining(
            problem,
            prior,
            self.kl_weight,
            slope if prior is not None else None,
            believe=lambda mean: posterior(mean, layout.random, masked),
            noise=noise,
        )
        sites, by_name = [], {}
        for slot in layout.random_slots:
            if slot.start in rates:
                use = uses.single[slot.name]
                by_name[slot.name] = rates[slot.start]
                leaf = training.leaves[slot.name]
                sites.append(Site(slot.name, leaf, None, None, None, use.channel_axis, use.row_axes))
        training.at_work = partial(Interception, sites, partial(drop, by_name))
        return training


def drop(rates: dict[str, float], apply: Apply, x: Tensor, weight: Tensor, bias: Tensor | None, site: Site) -> Tensor:
    """f(x∘z/(1 − rate), w): each row loses its own channels, at all of its positions."""
    rate = rates[site.name]
    kept = torch.rand(site.shape(x, site.channel_axis), device=x.device) >= rate
    return apply(x * (kept.to(x.dtype) / (1 - rate)), weight, bias)
