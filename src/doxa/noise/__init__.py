"""NOISE: how randomness meets an operation while learning. To add one: a file here and a line in TABLE."""

from doxa.noise.flipout import flipout
from doxa.noise.leaves import Leaves, Noise
from doxa.noise.local import local
from doxa.noise.shared import shared

TABLE = {"shared": shared, "local": local, "flipout": flipout}

__all__ = ["TABLE", "Leaves", "Noise", "flipout", "local", "shared"]
