"""Noise of random signs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from doxa.errors import require_from_zero
from doxa.judge.attacks.averaged_loss import averaged_loss
from doxa.predict.belief import Belief
from doxa.random.keys import generator


def random_signs(
    belief: Belief,
    x: Any,
    y: Any,
    radius: float,
    samples: int = 20,
    seed: int = 0,
    low: float = 0.0,
    high: float = 1.0,
) -> Tensor:
    """A step of equal length in every input, in directions drawn by lot: what an attack with a gradient must beat.

    x' = clamp(x + radius · s, low, high),  s = ±1 with equal odds

    A row whose loss it did not raise keeps its clean inputs. x [B, ·], y [B, ·]; x' is shaped as x.
    """
    require_from_zero("radius", radius)
    loss, clean = averaged_loss(belief, x, y, samples, seed, low, high)
    signs = torch.randint(0, 2, clean.shape, generator=generator((seed, "random_signs"))) * 2 - 1
    attacked = (clean + radius * signs.to(clean)).clamp(low, high)
    loss_raised = loss(attacked) > loss(clean)
    return torch.where(loss_raised.reshape(-1, *[1] * (clean.dim() - 1)), attacked, clean)
