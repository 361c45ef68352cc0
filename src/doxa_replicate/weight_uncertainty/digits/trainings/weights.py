"""What is read off the weights of a trained net: densities, spreads, and signal-to-noise layer by layer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from doxa.predict.belief import Belief

REACH, BINS = 1.0, 160  # of histograms of weights
# The authors drew kernel densities of ten draws, cut off at ±0.3; here they are made of a fine histogram.
DRAWN_REACH, DRAWN_BINS, DRAWN_DRAWS, DRAWN_KEPT = 0.3, 1200, 10, 120


def weight_statistics(belief: Belief) -> dict[str, Any]:
    """Draws of the weights, biases aside: densities, and spreads and signal-to-noise layer by layer."""
    slots = [slot for slot in belief.layout.random_slots if len(slot.shape) > 1]
    draws = [draw.weights for draw in belief.posterior.draws(DRAWN_DRAWS, (0, "histogram"))]
    layers = {slot.name: draws[0][slot.span] for slot in slots}
    weights = torch.cat(list(layers.values()))
    quartiles = np.quantile(weights.double().cpu().numpy(), [0.25, 0.75])
    statistics: dict[str, Any] = {
        "edges": [-REACH, REACH, BINS],
        "density": _density(weights),
        "std": float(weights.double().std()),
        "iqr": float(quartiles[1] - quartiles[0]),
        "std_of_means": float(torch.cat([belief.posterior.mean[slot.span] for slot in slots]).double().std()),
        "as drawn": kernel_density([torch.cat([draw[slot.span] for slot in slots]) for draw in draws]),
        "layers": {
            name: {
                "density": _density(w),
                "std": float(w.double().std()),
            }
            for name, w in layers.items()
        },
    }
    for slot in slots:
        signal_to_noise = belief.posterior.relevance[slot.span].double()
        finite = signal_to_noise[signal_to_noise.isfinite()]
        statistics["layers"][slot.name] |= {
            "signal_to_noise": float(finite.mean()) if len(finite) else None,
            "median_signal_to_noise": float(finite.median()) if len(finite) else None,
        }
    return statistics


def _density(w: Tensor) -> list[float]:
    density: list[float] = (_counts(w, BINS, REACH) / (w.numel() * 2 * REACH / BINS)).tolist()
    return density


def _counts(w: Tensor, bins: int, reach: float) -> NDArray[np.float64]:
    """How many weights lie in each of some bins within ±reach."""
    counts: NDArray[np.float64] = torch.histc(w.detach().double(), bins, -reach, reach).cpu().numpy()
    return counts


def kernel_density(draws: list[Tensor]) -> dict[str, Any]:
    """A Gaussian kernel estimate of weights within ±0.3, as seaborn draws it, and the height of its peak.

    p(w) = (1/nh) Σᵢ φ((w − wᵢ)/h),  h = s · n^(−1/5), s the standard deviation of all n weights

    Scott (1992), Multivariate density estimation, section 6.3. Kernels are put on the middles of fine bins.
    """
    count = sum(draw.numel() for draw in draws)
    moments = torch.stack([torch.stack([d.double().sum(), d.double().square().sum()]) for d in draws]).sum(0) / count
    bandwidth = math.sqrt(float(moments[1] - moments[0] ** 2)) * count**-0.2
    edges = np.linspace(-DRAWN_REACH, DRAWN_REACH, DRAWN_BINS + 1)
    # On the device of the weights: tens of millions would take a CPU seconds of each net.
    counts = sum(_counts(draw, DRAWN_BINS, DRAWN_REACH) for draw in draws)
    smooth = _smoothed(np.asarray(counts) / (count * (edges[1] - edges[0])), edges[1] - edges[0], bandwidth)
    each = DRAWN_BINS // DRAWN_KEPT
    return {
        "edges": [-DRAWN_REACH, DRAWN_REACH, DRAWN_KEPT],
        "density": smooth.reshape(DRAWN_KEPT, each).mean(1).tolist(),
        "peak": float(smooth.max()),
    }


def _smoothed(density: NDArray[np.float64], width: float, bandwidth: float) -> NDArray[np.float64]:
    """A histogram folded with a Gaussian kernel; beyond its ends there is nothing, as where it was cut off."""
    reach = max(1, math.ceil(5 * bandwidth / width))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * width / bandwidth) ** 2)
    smooth: NDArray[np.float64] = np.convolve(density, kernel / kernel.sum(), mode="full")[reach : reach + len(density)]
    return smooth
