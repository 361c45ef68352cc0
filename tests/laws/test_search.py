"""Laws of search: scores, Fisher information, natural gradients, unbiased slopes, and how uncertain they are."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from doxa import likelihoods
from doxa.contracts import Problem
from doxa.errors import BadInput
from doxa.search import local as local_noise
from doxa.search import low_rank, natural, natural_within, plain, scores, shaping, weight_space
from doxa.search.distribution.coordinates import TABLE as COORDINATES
from doxa.search.distribution.coordinates import Coordinate, log_scale, variance
from doxa.search.distribution.fisher import fisher
from doxa.search.distribution.gaussian import SearchDistribution, SearchSlopes, scale_groups
from doxa.search.objectives import Objective
from doxa.search.perturbations.population import make_population
from doxa.search.population_evaluator import EvaluationBatch, NamedTensors, PopulationEvaluator
from doxa.search.shaping import TABLE as SHAPINGS
from doxa.search.shaping import Shaping
from doxa.weights.layout import lay_out
from doxa.weights.probe import probe

D = 5
FAMILIES = {"separable": None, "layer-wise": (2, 3), "isotropic": (5,)}
families = pytest.mark.parametrize("groups", FAMILIES.values(), ids=FAMILIES.keys())


def gaussian(groups: tuple[int, ...] | None) -> SearchDistribution:
    count = D if groups is None else len(groups)
    mean = torch.linspace(-1, 1.5, D, dtype=torch.float64)
    return SearchDistribution(mean, torch.linspace(0.4, 1.1, count, dtype=torch.float64), groups)


def normals(rows: int, seed: int = 0, width: int = D) -> Tensor:
    return torch.randn(rows, width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@families
def test_scores_are_the_slopes_of_the_log_density(groups: tuple[int, ...] | None) -> None:
    distribution, epsilon = gaussian(groups), normals(7)
    w = distribution.mean + distribution.scales * epsilon
    mean, log = distribution.mean.clone().requires_grad_(), distribution.scale.log().requires_grad_()
    gradients = [
        torch.autograd.grad(SearchDistribution(mean, log.exp(), groups).log_prob(row), [mean, log], retain_graph=True)
        for row in w
    ]
    by_mean, by_log = scores(distribution, epsilon)
    torch.testing.assert_close(by_mean, torch.stack([a for a, _ in gradients]))
    torch.testing.assert_close(by_log, torch.stack([b for _, b in gradients]))


@families
def test_the_fisher_information_is_the_covariance_of_the_scores(groups: tuple[int, ...] | None) -> None:
    distribution = gaussian(groups)
    both = torch.cat(scores(distribution, normals(400_000)), 1)
    products = both[:, :, None] * both[:, None, :]
    error = products.std(0) / len(both) ** 0.5
    assert (products.mean(0) - torch.cat(fisher(distribution)).diag()).abs().div(error).max() < 3


@pytest.mark.parametrize("coordinate", COORDINATES.values(), ids=COORDINATES.keys())
def test_coordinates_go_there_and_back_and_know_their_slope(coordinate: Coordinate) -> None:
    scale = torch.tensor([0.01, 0.7, 3.0], dtype=torch.float64)
    torch.testing.assert_close(coordinate.scale(coordinate.of(scale)), scale)
    log = scale.log().requires_grad_()
    coordinate.of(log.exp()).sum().backward()
    assert log.grad is not None
    torch.testing.assert_close(coordinate.slope(scale), log.grad)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("coordinate", COORDINATES.values(), ids=COORDINATES.keys())
def test_a_coordinate_comes_to_rest_at_the_smallest_scale_and_is_else_left_alone(
    coordinate: Coordinate, dtype: torch.dtype
) -> None:
    inside = coordinate.of(torch.tensor([1e-4, 0.7, 3.0], dtype=dtype))
    assert torch.equal(coordinate.within(inside), inside)
    # No variance is below zero; a logarithm may be as low as it likes.
    low = torch.tensor([-5.0, -20.0] if coordinate is not variance else [-5.0, -1e9], dtype=dtype)
    held = coordinate.within(low)
    assert torch.equal(held, low) is (coordinate is not variance)
    assert torch.equal(coordinate.scale(held), coordinate.scale(low))
    assert bool((coordinate.scale(held + 1e-3) > coordinate.scale(held)).all())
    assert torch.equal(coordinate.within(held), held)


@families
def test_the_natural_step_is_the_best_of_all_steps_so_far_away(groups: tuple[int, ...] | None) -> None:
    distribution, kl = gaussian(groups), 0.05
    slopes = SearchSlopes(normals(1, 1)[0], normals(1, 2, len(distribution.scale))[0])
    step = -torch.cat(natural_within(kl)(slopes, distribution, log_scale))
    information, gradient = torch.cat(fisher(distribution)), torch.cat([slopes.by_mean, slopes.by_log_scale])
    assert math.isclose(float(0.5 * (information * step.square()).sum()), kl, rel_tol=1e-9)
    others = normals(100_000, 3, len(step))
    others *= torch.sqrt(2 * kl / (information * others.square()).sum(1, keepdim=True))
    assert float(gradient @ step) < float((others @ gradient).min())


@families
def test_near_by_the_divergence_is_the_fisher_information_s_whichever_way_it_is_taken(
    groups: tuple[int, ...] | None,
) -> None:
    distribution, length = gaussian(groups), 1e-3
    step = length * torch.cat([normals(1, 1)[0], normals(1, 2, len(distribution.scale))[0]])
    by_mean, by_log = step.split([D, len(distribution.scale)])
    other = SearchDistribution(distribution.mean + by_mean, distribution.scale * by_log.exp(), groups)
    p, q = (torch.distributions.Normal(each.mean, each.scales) for each in (distribution, other))
    forwards, back = (float(torch.distributions.kl_divergence(a, b).sum()) for a, b in ((p, q), (q, p)))
    expected = 0.5 * float((torch.cat(fisher(distribution)) * step.square()).sum())
    for divergence in (forwards, back, (forwards + back) / 2):
        assert math.isclose(divergence, expected, rel_tol=20 * length)
    # Half way between the two, what is odd in the step cancels: the symmetrised one is nearer by an order.
    halfway = SearchDistribution(distribution.mean, distribution.scale * (by_log / 2).exp(), groups)
    expected = 0.5 * float((torch.cat(fisher(halfway)) * step.square()).sum())
    assert math.isclose((forwards + back) / 2, expected, rel_tol=20 * length**2)


@pytest.mark.parametrize("kl", [1e-3, 5.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_where_there_is_no_slope_there_is_no_step(dtype: torch.dtype, kl: float) -> None:
    distribution = SearchDistribution(torch.zeros(3, dtype=dtype), torch.ones(1, dtype=dtype), (3,))
    zero_slopes = SearchSlopes(torch.zeros(3, dtype=dtype), torch.zeros(1, dtype=dtype))
    assert not torch.cat(natural_within(kl)(zero_slopes, distribution, log_scale)).any()


@families
def test_a_natural_step_does_not_depend_on_the_coordinate(groups: tuple[int, ...] | None) -> None:
    distribution = gaussian(groups)
    slopes = SearchSlopes(normals(1, 1)[0], normals(1, 2, len(distribution.scale))[0])
    moved = []
    for coordinate in COORDINATES.values():
        by_mean, by_scale = natural(slopes, distribution, coordinate)
        moved.append(
            (by_mean, coordinate.scale(coordinate.of(distribution.scale) - 1e-6 * by_scale) - distribution.scale)
        )
    mean, scale = moved[0]
    for other_mean, other_scale in moved[1:]:
        torch.testing.assert_close(mean, other_mean)
        torch.testing.assert_close(scale, other_scale, rtol=1e-4, atol=1e-12)


def quadratic() -> tuple[Tensor, Tensor]:
    a = normals(D, 5)
    return a @ a.T / D, normals(1, 6)[0]


def true_slopes(distribution: SearchDistribution) -> Tensor:
    """Of U = E[½ wᵀ A w + bᵀ w + 3]: A mean + b, and Σ A_ii scale² by the log of a scale."""
    a, b = quadratic()
    return torch.cat([a @ distribution.mean + b, distribution.by_group(a.diag() * distribution.scales.square())])


@families
@pytest.mark.parametrize("antithetic", [False, True], ids=["independent", "mirrored"])
@pytest.mark.parametrize("baseline", [False, True], ids=["raw", "against others"])
def test_slopes_of_a_quadratic_are_unbiased(groups: tuple[int, ...] | None, antithetic: bool, baseline: bool) -> None:
    distribution, (a, b) = gaussian(groups), quadratic()
    population = make_population(20, antithetic, (1, "law"))
    estimates = []
    for generation in range(4000):
        w = population.points(distribution, population.noise(generation, slice(0, population.units), distribution.mean))
        values = 0.5 * (w @ a * w).sum(1) + w @ b + 3
        slopes = population.slopes(distribution, generation, population.shape_values(values, shaping.raw, baseline))
        estimates.append(torch.cat([slopes.by_mean, slopes.by_log_scale]))
    rows = torch.stack(estimates)
    off = (rows.mean(0) - true_slopes(distribution)).abs() / (rows.std(0) / len(rows) ** 0.5)
    assert off.max() < 3


def test_slopes_by_the_mean_vary_as_the_corrected_laws_say() -> None:
    """In one dimension and to first order: f²/(Nσ²) + 2 f′²/N of independent draws, 4 f′²/N of mirrored ones."""
    f, slope, scale, count = 2.0, 1.3, 0.5, 10
    distribution = SearchDistribution(torch.zeros(1, dtype=torch.float64), torch.tensor([scale], dtype=torch.float64))
    variances = {}
    for antithetic in (False, True):
        population = make_population(count, antithetic, (2, "law"))
        estimates = []
        for generation in range(12_000):
            w = population.points(
                distribution, population.noise(generation, slice(0, population.units), distribution.mean)
            )[:, 0]
            estimates.append(population.slopes(distribution, generation, f + slope * w).by_mean)
        variances[antithetic] = float(torch.stack(estimates).var())
    assert math.isclose(variances[False], f**2 / (count * scale**2) + 2 * slope**2 / count, rel_tol=0.05)
    assert math.isclose(variances[True], 4 * slope**2 / count, rel_tol=0.05)


def test_mirrored_slopes_have_the_variance_of_their_even_part() -> None:
    """Var = (2/N) Var[g_e]: nothing where the integrand is odd, twice that of independent draws where it is even."""
    distribution = SearchDistribution(torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64))
    single, pairs = make_population(10, False, (3, "law")), make_population(10, True, (3, "law"))

    def variances(f: object) -> list[tuple[float, float]]:
        both = []
        for population in (single, pairs):
            rows = []
            for generation in range(8_000):
                w = population.points(
                    distribution, population.noise(generation, slice(0, population.units), distribution.mean)
                )[:, 0]
                slopes = population.slopes(distribution, generation, f(w))  # type: ignore[operator]
                rows.append(torch.cat([slopes.by_mean, slopes.by_log_scale]))
            both.append(torch.stack(rows).var(0).tolist())
        return list(zip(*both, strict=True))

    even_by_mean, even_by_scale = variances(torch.square)
    assert even_by_mean[1] < 1e-20 < even_by_mean[0]
    assert math.isclose(even_by_scale[1], 2 * even_by_scale[0], rel_tol=0.05)
    odd_by_mean, odd_by_scale = variances(lambda w: w)
    assert odd_by_scale[1] < 1e-20 < odd_by_scale[0]
    assert math.isclose(odd_by_mean[1], 2 * odd_by_mean[0], rel_tol=0.05)


B, IN, OUT = 6, 3, 2


def squares(output: Tensor, y: Tensor) -> Tensor:
    return (output - y).square().sum(-1)


def linear_case(
    per: str, antithetic: bool, bias: bool = True
) -> tuple[PopulationEvaluator, SearchDistribution, EvaluationBatch]:
    torch.manual_seed(0)
    return squared_error_case(
        nn.Linear(IN, OUT, bias=bias).double(), normals(B, 8, IN), normals(B, 9, OUT), per, antithetic
    )


def squared_error_case(
    net: nn.Module, x: Tensor, y: Tensor, per: str, antithetic: bool
) -> tuple[PopulationEvaluator, SearchDistribution, EvaluationBatch]:
    """A net that squares of what it misses are searched for, with scales of its own."""
    layout, start = lay_out(net)
    uses, _ = probe(net, layout, start, {}, x)
    problem = Problem(net, layout, uses, likelihoods.gaussian(1.0), start[None], {}, ((0,),), True)
    groups = scale_groups(per, layout)
    scale = torch.full((layout.size if groups is None else len(groups),), 0.3, dtype=torch.float64)
    if per == "weight":
        scale = torch.linspace(0.1, 0.5, layout.size, dtype=torch.float64)
    evaluator = PopulationEvaluator(problem, make_population(8, antithetic, (4, "law")), Objective(squares), True, True)
    return evaluator, SearchDistribution(start, scale, groups), EvaluationBatch(x, y, {})


ESTIMATORS = {
    "local": (local_noise(), ("weight", "tensor", "layer", "network")),
    "local, raw": (local_noise(baseline=False), ("weight", "network")),
    "weight space": (weight_space(shaping=shaping.raw), ("weight", "tensor", "layer", "network")),
    "weight space, independent": (
        weight_space(antithetic=False, shaping=shaping.raw, baseline=True),
        ("weight", "network"),
    ),
    "low rank": (low_rank(shaping=shaping.raw), ("layer", "network")),
    "low rank 2, independent": (low_rank(2, antithetic=False, shaping=shaping.raw, baseline=True), ("network",)),
}


@pytest.mark.parametrize(
    ("name", "per"), [(name, per) for name, (_, each) in ESTIMATORS.items() for per in each], ids=str
)
def test_every_estimator_finds_the_slopes_of_a_linear_net(name: str, per: str) -> None:
    """U = mean over rows of ‖x W + b − y‖² + (‖x‖² + 1) scale²: its slopes are known."""
    estimator = ESTIMATORS[name][0]
    evaluator, distribution, batch = linear_case(per, estimator.antithetic)
    assert isinstance(batch.x, Tensor)
    mean, log = distribution.mean.clone().requires_grad_(), distribution.scale.log().requires_grad_()
    moved = SearchDistribution(mean, log.exp(), distribution.groups)
    views, spreads = evaluator.problem.layout.views(mean), evaluator.problem.layout.views(moved.scales.square())
    u = squares(batch.x @ views["weight"].T + views["bias"], batch.y).mean()
    u = u + (batch.x.square() @ spreads["weight"].T + spreads["bias"]).sum(-1).mean()
    u.backward()
    assert mean.grad is not None
    assert log.grad is not None
    gradient_estimator = estimator.start(evaluator)
    estimates = []
    for generation in range(800):
        slopes, _, _ = gradient_estimator.estimate(distribution, generation, batch)
        estimates.append(torch.cat([slopes.by_mean, slopes.by_log_scale]))
    table = torch.stack(estimates)
    off = (table.mean(0) - torch.cat([mean.grad, log.grad])).abs() / (table.std(0) / len(table) ** 0.5)
    assert off[: len(distribution.mean) if estimator.name == "low_rank" else None].max() < 3


def own_rows_case(rows: int) -> tuple[PopulationEvaluator, SearchDistribution, EvaluationBatch]:
    """Eight perturbations in pairs with so many rows in all."""
    torch.manual_seed(0)
    net = nn.Linear(IN, OUT).double()
    return squared_error_case(net, normals(rows, 8, IN), normals(rows, 9, OUT), "tensor", True)


def test_slopes_are_unbiased_where_each_perturbation_has_rows_of_its_own() -> None:
    """U is the mean over all rows, whoever of the perturbations sees them."""
    evaluator, distribution, batch = own_rows_case(16)
    assert isinstance(batch.x, Tensor)
    mean, log = distribution.mean.clone().requires_grad_(), distribution.scale.log().requires_grad_()
    views = evaluator.problem.layout.views(mean)
    spreads = evaluator.problem.layout.views(SearchDistribution(mean, log.exp(), distribution.groups).scales.square())
    u = squares(batch.x @ views["weight"].T + views["bias"], batch.y).mean()
    (u + (batch.x.square() @ spreads["weight"].T + spreads["bias"]).sum(-1).mean()).backward()
    assert mean.grad is not None
    assert log.grad is not None
    estimator = weight_space(shaping=shaping.raw, own_rows=True).start(evaluator)
    estimates = [estimator.estimate(distribution, generation, batch)[0] for generation in range(1500)]
    table = torch.stack([torch.cat([s.by_mean, s.by_log_scale]) for s in estimates])
    off = (table.mean(0) - torch.cat([mean.grad, log.grad])).abs() / (table.std(0) / len(table) ** 0.5)
    assert off.max() < 3


@pytest.mark.parametrize("measure", [None, squares, lambda output, y: squares(output, y).max()])
def test_own_rows_that_are_the_same_for_all_are_no_own_rows(measure: Any) -> None:
    evaluator, distribution, batch = own_rows_case(3)
    assert isinstance(batch.x, Tensor)
    by_row = measure in (None, squares)
    evaluator = replace(evaluator, objective=Objective(measure), by_row=by_row)
    repeated = EvaluationBatch(batch.x.repeat(8, 1), batch.y.repeat(8, 1), {})
    for vectorized in (True, False):
        one, own = (
            weight_space(own_rows=own_rows)
            .start(replace(evaluator, vectorized=vectorized))
            .estimate(distribution, 5, rows)
            for own_rows, rows in ((False, batch), (True, repeated))
        )
        torch.testing.assert_close(own[1:], one[1:])
        torch.testing.assert_close(own[0].by_mean, one[0].by_mean)


def test_rows_that_cannot_be_divided_are_refused() -> None:
    evaluator, distribution, batch = own_rows_case(12)
    with pytest.raises(BadInput, match="8 perturbations is to have rows of its own, and a batch of 12 rows"):
        weight_space(own_rows=True).start(evaluator).estimate(distribution, 0, batch)


@pytest.mark.parametrize("estimator", [local_noise(), weight_space(shaping=shaping.raw)], ids=["local", "weight space"])
def test_slopes_stay_unbiased_where_each_weight_has_a_factor_of_its_own(estimator: Any) -> None:
    evaluator, distribution, batch = linear_case("network", estimator.antithetic)
    assert isinstance(batch.x, Tensor)
    distribution = SearchDistribution(
        distribution.mean,
        distribution.scale,
        distribution.groups,
        torch.linspace(0.3, 2.0, len(distribution.mean), dtype=torch.float64),
    )
    views = evaluator.problem.layout.views(distribution.mean)
    spreads = evaluator.problem.layout.views(distribution.scales.square())
    by_log = 2 * (batch.x.square() @ spreads["weight"].T + spreads["bias"]).sum(-1).mean()
    mean = distribution.mean.clone().requires_grad_()
    views = evaluator.problem.layout.views(mean)
    squares(batch.x @ views["weight"].T + views["bias"], batch.y).mean().backward()
    assert mean.grad is not None
    gradient_estimator = estimator.start(evaluator)
    estimates = [gradient_estimator.estimate(distribution, generation, batch)[0] for generation in range(800)]
    table = torch.stack([torch.cat([s.by_mean, s.by_log_scale]) for s in estimates])
    off = (table.mean(0) - torch.cat([mean.grad, by_log[None]])).abs() / (table.std(0) / len(table) ** 0.5)
    assert off.max() < 3


def rectified(m: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The mean of max(z, 0) and of its square, for z normal with mean m and variance v."""
    s = v.sqrt()
    below = torch.special.ndtr(m / s)
    density = torch.exp(-m.square() / (2 * v)) / math.sqrt(2 * math.pi)
    return m * below + s * density, (m.square() + v) * below + m * s * density


