"""Passes over flat vectors: what a training step does besides running the net.

All work on rows [K, n], one for each member of a fleet. Each pass is stated in torch, and done at once by a compiled
kernel where there is one for the device: in C for the CPU's memory, in Triton for a GPU's. The forms agree to rounding.
"""

from typing import TYPE_CHECKING

from doxa.flat.adam import BiasCorrections, Decays, Moments, adam, bias_corrections, decays
from doxa.flat.draws import RHO_LIMIT, RegenerableNoise, can_regenerate_noise, draw, fill_scale
from doxa.flat.gaussian_gradients import (
    GaussianGradientInputs,
    ScalePullback,
    accumulate_gradients,
    fill_gradients,
    gaussian_adam,
    mean_and_rho_gradients,
)
from doxa.flat.prior import PriorGradientKind, PriorGradients, mixture_slope
from doxa.moved.names import renamed

if not TYPE_CHECKING:  # a type checker shall report the old names
    __getattr__ = renamed(
        __name__,
        {
            "Corrections": "BiasCorrections",
            "Drawn": "RegenerableNoise",
            "FAR": "RHO_LIMIT",
            "Pull": "PriorGradientKind",
            "Pulls": "PriorGradients",
            "Slopes": "GaussianGradientInputs",
            "Turn": "ScalePullback",
            "collect": "accumulate_gradients",
            "corrections": "bias_corrections",
            "descend": "gaussian_adam",
            "makes_again": "can_regenerate_noise",
            "worked_out": "mean_and_rho_gradients",
        },
    )

__all__ = [
    "RHO_LIMIT",
    "BiasCorrections",
    "Decays",
    "GaussianGradientInputs",
    "Moments",
    "PriorGradientKind",
    "PriorGradients",
    "RegenerableNoise",
    "ScalePullback",
    "accumulate_gradients",
    "adam",
    "bias_corrections",
    "can_regenerate_noise",
    "decays",
    "draw",
    "fill_gradients",
    "fill_scale",
    "gaussian_adam",
    "mean_and_rho_gradients",
    "mixture_slope",
]
