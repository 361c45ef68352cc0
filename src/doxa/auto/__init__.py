"""AUTO: a belief without a knob to turn; what others ask for is chosen on rows set aside in turn."""

from typing import TYPE_CHECKING

from doxa.auto.by_fan_in import by_fan_in
from doxa.auto.choose import RATE, ChosenBelief, KLWeightTrial, choose
from doxa.auto.committee import best_noise, committee, folds
from doxa.auto.kl_candidates import KL_WEIGHTS, KLWeight, describe_weight, require_candidates
from doxa.moved.names import renamed

if not TYPE_CHECKING:  # a type checker shall report the old names
    __getattr__ = renamed(__name__, {"Chosen": "ChosenBelief", "Trial": "KLWeightTrial"})

__all__ = [
    "KL_WEIGHTS",
    "RATE",
    "ChosenBelief",
    "KLWeight",
    "KLWeightTrial",
    "best_noise",
    "by_fan_in",
    "choose",
    "committee",
    "describe_weight",
    "folds",
    "require_candidates",
]
