"""A real number with Gaussian noise: fixed, learned, or told by the net for each input."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from doxa.errors import BadInput, require_positive, require_size
from doxa.likelihoods import over_draws
from doxa.likelihoods.example import Example
from doxa.random.keys import generator

NODES = 24  # of the quadrature for a mixture's entropy
NUMBERS_AT_ONCE = 1 << 22  # numbers that it holds at a time


class _Gaussian(ABC):
    """p(y | output) = N(y; location, scale²), targets [B, D]; [B] for D = 1 too. Noise differs in `split` alone."""

    discrete: ClassVar[bool] = False

    @abstractmethod
    def split(self, output: Tensor, parameters: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Location and scale, broadcastable, [..., B, D]."""

    def parameters(self, output: Tensor) -> dict[str, Tensor]:
        return {}

    def check(self, output: Tensor, y: Tensor) -> Tensor:
        if not y.dtype.is_floating_point:
            raise BadInput(f"targets are {y.dtype}; regression needs real numbers: y.float()")
        location, _ = self.split(output, self.parameters(output))
        if y.dim() == 1 and location.dim() == 2 and location.shape[1] == 1:
            y = y[:, None]
        if y.shape[1:] != location.shape[1:]:
            raise BadInput(
                f"targets have shape {tuple(y.shape)}; with outputs of shape {tuple(output.shape)} they must be "
                f"{('rows', *location.shape[1:])}"
            )
        return y.to(output.dtype)

    def log_prob(self, output: Tensor, y: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        location, scale = self.split(output, parameters)
        log_p = -0.5 * ((y - location) / scale).square() - scale.log() - 0.5 * math.log(2 * math.pi)
        return log_p.flatten(-(y.dim() - 1)).sum(-1) if y.dim() > 1 else log_p

    def mean(self, output: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        return self.split(output, parameters)[0]

    def variance(self, output: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        location, scale = self.split(output, parameters)
        return scale.square().expand_as(location)

    def quantile(
        self, output: Tensor, q: float, parameters: Mapping[str, Tensor], weights: Tensor | None = None
    ) -> Tensor:
        """Of y itself, noise included: the root of the mixture's distribution function."""
        location, scale = self.split(output, parameters)
        normal = torch.distributions.Normal(torch.zeros((), dtype=output.dtype), 1.0)
        draw_quantiles = location + scale * normal.icdf(torch.tensor(q, dtype=output.dtype)).to(output.device)
        low, high = draw_quantiles.amin(0), draw_quantiles.amax(0)
        for _ in range(60):
            middle = (low + high) / 2
            below = over_draws.mean(torch.special.ndtr((middle - location) / scale), weights) < q
            low, high = torch.where(below, middle, low), torch.where(below, high, middle)
        return (low + high) / 2

    def entropy(
        self, output: Tensor, parameters: Mapping[str, Tensor], weights: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """By quadrature: Gauss-Hermite for one target a row, fixed normal draws for several."""
        location, scale = (
            t.reshape(*t.shape[:2], -1) for t in torch.broadcast_tensors(*self.split(output, parameters))
        )
        samples, count, size = location.shape
        parts = over_draws.mean((scale.log() + 0.5 * math.log(2 * math.pi * math.e)).sum(-1), weights)
        nodes, steps = _quadrature_nodes(size, samples, location)
        information = torch.zeros_like(parts)
        rows = max(1, NUMBERS_AT_ONCE // (len(nodes) * samples * size))
        for start in range(0, count, rows):
            block = slice(start, start + rows)
            information[block] = _mutual_information(location[:, block], scale[:, block], nodes, steps, weights)
        return parts + information, parts


def _mutual_information(
    location: Tensor, scale: Tensor, nodes: Tensor, steps: Tensor, weights: Tensor | None
) -> Tensor:
    """I[y; s] of a mixture of Gaussians [S, B, D], row by row; `steps` [K] are the weights of the nodes."""
    total = torch.zeros_like(location[0, :, 0])
    divisors = [len(location)] * len(location) if weights is None else (weights.sum() / weights).tolist()
    for s, divisor in enumerate(divisors):
        y = location[s] + scale[s] * nodes[:, None, :]  # [K, B, D]
        z = (y[:, None] - location) / scale  # [K, S, B, D]
        log_p = (-0.5 * z.square() - scale.log() - 0.5 * math.log(2 * math.pi)).sum(-1)
        mixture = over_draws.log_mean_exp(log_p.movedim(1, 0), weights)
        # The nodes' own error falls out of the difference: draws that agree have no mutual information.
        total += (steps[:, None] * (log_p[:, s] - mixture)).sum(0) / divisor
    return total


def _quadrature_nodes(size: int, samples: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Points z [K, D] and weights [K] with Σ weight·f(z) ≈ E f(z), z ~ N(0, I)."""
    if size == 1:
        x, w = np.polynomial.hermite_e.hermegauss(NODES)
        return torch.as_tensor(x[:, None]).to(like), torch.as_tensor(w / w.sum()).to(like)
    count = max(2 * size, 2 * NODES if samples < 8 else 400 // samples)  # the draws are nodes of a kind too
    z = torch.randn(count, size, generator=generator((0, "entropy")), dtype=torch.float64)
    # Whitened, the nodes have the moments of a standard normal exactly.
    z = torch.linalg.solve_triangular(torch.linalg.cholesky(z.T @ z / count), z.T, upper=False).T
    return torch.cat([z, -z]).to(like), torch.full((2 * count,), 1 / (2 * count)).to(like)


@dataclass(frozen=True)
class Gaussian(_Gaussian):
    """Real targets with noise of a known size.

    p(y | output) = N(y; output, scale²)

    Output [..., B, D]; targets [B, D], or [B] for D = 1.
    Gauss (1809), Theoria motus corporum coelestium.
    """

    scale: float

    def __post_init__(self) -> None:
        require_positive("scale", self.scale)
        require_size("scale", self.scale)

    def split(self, output: Tensor, parameters: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        return output, output.new_full((), self.scale)


@dataclass(frozen=True)
class GaussianLearned(_Gaussian):
    """Real targets with noise of one unknown size for each target, learned beside the weights.

    p(y | output) = N(y; output, exp(log_scale)²)

    `start` is the scale to begin with. Output [..., B, D]; targets [B, D], or [B] for D = 1.
    Bishop (2006), Pattern recognition and machine learning, section 5.2.
    """

    start: float = 1.0

    def __post_init__(self) -> None:
        require_positive("start", self.start)
        require_size("start", self.start)

    def parameters(self, output: Tensor) -> dict[str, Tensor]:
        return {
            "log_scale": torch.full(output.shape[1:], math.log(self.start), dtype=output.dtype, device=output.device)
        }

    def split(self, output: Tensor, parameters: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        return output, parameters["log_scale"].exp()


@dataclass(frozen=True)
class GaussianPerInput(_Gaussian):
    """Real targets with noise that depends on the input: the net's output has a location and a raw scale for each.

    p(y | output) = N(y; output₁, scale² (least + softplus(output₂))²),  output = [output₁, output₂]

    `scale` is the size of the targets, where it is far from 1. Output [..., B, 2D]; targets [B, D], or [B] for D = 1.
    Nix & Weigend (1994), Estimating the mean and variance of the target probability distribution.
    """

    least: float = 1e-3
    scale: float = 1.0

    outputs_per_target: ClassVar[int] = 2

    def __post_init__(self) -> None:
        require_positive("least", self.least)
        require_size("least", self.least)
        require_positive("scale", self.scale)
        require_size("scale", self.scale)

    def check(self, output: Tensor, y: Tensor) -> Tensor:
        if output.dim() < 2 or output.shape[-1] % 2:
            raise BadInput(
                f"the net's output has shape {tuple(output.shape)}; with noise for each input it must be [rows, 2·D]: "
                "D locations, then D raw scales"
            )
        return super().check(output, y)

    def split(self, output: Tensor, parameters: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        location, raw = output.chunk(2, dim=-1)
        return location, self.scale * (self.least + F.softplus(raw))


gaussian = Gaussian
gaussian_learned = GaussianLearned
gaussian_per_input = GaussianPerInput
EXAMPLES = {
    "gaussian": (Example(Gaussian(0.4), outputs=(1,)),),
    "gaussian_learned": (Example(GaussianLearned(0.7), outputs=(1,)),),
    "gaussian_per_input": (Example(GaussianPerInput(0.01), outputs=(2,)),),
}
