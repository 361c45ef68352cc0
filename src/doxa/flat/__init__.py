"""Passes over flat vectors: what a training step does besides running the net.

All work on rows [K, n], one for each member of a fleet. Each pass is stated in torch, and done at once by a compiled
kernel where there is one for the device: in C for the CPU's memory, in Triton for a GPU's. The forms agree to rounding.
"""

from doxa.flat.adam import Corrections, Decays, Moments, adam, corrections, decays
from doxa.flat.draws import FAR, Drawn, draw, fill_scale, makes_again
from doxa.flat.prior import Pull, Pulls, mixture_slope
from doxa.flat.slopes import Slopes, Turn, collect, descend, fill_gradients, worked_out

__all__ = [
    "FAR",
    "Corrections",
    "Decays",
    "Drawn",
    "Moments",
    "Pull",
    "Pulls",
    "Slopes",
    "Turn",
    "adam",
    "collect",
    "corrections",
    "decays",
    "descend",
    "draw",
    "fill_gradients",
    "fill_scale",
    "makes_again",
    "mixture_slope",
    "worked_out",
]
