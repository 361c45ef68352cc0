"""ATTACK: a small change of the inputs that misleads a belief. To add one: a file here and a line in TABLE."""

from doxa.judge.attacks.fgsm import fgsm

TABLE = {"fgsm": fgsm}

__all__ = ["TABLE", "fgsm"]