def u_of_two_layers(x: Tensor, y: Tensor, mean: NamedTensors, squared: NamedTensors) -> Tensor:
    """Hidden units have weights of their own and are independent: two moments of each are all that squares need."""
    first, second = rectified(
        x @ mean["0.weight"].T + mean["0.bias"], x.square() @ squared["0.weight"].T + squared["0.bias"]
    )
    middle = first @ mean["2.weight"].T + mean["2.bias"]
    spread = (second - first.square()) @ mean["2.weight"].square().T
    spread = spread + second @ squared["2.weight"].T + squared["2.bias"]
    return ((middle - y).square() + spread).sum(-1).mean()


def u_of_a_convolution(x: Tensor, y: Tensor, mean: NamedTensors, squared: NamedTensors) -> Tensor:
    middle = nn.functional.conv2d(x, mean["0.weight"], mean["0.bias"], padding=1)
    spread = nn.functional.conv2d(x.square(), squared["0.weight"], squared["0.bias"], padding=1)
    return (squares(middle.flatten(1), y) + spread.flatten(1).sum(1)).mean()


DEEPER = {
    "two layers": (
        lambda: nn.Sequential(nn.Linear(IN, 4), nn.ReLU(), nn.Linear(4, OUT)),
        (IN,),
        OUT,
        u_of_two_layers,
    ),
    "convolution": (
        lambda: nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.Flatten()),
        (1, 3, 3),
        18,
        u_of_a_convolution,
    ),
}


