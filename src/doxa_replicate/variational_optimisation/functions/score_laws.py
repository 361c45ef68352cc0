"""Scores, Fisher information and distance of Gaussian search distributions, against the densities themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from doxa.search.distribution.fisher import fisher
from doxa.search.distribution.gaussian import SearchDistribution, scores
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.show import PageElement, ResultTable

WEIGHTS, STEP_SIZE = 6, 1e-3
FAMILIES: dict[str, tuple[int, ...] | None] = {"isotropic": (6,), "layer-wise": (4, 2), "separable": None}


def run(options: ReplicationOptions) -> Numbers:
    draws = int(options.by_size(20_000, 1_000_000))
    errors_by_family = {name: _largest_errors(groups, draws) for name, groups in FAMILIES.items()}
    return {
        "settings": {"weights": WEIGHTS, "draws": draws, "step": STEP_SIZE},
        "seeds": [0],
        "families": errors_by_family,
        "univariate": _univariate_slopes(),
    }


def _draw_normals(rows: int, width: int) -> Tensor:
    return torch.randn(rows, width, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def _distribution(groups: tuple[int, ...] | None) -> SearchDistribution:
    count = WEIGHTS if groups is None else len(groups)
    return SearchDistribution(
        torch.linspace(-1, 1, WEIGHTS, dtype=torch.float64),
        torch.linspace(0.4, 1.3, count, dtype=torch.float64),
        groups,
    )


def _largest_errors(groups: tuple[int, ...] | None, draws: int) -> dict[str, float]:
    """The largest errors: of a score against autograd, of F against its draws, of ½ΔᵀFΔ against the exact KL."""
    distribution = _distribution(groups)
    epsilon = _draw_normals(16, WEIGHTS)
    mean, log_scale = distribution.mean.clone().requires_grad_(), distribution.scale.log().requires_grad_()
    slopes = [
        torch.cat(torch.autograd.grad(SearchDistribution(mean, log_scale.exp(), groups).log_prob(w), [mean, log_scale]))
        for w in distribution.mean + distribution.scales * epsilon
    ]
    score_draws = torch.cat(scores(distribution, _draw_normals(draws, WEIGHTS)), 1)
    products, information = score_draws.T @ score_draws / draws, torch.cat(fisher(distribution))
    spread = (information[:, None] * information[None]).sqrt()
    step = STEP_SIZE * torch.linspace(-1, 1, len(information), dtype=torch.float64)
    shifted = SearchDistribution(
        distribution.mean + step[:WEIGHTS], (distribution.scale.log() + step[WEIGHTS:]).exp(), groups
    )
    first_normal, second_normal = (torch.distributions.Normal(g.mean, g.scales) for g in (distribution, shifted))
    exact = float(torch.distributions.kl_divergence(first_normal, second_normal).sum())
    return {
        "score": float((torch.cat(scores(distribution, epsilon), 1) - torch.stack(slopes)).abs().max()),
        "fisher": float(((products - information.diag()) / spread).abs().max()),
        "kl_over_half_square": exact / float(0.5 * (information * step.square()).sum()),
    }


def _univariate_slopes() -> dict[str, float]:
    """The slope of log N(w; μ, σ²) by σ² at one point: by autograd, corrected, and in two printed forms."""
    mean, w = 0.3, 1.7
    square = torch.tensor(0.6, dtype=torch.float64, requires_grad=True)
    density = torch.distributions.Normal(torch.tensor(mean, dtype=torch.float64), square.sqrt())
    (slope,) = torch.autograd.grad(density.log_prob(torch.tensor(w, dtype=torch.float64)), square)
    s, gap = float(square.detach()), (w - mean) ** 2
    return {
        "autograd": float(slope),
        "(ε² − 1) / 2σ²": (gap / s - 1) / (2 * s),
        "printed, −1/2σ² + (w − μ)²/4σ⁴": -1 / (2 * s) + gap / (4 * s * s),
        "printed, (ε² − 1) / σ²": (gap / s - 1) / s,
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    numbers = result["numbers"]
    rows = [
        [name, f"{errors['score']:.1e}", f"{errors['fisher']:.1e}", f"{errors['kl_over_half_square']:.4f}"]
        for name, errors in numbers["families"].items()
    ]
    headers = ("family", "score less autograd", "F less that of its draws", "KL over ½ΔᵀFΔ")
    return [
        ResultTable("Largest errors", headers, rows),
        ResultTable(
            "The slope of log N(w; μ, σ²) by σ²",
            ("form", "at w − μ = 1.4, σ² = 0.6"),
            [[name, f"{value:.4f}"] for name, value in numbers["univariate"].items()],
            caption="The document prints two forms that disagree; neither is the slope.",
        ),
    ]


ARTEFACT = Artefact(
    name="variational-optimisation/score-laws",
    order=6,
    group="functions",
    title="Scores and Fisher information of Gaussian search distributions",
    requirements=("VO-11", "VO-12", "VO-16", "VO-17", "VO-19", "VO-21"),
    run=run,
    reference={"document": "Equations 8 to 16 and 20"},
    left_open=("the point: six weights, scales from 0.4 to 1.3, steps of 0.001",),
    departures={"quick": ("20,000 draws for the Fisher information",)},
    durations=("a second", "some seconds"),
    show=show,
)
