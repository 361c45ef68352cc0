"""The laws of the leapfrog: it conserves energy to second order, runs backwards and keeps volumes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from doxa.references.leapfrog import kinetic, leapfrog, reasonable_step_size
from for_references import GaussianTarget, QuarticTarget, covariance

D = torch.float64
MASS = torch.tensor([0.5, 2.0, 1.0], dtype=D)
STEP = torch.tensor([[0.1], [0.05]], dtype=D)


def phase(seed: int = 0) -> tuple[Tensor, Tensor]:
    source = torch.Generator().manual_seed(seed)
    return torch.randn(2, 3, generator=source, dtype=D), torch.randn(2, 3, generator=source, dtype=D)


def error(step: float, length: float = 2.0) -> Tensor:
    """How far the energy is off after a trajectory of a given length, at most on the way to it."""
    position, momentum = phase()
    target = QuarticTarget(position)
    before, worst = target.energy() + kinetic(momentum, MASS), torch.zeros(2, dtype=D)
    for _ in range(round(length / step)):
        leapfrog(target, momentum, torch.full((2, 1), step, dtype=D), MASS, 1)
        worst = torch.maximum(worst, (target.energy() + kinetic(momentum, MASS) - before).abs())
    return worst


def test_energy_is_conserved_to_second_order() -> None:
    """Half the step, a quarter of the error."""
    ratio = error(0.02) / error(0.01)
    assert bool(((ratio > 3.8) & (ratio < 4.2)).all())
    assert float(error(0.001).max()) < 1e-4


def test_backwards_it_returns() -> None:
    position, momentum = phase()
    target, moved = QuarticTarget(position), momentum.clone()
    leapfrog(target, moved, STEP, MASS, 25)
    assert float((target.position - position).abs().min()) > 1e-3
    moved.neg_()
    leapfrog(target, moved, STEP, MASS, 25)
    torch.testing.assert_close(target.position, position, rtol=0, atol=1e-12)
    torch.testing.assert_close(-moved, momentum, rtol=0, atol=1e-12)


def test_volume_is_kept() -> None:
    """The determinant of (q, p) → (q′, p′) is 1, by central differences."""

    def end(point: Tensor) -> Tensor:
        target, momentum = QuarticTarget(point[None, :3]), point[None, 3:].clone()
        leapfrog(target, momentum, STEP[:1], MASS, 10)
        return torch.cat([target.position[0], momentum[0]])

    point, h = torch.cat([t[0] for t in phase()]), 1e-5
    columns = [(end(point + h * axis) - end(point - h * axis)) / (2 * h) for axis in torch.eye(6, dtype=D)]
    assert float(torch.linalg.det(torch.stack(columns, 1))) == pytest.approx(1.0, abs=1e-7)


def test_several_steps_are_so_many_single_ones() -> None:
    (together, one_by_one), momentum = (QuarticTarget(phase()[0]) for _ in range(2)), phase()[1]
    apart = momentum.clone()
    leapfrog(together, momentum, STEP, MASS, 4)
    for _ in range(4):
        leapfrog(one_by_one, apart, STEP, MASS, 1)
    torch.testing.assert_close(together.position, one_by_one.position)
    torch.testing.assert_close(momentum, apart)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_a_first_step_size_has_the_size_of_the_target(scale: float) -> None:
    target = GaussianTarget(scale**2 * covariance(3, 0.0), 16, scale)
    target.evaluate()
    before = target.position.clone()
    momentum = torch.randn(16, 3, generator=torch.Generator().manual_seed(1), dtype=D)
    step = reasonable_step_size(
        target, target.energy(), momentum, torch.ones(3, dtype=D), torch.full((16,), 0.1, dtype=D)
    )
    assert bool(((step > 0.1 * scale) & (step < 10 * scale)).all())
    assert torch.equal(target.position, before), "nobody moves"
