"""Whether a reference is one: how its chains have mixed in what it says of rows of data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from doxa.errors import BadInput
from doxa.predict.belief import Belief
from doxa.references.diagnostics import ess_bulk, ess_tail, r_hat

MIXED, FEWEST = 1.01, 400  # R-hat up to which chains agree, and draws that a quantile needs (Vehtari et al., 2021)


@dataclass(frozen=True)
class Diagnosis:
    """R-hat and effective sizes of predictions E[y | x, w], each [B, ·], and how the sampling went, for each chain.

    `worst` has the largest R-hat and the smallest sizes, NaN aside: where nothing varies there is nothing to mix.
    """

    r_hat: Tensor
    ess_bulk: Tensor
    ess_tail: Tensor
    chains: int
    draws: int  # of each chain
    acceptance: tuple[float, ...]
    step_size: tuple[float, ...]
    divergences: tuple[int, ...]

    @property
    def worst(self) -> dict[str, float]:
        ends = {"r_hat": (self.r_hat, -1), "ess_bulk": (self.ess_bulk, 1), "ess_tail": (self.ess_tail, 1)}
        return {name: _extreme(values, sign) for name, (values, sign) in ends.items()}

    @property
    def mixed(self) -> bool:
        """Whether every R-hat is below 1.01, and every size at least 400."""
        worst = self.worst
        return worst["r_hat"] <= MIXED and min(worst["ess_bulk"], worst["ess_tail"]) >= FEWEST

    def __str__(self) -> str:
        worst = self.worst
        acceptance, steps = (sorted(values) for values in (self.acceptance, self.step_size))
        lines = [
            f"{self.chains:,} chains of {self.draws:,} draws, at {len(self.r_hat):,} rows",
            f"  R-hat        at most {worst['r_hat']:.4f} (up to {MIXED} they agree)",
            f"  ESS, bulk    at least {worst['ess_bulk']:,.0f}",
            f"  ESS, tails   at least {worst['ess_tail']:,.0f}",
            f"  acceptance   {sum(acceptance) / len(acceptance):.3f} ({acceptance[0]:.3f} to {acceptance[-1]:.3f})",
            f"  step size    {steps[0]:.3g} to {steps[-1]:.3g}",
            f"  divergences  {sum(self.divergences):,} of {self.chains * self.draws:,} draws and those between",
        ]
        if not self.mixed:
            lines.append("- Not mixed: more draws or a longer warm-up; until then it is no reference.")
        return "\n".join(lines)


def diagnose(belief: Belief, x: Any) -> Diagnosis:
    """How the chains of a belief by `hmc` have mixed, in what they predict at x [B, ·].

    A function of the weights is asked, not the weights: they have symmetries in which chains need not agree.
    """
    sampled = _sampled(belief)
    values = values_by_chain(belief, x)
    return Diagnosis(
        r_hat(values),
        ess_bulk(values),
        ess_tail(values),
        values.shape[0],
        values.shape[1],
        tuple(sampled["acceptance"]),
        tuple(sampled["step_size"]),
        tuple(sampled["divergences"]),
    )


def values_by_chain(belief: Belief, x: Any) -> Tensor:
    """E[y | x, w] for every draw of every chain [chains, draws, B, ·], in the order in which they were drawn."""
    chains = _sampled(belief)["chains"]
    count = belief.posterior.distinct
    if count is None or count % chains:
        raise BadInput(f"the belief tells of {chains} chains, but has {count} draws; give the one that hmc returned")
    return belief.predict(x, samples=count).means.unflatten(0, (chains, -1))


def _sampled(belief: Belief) -> Mapping[str, Any]:
    """What a belief's record tells of its chains."""
    sampled = belief.record.settings.get("sampled")
    if not isinstance(sampled, Mapping):
        raise BadInput("only beliefs by doxa.references.hmc have chains; this one's record tells of none")
    return sampled


def _extreme(values: Tensor, sign: int) -> float:
    """The smallest, or with −1 the largest, of those that are numbers; NaN without any."""
    numbers = values[~values.isnan()]
    return float("nan") if not numbers.numel() else sign * float((sign * numbers).min())
