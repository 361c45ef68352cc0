"""Mushrooms, to be eaten or not."""

from __future__ import annotations

import torch
from torch import Tensor

from doxa.bandits.bandit import Bandit
from doxa.data.sets.mushroom import mushroom
from doxa.errors import BadInput, did_you_mean

EDIBLE, POISON = 5.0, (-35.0, 5.0)  # what eating pays; of the poisonous, either with probability 1/2
EAT, PASS = 0, 1
ENCODINGS = "drop_first", "one_hot"


def mushrooms(encoding: str = "drop_first") -> Bandit:
    """The 8,124 mushrooms of the UCI repository: to eat an edible one pays 5, a poisonous one −35 or 5, to pass 0.

    r(eat, edible) = 5,  r(eat, poisonous) = −35 or 5 with probability 1/2 each,  r(pass) = 0

    "drop_first" has 95 columns, "one_hot" 117. Blundell et al. (2015), Weight uncertainty in neural networks.
    """
    if encoding not in ENCODINGS:
        raise BadInput(f"there is no encoding {encoding!r}{did_you_mean(str(encoding), ENCODINGS)}")
    table = mushroom(encoding)
    poisonous = torch.from_numpy(table.y) == 1

    def pay(rows: Tensor, u: Tensor) -> Tensor:
        is_poisonous, lucky = poisonous[rows], u[:, EAT] >= 0.5
        eaten = torch.where(is_poisonous & ~lucky, POISON[0], torch.where(is_poisonous, POISON[1], EDIBLE))
        return torch.stack([eaten, torch.zeros_like(eaten)], 1)

    eaten = torch.where(poisonous, sum(POISON) / 2, EDIBLE)
    expected = torch.stack([eaten, torch.zeros_like(eaten)], 1)
    return Bandit(f"mushrooms, {encoding}", torch.from_numpy(table.x), expected, pay, ("eat", "pass"))
