"""Figure 13: learning with a scale mixture as prior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.over_seeds import error, mean, summary
from doxa_replicate.show import Shown, Table
from doxa_replicate.weight_uncertainty.curve import trainings
from doxa_replicate.weight_uncertainty.curve.learning_gaussian import ENDS, ends, learning, learning_charts
from doxa_replicate.weight_uncertainty.curve.trainings import CONVERGED, FLEETS, Setting

HIGHER = Claim(
    "C-WU-5",
    "With a mixture as prior the free energy ends higher, and gets there later, than with its wide Gaussian alone",
    "final free energy, and epochs: mixture above single Gaussian for each wide scale (mean over narrow ones); KL per "
    "weight at or above its floor; epochs to within 5 % of the final free energy, and to 95 % of the way there, are "
    "judged apart",
)


def run(ask: Ask) -> Numbers:
    single, mixture = trainings.records(ask, "gaussian"), trainings.records(ask, "mixture")
    floors = {setting.name: floor(setting) for setting in FLEETS["mixture"]}
    per_weight = {prior: [r["final"]["kl"] / r["random"] for r in rows] for prior, rows in mixture.items()}
    pairs = {p: list(zip(rows, single[p[0]], strict=True)) for p, rows in mixture.items()}
    higher = {p: [m["final"]["free_energy"] - s["final"]["free_energy"] for m, s in own] for p, own in pairs.items()}
    later = {
        measure: {p: [m[measure] - s[measure] for m, s in own] for p, own in pairs.items()} for measure in CONVERGED
    }
    energy = {wide: over_narrow(higher, wide) for wide in single}
    epochs = {measure: {wide: over_narrow(own, wide) for wide in single} for measure, own in later.items()}
    above = all(mean(per_weight[p]) >= floors[p] for p in floors)
    return {
        "settings": trainings.settings(ask),
        "seeds": trainings.seeds(ask),
        **learning(ask, "mixture"),
        "kl_per_weight": {p: summary(v) | {"floor": floors[p]} for p, v in per_weight.items()},
        "against_single": {
            name: {wide: summary(own[wide]) for wide in single}
            for name, own in {"free_energy": energy, **epochs}.items()
        },
        "verdicts": [
            HIGHER.judged(
                above and all(mean(v) > 0 for by_wide in (energy, own) for v in by_wide.values()),
                {
                    "free energy": {wide: mean(v) for wide, v in energy.items()},
                    "epochs": {wide: mean(v) for wide, v in own.items()},
                    "above the floor": above,
                },
                {
                    "free energy": {wide: error(v) for wide, v in energy.items()},
                    "epochs": {wide: error(v) for wide, v in own.items()},
                },
                trainings.seeds(ask),
                f"mixture less single, by −log of the wide scale; {CONVERGED[measure]}",
            )
            for measure, own in epochs.items()
        ],
    }


def over_narrow(found: Mapping[str, Sequence[float]], wide: str) -> list[float]:
    """For each seed the mean over the mixtures that have a wide scale."""
    return [mean(own) for own in zip(*(v for prior, v in found.items() if prior[0] == wide), strict=True)]


def floor(setting: Setting) -> float:
    """The least KL a weight that a single Gaussian can have from a mixture: over mean 0 and all scales, by quadrature.

    min_s −H(N(0, s²)) − E[log p(s z)]: a mean away from 0 only adds to it.
    """
    prior = setting.as_prior()
    log_z = torch.linspace(-20, 2.2, 8001, dtype=torch.float64)  # a spike of e⁻⁸ is narrow beside a scale of 1
    z = log_z.exp()
    weight = torch.softmax(log_z - 0.5 * z.square(), 0)  # both halves are alike
    scales = torch.logspace(-5, 1, 1201, dtype=torch.float64)
    entropy = 0.5 * torch.log(2 * torch.pi * torch.e * scales.square())
    expected = (prior.log_prob(scales[:, None] * z) * weight).sum(1)
    return float((-entropy - expected).min())


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    rows = [
        [prior, f"{of['mean']:.3f}", f"{of['floor']:.3f}", *ends(numbers, prior)]
        for prior, of in numbers["kl_per_weight"].items()
    ]
    heads = ("−log σ₁, −log σ₂", "KL a weight", "its floor", *ENDS)
    return [*learning_charts(numbers, "{}"), Table("Where they end", heads, rows)]


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-13",
    place=12,
    group="regression",
    title="Free energy and RMSE while learning, scale mixture priors",
    rows=("WU-37",),
    run=run,
    claims=(HIGHER,),
    reference={
        "document": "slower than a single Gaussian and higher at the end; slower as σ₁ grows and σ₂ shrinks; the RMSE "
        "varies less with a smaller σ₁",
        "note": "the document speaks of an upper limit to the KL; it is a lower one, since no Gaussian is a mixture",
    },
    takes=("some seconds", "two minutes on a GPU"),
    show=show,
)