@pytest.mark.parametrize("per", ["weight", "layer", "network"])
@pytest.mark.parametrize("kind", DEEPER)
def test_local_slopes_are_unbiased_through_layers_and_convolutions(kind: str, per: str) -> None:
    make, inputs, outputs, u = DEEPER[kind]
    torch.manual_seed(0)
    evaluator, distribution, batch = squared_error_case(
        make().double(), normals(B, 8, math.prod(inputs)).view(B, *inputs), normals(B, 9, outputs), per, False
    )
    assert isinstance(batch.x, Tensor)
    mean, log = distribution.mean.clone().requires_grad_(), distribution.scale.log().requires_grad_()
    views = evaluator.problem.layout.views
    u(
        batch.x, batch.y, views(mean), views(SearchDistribution(mean, log.exp(), distribution.groups).scales.square())
    ).backward()
    assert mean.grad is not None
    assert log.grad is not None
    gradient_estimator = local_noise().start(evaluator)
    assert {*gradient_estimator.noise.values()} == {"local search"}
    estimates = [gradient_estimator.estimate(distribution, generation, batch)[0] for generation in range(1500)]
    table = torch.stack([torch.cat([s.by_mean, s.by_log_scale]) for s in estimates])
    off = (table.mean(0) - torch.cat([mean.grad, log.grad])).abs() / (table.std(0) / len(table) ** 0.5)
    assert off.max() < 3


