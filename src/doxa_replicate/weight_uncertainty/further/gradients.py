"""The gradients of a belief that is held still: how they scatter under each noise, and how long they take."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from doxa.predict.belief import Belief
from doxa_replicate.weight_uncertainty.further.contest import BATCH, belief_learner
from doxa_replicate.weight_uncertainty.further.rows import Rows
from doxa_replicate.weight_uncertainty.local_reparameterisation.held_still import FrozenBelief

NOISES = ("shared", "local", "flipout")


def gradient_numbers(belief: Belief, rows: Rows, copies: int, rounds: int) -> dict[str, float]:
    """For each noise the variance of the slopes, summed over means and over rhos, and its time beside shared noise's.

    Batches are drawn with replacement, so that the variance is that of a step's batch and noise together. Noises take
    turns; a round's times are compared with each other, and the middle one of the rounds counts.
    """
    frozen = {noise: FrozenBelief(belief, belief_learner(1.0, noise), rows, copies) for noise in NOISES}
    slopes: dict[str, list[list[Tensor]]] = {noise: [] for noise in NOISES}
    seconds: dict[str, list[float]] = {noise: [] for noise in NOISES}
    for _ in range(rounds + 1):  # the first one warms up
        for noise, held in frozen.items():
            taken, elapsed = _timed(belief, held)
            slopes[noise].append(taken)
            seconds[noise].append(elapsed)
    variances = {
        noise: [float(torch.cat(parts).double().var(0).sum()) for parts in zip(*of_noise, strict=True)]
        for noise, of_noise in slopes.items()
    }
    return {
        **{f"means, {noise}": by_parameter[0] for noise, by_parameter in variances.items()},
        **{f"rhos, {noise}": by_parameter[1] for noise, by_parameter in variances.items()},
        **{
            f"time, {noise}": statistics.median(
                own / shared for own, shared in zip(seconds[noise][1:], seconds["shared"][1:], strict=True)
            )
            for noise in NOISES
        },
    }


def _timed(belief: Belief, held: FrozenBelief) -> tuple[list[Tensor], float]:
    """Slopes, and how long they took: of the processor where it computes, for others may be at work on it too."""
    on_gpu = belief.posterior.mean.is_cuda
    clock: Callable[[], float] = time.perf_counter if on_gpu else time.process_time
    if on_gpu:
        torch.cuda.synchronize()
    start = clock()
    taken = [each.clone() for each in held.gradients(BATCH)]
    if on_gpu:
        torch.cuda.synchronize()
    return taken, clock() - start


def ratios(scores: Mapping[str, Any], what: str, noise: str) -> list[float]:
    """Seed by seed, a noise's number over that of shared noise."""
    return [own / shared for own, shared in zip(scores[f"{what}, {noise}"], scores[f"{what}, shared"], strict=True)]
