"""The fast gradient sign method."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from doxa.errors import BadInput
from doxa.judge.attacks.averaged_loss import averaged_loss
from doxa.predict.belief import Belief


def fgsm(
    belief: Belief,
    x: Any,
    y: Any,
    radius: float,
    samples: int = 20,
    seed: int = 0,
    low: float = 0.0,
    high: float = 1.0,
) -> Tensor:
    """One step of equal length in every input, uphill in the loss of the averaged prediction.

    x' = clamp(x + radius · sign(∇ₓ J), low, high),  J = −log (1/S) Σₛ p(y | x, wₛ)

    A step as long as `radius` can overshoot; a row whose loss it did not raise, on the same draws, keeps its clean
    inputs. Attack one belief and evaluate another for a transfer attack. x [B, ·], y [B, ·]; x' is shaped as x.
    Goodfellow, Shlens & Szegedy (2015), Explaining and harnessing adversarial examples.
    """
    if not 0 <= radius < float("inf"):
        raise BadInput(f"radius must be a finite number of at least 0; got {radius}")
    loss, clean = averaged_loss(belief, x, y, samples, seed, low, high)
    attacked = (clean + radius * loss.gradient(clean).sign()).clamp(low, high)
    loss_raised = loss(attacked) > loss(clean)
    return torch.where(loss_raised.reshape(-1, *[1] * (clean.dim() - 1)), attacked, clean)