def test_local_perturbations_are_less_uncertain_at_the_same_price() -> None:
    spread = {}
    for estimator in (local_noise(), weight_space(shaping=shaping.raw)):
        evaluator, distribution, batch = linear_case("network", estimator.antithetic)
        gradient_estimator = estimator.start(evaluator)
        estimates = torch.stack(
            [gradient_estimator.estimate(distribution, generation, batch)[0].by_mean for generation in range(500)]
        )
        spread[estimator.name] = float(estimates.var(0).sum())
    assert spread["local"] < spread["weight_space"]


@pytest.mark.parametrize("shaped", SHAPINGS.values(), ids=SHAPINGS.keys())
def test_shaping_keeps_the_order_and_the_shape(shaped: object) -> None:
    values = torch.tensor([3.0, -1.0, 2.5, 10.0, 0.0, -1.0])
    weights = shaped(values)  # type: ignore[operator]
    assert weights.shape == values.shape
    assert bool((weights[values.argsort()].diff() >= -1e-6).all())
    assert weights[1] == weights[5]
    both = shaped(torch.stack([values, -values], 1))  # type: ignore[operator]
    torch.testing.assert_close(both[:, 0], weights)
    torch.testing.assert_close(both[:, 1], shaped(-values))  # type: ignore[operator]
    if shaped is not shaping.raw:
        assert abs(float(weights.sum())) < 1e-5


