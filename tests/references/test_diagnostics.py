"""The laws of R-hat and of effective sizes: what is known of chains whose mixing is known."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from doxa.errors import BadInput
from doxa.references import ess_bulk, ess_tail, r_hat
from doxa.references.diagnostics import ess_mean

STATISTICS = {"r_hat": r_hat, "ess_bulk": ess_bulk, "ess_tail": ess_tail, "ess_mean": ess_mean}


def normals(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def autoregression(chains: int, draws: int, coefficient: float, quantities: int = 30) -> Tensor:
    """xₜ = a xₜ₋₁ + √(1 − a²) ξ, from equilibrium on: its autocorrelation time is (1 + a)/(1 − a)."""
    noise = normals(draws, chains, quantities)
    rows = [noise[0]]
    for step in noise[1:]:
        rows.append(coefficient * rows[-1] + (1 - coefficient**2) ** 0.5 * step)
    return torch.stack(rows, 1)


def test_independent_draws_are_worth_what_they_are() -> None:
    values = normals(8, 500, 40)
    assert float(r_hat(values).max()) < 1.01
    for size in (ess_bulk, ess_tail, ess_mean):
        assert float(size(values).mean()) == pytest.approx(4000, rel=0.06)


@pytest.mark.parametrize("coefficient", [0.3, 0.6, 0.9, -0.4])
def test_an_autoregression_has_its_autocorrelation_time(coefficient: float) -> None:
    values = autoregression(6, 4000, coefficient)
    expected = 24000 * (1 - coefficient) / (1 + coefficient)
    assert float(ess_mean(values).mean()) == pytest.approx(expected, rel=0.06)
    assert float(ess_bulk(values).mean()) == pytest.approx(expected, rel=0.06)


def test_an_effective_size_tells_the_error_of_a_mean() -> None:
    """The spread of the mean over many repetitions is sd / √ESS."""
    values = autoregression(4, 500, 0.7, quantities=400)
    claimed = (values.flatten(0, 1).var(0) / ess_mean(values)).mean().sqrt()
    assert float(values.mean((0, 1)).std()) == pytest.approx(float(claimed), rel=0.1)


def test_chains_at_different_places_do_not_agree() -> None:
    values = normals(4, 300, 2)
    values[0] += torch.tensor([3.0, 0.0])
    apart, together = r_hat(values).tolist()
    assert apart > 1.2
    assert together < 1.01
    assert float(ess_bulk(values)[0]) < 20


def test_chains_of_different_widths_do_not_agree() -> None:
    """Their means are the same: only distances from the median tell."""
    values = normals(4, 500)
    values[0] *= 5
    assert float(r_hat(values)) > 1.1


def test_a_chain_that_drifts_does_not_agree_with_itself() -> None:
    values = normals(1, 400) + torch.linspace(0, 4, 400, dtype=torch.float64)
    assert float(r_hat(values)) > 1.3


def test_tails_without_moments_are_ranked() -> None:
    cauchy = normals(4, 1000, 10) / normals(4, 1000, 10, seed=1)
    assert float(r_hat(cauchy).max()) < 1.02
    assert float(ess_bulk(cauchy).min()) > 3000


@pytest.mark.parametrize("name", ["r_hat", "ess_bulk", "ess_tail"])
def test_units_are_nothing(name: str) -> None:
    values = autoregression(4, 200, 0.5, 5)
    # Rounding may let two values on either side of the median change ranks.
    torch.testing.assert_close(STATISTICS[name](1e3 * values - 7), STATISTICS[name](values), rtol=1e-4, atol=0)
    if name != "ess_tail":  # whose two tails are asked alike
        torch.testing.assert_close(STATISTICS[name](-values), STATISTICS[name](values), rtol=1e-4, atol=0)


@pytest.mark.parametrize("statistic", STATISTICS.values(), ids=STATISTICS)
def test_each_quantity_is_by_itself(statistic, monkeypatch) -> None:
    values = autoregression(3, 101, 0.5, 6).unflatten(2, (2, 3)).clone()
    values[:, :, 1, 1] = 2.0
    values[0, 5, 0, 2] = torch.nan
    result = statistic(values)
    assert result.shape == (2, 3)
    assert result.isnan().tolist() == [[False, False, True], [False, True, False]]
    torch.testing.assert_close(statistic(values[:, :, 1, 2]), result[1, 2])
    monkeypatch.setattr("doxa.references.diagnostics.NUMBERS_AT_ONCE", 1)
    torch.testing.assert_close(statistic(values), result, equal_nan=True)


@pytest.mark.parametrize("values", [torch.zeros(4), torch.zeros(2, 3), torch.zeros(0, 9), torch.zeros(2, 9).long()])
def test_what_is_no_chains_is_refused(values: Tensor) -> None:
    with pytest.raises(BadInput, match=r"chains, draws|draws and more"):
        r_hat(values)
