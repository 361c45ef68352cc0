"""Functions of variational optimisation: what is worked out by hand agrees with what is found by drawing."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from doxa.search import Search
from doxa.search.functions import himmelblau as function
from doxa_replicate.variational_optimisation.functions import discretised_sinc, drawn, two_wells
from doxa_replicate.variational_optimisation.functions.estimates import (
    SECTION_POINT,
    exact_variances,
    gradient_estimates,
    gradient_terms,
    isotropic_gaussian,
    section,
    section_slope,
)
from doxa_replicate.variational_optimisation.functions.smoothed_gradient import (
    POINT,
    himmelblau_gradient,
    laplacian_slope,
)
from doxa_replicate.variational_optimisation.himmelblau import as_run, searches
from doxa_replicate.variational_optimisation.himmelblau.searches import SearchRates
from doxa_replicate.variational_optimisation.nets import minibatch_variance


def normals(count: int) -> torch.Tensor:
    return torch.randn(count, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("module", [discretised_sinc, two_wells])
@pytest.mark.parametrize(("mean", "scale"), [(0.3, 0.2), (-2.0, 1.0), (1.4, 0.5)])
def test_the_expected_value_is_that_of_draws(module: object, mean: float, scale: float) -> None:
    f = module.staircase if module is discretised_sinc else module.wells  # type: ignore[attr-defined]
    values = f(mean + scale * normals(400_000)).flatten()
    exact = module.expected(torch.tensor(mean).double(), torch.tensor(scale).double())  # type: ignore[attr-defined]
    assert abs(float(values.mean() - exact)) < 4 * float(values.std()) / math.sqrt(len(values))


def test_the_author_s_functions_are_as_he_drew_them() -> None:
    w = torch.linspace(-5, 5, 2001, dtype=torch.float64)
    wells, steps = two_wells.parabolas(w), discretised_sinc.drawn_staircase(w)
    assert float(wells.min()) == pytest.approx(-1.625)
    assert float(w[wells.argmin()]) == pytest.approx(2.25)
    wide = wells[w < 0.5]
    assert float(wide.min()) == pytest.approx(-1.25)
    assert float(w[wide.argmin()]) == pytest.approx(-2)
    torch.testing.assert_close(5 * steps, (5 * steps).round())
    assert float(steps.min()) == pytest.approx(-1)


@pytest.mark.parametrize("f", [two_wells.parabolas, discretised_sinc.drawn_staircase])
def test_a_drawn_surface_is_the_mean_of_its_draws_and_f_at_no_scale(f: Callable[[torch.Tensor], torch.Tensor]) -> None:
    mean, scale = torch.linspace(-5, 5, 21, dtype=torch.float64), torch.tensor([0.0, 1.5]).double()
    surface = drawn.drawn_surface(f, mean, scale, 20_000, 0)
    torch.testing.assert_close(surface[0], f(mean))
    values = f(mean[4] + 1.5 * normals(200_000))
    assert abs(float(surface[1, 4] - values.mean())) < 4 * float(values.std()) / math.sqrt(20_000)


def test_wells_part_where_the_best_mean_goes_over_for_good() -> None:
    scale = torch.arange(5).double()
    wide = torch.tensor([False, False, True, True, True])
    assert two_wells.parting_scale(scale, wide, ~wide) == 2.0
    assert two_wells.parting_scale(scale, torch.tensor([False, True, False, True, True]), ~wide) is None
    assert two_wells.parting_scale(scale, torch.ones(5, dtype=torch.bool), ~wide) is None


def test_slopes_by_hand_are_those_of_autograd() -> None:
    x = torch.tensor([SECTION_POINT], dtype=torch.float64, requires_grad=True)
    section(x).backward()
    assert x.grad is not None
    assert float(x.grad) == pytest.approx(section_slope(SECTION_POINT))
    w = torch.tensor(POINT, dtype=torch.float64)
    torch.testing.assert_close(torch.func.grad(function.value)(w), himmelblau_gradient(w))

    def laplacian(v: torch.Tensor) -> torch.Tensor:
        return torch.func.hessian(function.value)(v).diagonal().sum()

    torch.testing.assert_close(torch.func.grad(laplacian)(w), laplacian_slope(w))


def test_variances_by_quadrature_are_those_of_terms() -> None:
    distribution, epsilon = (
        isotropic_gaussian(torch.tensor([SECTION_POINT], dtype=torch.float64), 0.3),
        normals(400_000),
    )
    term_variance, even_variance = exact_variances(section, distribution)
    g, mirrored = gradient_terms(section, distribution, epsilon), gradient_terms(section, distribution, -epsilon)
    torch.testing.assert_close(g.var(0), term_variance, rtol=0.03, atol=0)
    torch.testing.assert_close(((g + mirrored) / 2).var(0), even_variance, rtol=0.06, atol=0)


def test_estimates_are_the_mean_of_terms_and_no_two_alike() -> None:
    distribution = isotropic_gaussian(torch.zeros(2, dtype=torch.float64), 1.0)
    estimates = gradient_estimates(lambda w: w.sum(-1), distribution, 4, True, 50, 0)
    assert estimates.shape == (50, 3)
    assert len(estimates[:, 0].unique()) == 50
    assert float(estimates[:, 2].abs().max()) < 1e-12, "pairs leave nothing of an odd term"


def test_a_search_that_leaves_for_infinity_ends_there() -> None:
    diverged = searches.run_search("plain", SearchRates(3e-3, 3e-3), 0, 150)
    assert math.isinf(diverged["end"])
    assert all(map(math.isfinite, diverged["f"]))
    assert len(diverged["path"]) == len(diverged["f"]) <= 150


@pytest.mark.parametrize("gradient", as_run.AUTHORS)
def test_a_step_as_run_is_the_author_s(gradient: str) -> None:
    """mean −100 and β −10 times his sums over draws, of utilities that add up to nothing and count the worst."""
    search = Search((1.0, -0.5), as_run.search_settings(gradient), 3)
    search.coordinate.fill_(-0.4)
    scale, mean, points = math.exp(-0.2), search.mean.clone(), search.ask()
    values, epsilon, n = function(points), (points - mean) / scale, as_run.POPULATION
    falling = torch.tensor([math.log(n / 2 + 1) - math.log(k) for k in range(1, n + 1)]).double().clamp_min(0)
    shares = torch.zeros(n).double()
    shares[values.argsort(descending=True)] = falling / falling.sum()
    u = shares - 1 / n
    length = scale if gradient == "natural" else 1 / scale
    by_scale = (u @ (epsilon.square().sum(1) - 2)) / n
    by_scale = {"fixed": 0 * by_scale, "plain": by_scale / 2, "natural": by_scale}[gradient]
    search.tell(values)
    torch.testing.assert_close(search.mean, mean - 100 * length * (u @ epsilon) / n)
    torch.testing.assert_close(search.coordinate, -0.4 - 10 * by_scale[None])


def test_the_level_that_is_reached_is_no_lucky_step() -> None:
    assert searches.lowest_level({"f": [9.0] * 30 + [0.0] + [9.0] * 30}) == 9.0
    assert searches.lowest_level({"f": [9.0] * 30 + [1.0] * 25 + [1e9]}) == 1.0


def test_a_floor_keeps_a_scale_up() -> None:
    record = searches.run_search("plain", SearchRates(3e-3, 3e-3), 0, 60, coordinate=searches.floored_variance(0.01))
    assert min(record["scale"]) >= 0.1 - 1e-12


@pytest.mark.parametrize("model", minibatch_variance.MODELS)
def test_losses_of_some_rows_are_those_of_all(model: str) -> None:
    loss_model = minibatch_variance.MODELS[model]()
    weights = loss_model.mean + 0.1 * torch.arange(3, dtype=torch.float64)[:, None]
    all_losses = loss_model.losses(weights, slice(None))
    assert all_losses.shape == (3, minibatch_variance.ROWS)
    torch.testing.assert_close(loss_model.losses(weights, slice(2, 5)), all_losses[:, 2:5])
    assert float(all_losses.min()) >= 0