def test_a_baseline_is_the_mean_of_all_others_and_a_mirror_image_is_no_other() -> None:
    values = torch.tensor([1.0, 2.0, 4.0, 9.0])
    torch.testing.assert_close(shaping.subtract_mean_of_others(values)[0], torch.tensor(1.0 - 15 / 3))
    torch.testing.assert_close(shaping.subtract_mean_of_others(values, 2)[1], torch.tensor(2.0 - 13 / 2))


@pytest.mark.parametrize("shaped", [shaping.centred_ranks, shaping.utilities])
def test_ranks_do_not_care_how_values_are_measured(shaped: object) -> None:
    values = normals(1, 4, 12)[0]
    torch.testing.assert_close(shaped(values), shaped(values.exp() * 7))  # type: ignore[operator]


def test_utilities_are_those_of_natural_evolution_strategies() -> None:
    count = 6
    top = [max(0.0, math.log(count / 2 + 1) - math.log(k)) for k in range(1, count + 1)]
    expected = torch.tensor([1 - count * u / sum(top) for u in top])
    torch.testing.assert_close(shaping.utilities(torch.arange(6.0)), expected)


@pytest.mark.parametrize("shaped", SHAPINGS.values(), ids=SHAPINGS.keys())
def test_only_utilities_tell_the_best_apart_from_the_worst(shaped: Shaping) -> None:
    values = normals(9)[:, 0]
    turned = {shaping.utilities: shaping.utilities_of_worst, shaping.utilities_of_worst: shaping.utilities}
    torch.testing.assert_close(-shaped(-values), turned.get(shaped, shaped)(values))
    worst_half = shaping.utilities_of_worst(values)[values.argsort(descending=True)[:4]]
    assert bool((worst_half.diff() < 0).all())
    assert len(shaping.utilities_of_worst(values)[values.argsort()[:4]].unique()) == 1


