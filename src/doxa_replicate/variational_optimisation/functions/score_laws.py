"""Scores, Fisher information and distance of Gaussian search distributions, against the densities themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from doxa.search.distribution.fisher import fisher
from doxa.search.distribution.gaussian import Gaussian, scores
from doxa_replicate.contract import Artefact, Ask, Numbers
from doxa_replicate.show import Shown, Table

WIDTH, STEP = 6, 1e-3
FAMILIES: dict[str, tuple[int, ...] | None] = {"isotropic": (6,), "layer-wise": (4, 2), "separable": None}


def run(ask: Ask) -> Numbers:
    draws = int(ask.of(20_000, 1_000_000))
    found = {name: _family(groups, draws) for name, groups in FAMILIES.items()}
    return {
        "settings": {"weights": WIDTH, "draws": draws, "step": STEP},
        "seeds": [0],
        "families": found,
        "univariate": _univariate(),
    }


def _normals(rows: int, width: int) -> Tensor:
    return torch.randn(rows, width, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def _at(groups: tuple[int, ...] | None) -> Gaussian:
    count = WIDTH if groups is None else len(groups)
    return Gaussian(
        torch.linspace(-1, 1, WIDTH, dtype=torch.float64), torch.linspace(0.4, 1.3, count, dtype=torch.float64), groups
    )


def _family(groups: tuple[int, ...] | None, draws: int) -> dict[str, float]:
    """The largest errors: of a score against autograd, of F against its draws, of ½ΔᵀFΔ against the exact KL."""
    at = _at(groups)
    few = _normals(16, WIDTH)
    mean, log = at.mean.clone().requires_grad_(), at.scale.log().requires_grad_()
    slopes = [
        torch.cat(torch.autograd.grad(Gaussian(mean, log.exp(), groups).log_prob(w), [mean, log]))
        for w in at.mean + at.scales * few
    ]
    both = torch.cat(scores(at, _normals(draws, WIDTH)), 1)
    products, information = both.T @ both / draws, torch.cat(fisher(at))
    spread = (information[:, None] * information[None]).sqrt()
    step = STEP * torch.linspace(-1, 1, len(information), dtype=torch.float64)
    other = Gaussian(at.mean + step[:WIDTH], (at.scale.log() + step[WIDTH:]).exp(), groups)
    one, two = (torch.distributions.Normal(g.mean, g.scales) for g in (at, other))
    exact = float(torch.distributions.kl_divergence(one, two).sum())
    return {
        "score": float((torch.cat(scores(at, few), 1) - torch.stack(slopes)).abs().max()),
        "fisher": float(((products - information.diag()) / spread).abs().max()),
        "kl_over_half_square": exact / float(0.5 * (information * step.square()).sum()),
    }


def _univariate() -> dict[str, float]:
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


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    numbers = found["numbers"]
    rows = [
        [name, f"{of['score']:.1e}", f"{of['fisher']:.1e}", f"{of['kl_over_half_square']:.4f}"]
        for name, of in numbers["families"].items()
    ]
    heads = ("family", "score less autograd", "F less that of its draws", "KL over ½ΔᵀFΔ")
    return [
        Table("Largest errors", heads, rows),
        Table(
            "The slope of log N(w; μ, σ²) by σ²",
            ("form", "at w − μ = 1.4, σ² = 0.6"),
            [[name, f"{value:.4f}"] for name, value in numbers["univariate"].items()],
            says="The document prints two forms that disagree; neither is the slope.",
        ),
    ]


ARTEFACT = Artefact(
    name="variational-optimisation/score-laws",
    place=6,
    group="functions",
    title="Scores and Fisher information of Gaussian search distributions",
    rows=("VO-11", "VO-12", "VO-16", "VO-17", "VO-19", "VO-21"),
    run=run,
    reference={"document": "Equations 8 to 16 and 20"},
    left_open=("the point: six weights, scales from 0.4 to 1.3, steps of 0.001",),
    departures={"quick": ("20,000 draws for the Fisher information",)},
    takes=("a second", "some seconds"),
    show=show,
)
