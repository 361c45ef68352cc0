"""Dropout as variational inference.

The belief is over which channels are there: w = m·z/k with k = 1 − rate, z one Bernoulli(k) for each input channel of
an operation, so that E w = m. To drop a channel of the input or the weights that read it is the same, f(x∘z/k, m) =
f(x, m·z/k), and inputs have rows: while learning each row has a mask of its own, which makes rows independent as local
noise does. While predicting a draw is one mask for all rows: one function, whose answers belong together.

The prior's part has a slope that needs no draw. A weight is m/k with probability k and 0 otherwise, and

    E_q log p(w) = k log p(m/k) + (1 − k) log p(0),   so that   d/dm = (log p)′(m/k)

The entropy of the masks does not depend on m and is left out, as in Gal & Ghahramani (2016).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import Tensor

from doxa.collectors.last import Last
from doxa.contracts import Prior, Problem, Schedule
from doxa.errors import BadInput
from doxa.gradients.point import PointGradient
from doxa.kl_weights.uniform import Uniform
from doxa.learners.example import Example
from doxa.noise.interception import Apply, Site
from doxa.noise.source import NoiseSource, dropout_mask
from doxa.posteriors import dropout as posterior
from doxa.posteriors.dropout import apply_dropout, masked_weights
from doxa.weights.layout import bind_prior


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
    kl_weight: Schedule = field(default_factory=Uniform)

    nets = 1

    def __post_init__(self) -> None:
        for name, rate in (("rate", self.rate), ("input_rate", self.input_rate)):
            if not 0 <= rate < 1:
                raise BadInput(f"{name} must lie between 0 and 1, 1 excluded; got {rate}")

    @property
    def kind(self) -> tuple[Any, ...]:
        """What learners must have in common to work as one program: one rule with its rates serves all nets."""
        return type(self), self.rate, self.input_rate

    def start(self, problem: Problem, fleet: Sequence[Dropout]) -> PointGradient:
        layout, uses = problem.layout, problem.uses
        masked = masked_weights(layout, uses, self.rate, self.input_rate)
        if not masked:
            raise BadInput(
                "dropout reaches no weight of this net: it has no linear map or convolution used once beyond the first "
                "one; set input_rate, or use another learner"
            )
        by_start = {m.start: m.rate for m in masked}
        rates = {s.name: by_start[s.start] for s in layout.random_slots if s.start in by_start}
        keep = posterior(problem.start[0], layout.random, masked).keep
        priors = [bind_prior(settings.prior, layout, problem.start[0]) for settings in fleet]

        def slope(prior: Prior, w: Tensor) -> Tensor:
            """(log p)′(m/k); k is 1 for weights that are never dropped."""
            return prior.grad_log_prob(w / keep)

        def sites(leaves: Mapping[str, Tensor], _: Mapping[str, Tensor]) -> list[Site]:
            # By its weight alone: there is no second leaf, and a bias is added after the channels are summed.
            uses_by_name = ((name, uses.single_use[name]) for name in rates)
            return [
                Site(name, leaves[name], None, None, None, use.channel_axis, use.row_axes) for name, use in uses_by_name
            ]

        return PointGradient(
            problem,
            priors,
            [None if bound_prior is None else partial(slope, bound_prior) for bound_prior in priors],
            make_posterior=lambda mean, _: posterior(mean, layout.random, masked),
            noise={s.name: "dropout" if s.name in rates else "point" for s in layout.slots},
            sites=sites,
            rule=partial(drop, rates),
            draw_weights=partial(apply_dropout, masked),
        )

    def optimiser(self, fleet: Sequence[Dropout]) -> None:
        return None

    def collector(self, fleet: Sequence[Dropout]) -> Last:
        return Last()


def drop(
    rates: Mapping[str, float],
    apply: Apply,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    site: Site,
    source: NoiseSource,
) -> Tensor:
    """f(x∘z/(1 − rate), w): each row loses its own channels, at all of its positions."""
    return apply(x * dropout_mask(source, site.shape(x, site.channel_axis), rates[site.name], x), weight, bias)


dropout = Dropout
EXAMPLES = {
    "dropout": {
        "map": Example(
            lambda prior: Dropout(0.3, 0.1, prior),
            exact=None,
            reason="dropped inputs are a ridge of their own, which test_dropout_of_inputs_is_ridge_regression solves",
        )
    }
}