@pytest.mark.parametrize("shaped", SHAPINGS.values(), ids=SHAPINGS.keys())
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_as_bad_as_the_worst(shaped: object, bad: float) -> None:
    weights = shaped(torch.tensor([1.0, bad, 4.0, 2.0]))  # type: ignore[operator]
    torch.testing.assert_close(weights, shaped(torch.tensor([1.0, 4.0, 4.0, 2.0])))  # type: ignore[operator]


def test_plain_gradients_are_the_document_s_search_gradients() -> None:
    """By σ²: (1/2Nσ²) Σ f (ε² − 1), in its corrected form."""
    distribution = SearchDistribution(torch.zeros(1, dtype=torch.float64), torch.tensor([0.7], dtype=torch.float64))
    population = make_population(50, False, (5, "law"))
    epsilon = population.noise(0, slice(0, 50), distribution.mean)
    f = population.points(distribution, epsilon)[:, 0].exp()
    by_mean, by_variance = plain(population.slopes(distribution, 0, f), distribution, COORDINATES["variance"])
    torch.testing.assert_close(by_mean[0], (f * epsilon[:, 0]).mean() / 0.7)
    torch.testing.assert_close(by_variance[0], (f * (epsilon[:, 0].square() - 1)).mean() / (2 * 0.49))
