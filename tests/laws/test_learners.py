"""Laws of the learners' room: exact answers where there are any, the same bits for the same seed, nothing touched."""

from __future__ import annotations

import functools
import os
import signal
from itertools import cycle

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import doxa
from doxa import kl_weights, learners, likelihoods, noise, optimisers, posteriors, priors, rates
from doxa.contracts import Moment, Schedule
from doxa.engine.contracts import DeclaresBest
from doxa.engine.feed import InMemoryFeed
from doxa.engine.members import Members
from doxa.errors import Interrupted
from doxa.random.keys import seed_of
from doxa.random.philox import Stream
from doxa.training.members import Member
from doxa.training.problem import build_problem
from examples import LEARNER_EXAMPLES, MAKERS
from zoo import CASES

ROWS, SIZE, NOISE, PRIOR = 96, 4, 0.5, 0.7


@functools.cache
def regression() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A linear model with a bias; inputs, targets, and the exact posterior's mean and precision Λ."""
    source = torch.Generator().manual_seed(0)
    mix = torch.eye(SIZE) + 0.15 * torch.randn(SIZE, SIZE, generator=source)
    x = torch.randn(ROWS, SIZE, generator=source) @ mix * 0.6
    design = torch.cat([x, torch.ones(ROWS, 1)], 1).double()
    y = (
        design @ torch.tensor([0.5, -1.0, 0.3, 0.8, 0.2]).double()
        + NOISE * torch.randn(ROWS, generator=source).double()
    )
    precision = design.T @ design / NOISE**2 + torch.eye(SIZE + 1).double() / PRIOR**2
    mean = torch.linalg.solve(precision, design.T @ y / NOISE**2)
    return x, y.float()[:, None], mean.float(), precision.float()


def linear() -> nn.Module:
    torch.manual_seed(3)
    return nn.Linear(SIZE, 1)


def fit(learner, epochs: int, lr: float | Schedule, batch_size: int = ROWS, **more) -> doxa.Belief:
    x, y, _, _ = regression()
    return doxa.fit(
        linear(),
        (x, y),
        learner=learner,
        likelihood=likelihoods.gaussian(NOISE),
        epochs=epochs,
        batch_size=batch_size,
        lr=lr if callable(lr) else rates.cosine(lr),
        **more,
    )


SHARP = 0.1  # a prior that moves the mean by six deviations: who forgets it, or counts it twice, is far off


@functools.cache
def exact_means() -> tuple[dict[str, Tensor], Tensor]:
    """The answers that examples of learners name, under a sharp prior, and its posterior's standard deviations."""
    _, _, mean, precision = regression()
    data_precision = precision - torch.eye(SIZE + 1) / PRIOR**2
    posterior_precision = data_precision + torch.eye(SIZE + 1) / SHARP**2
    precisions = {"map": posterior_precision, "least squares": data_precision}
    return (
        {name: torch.linalg.solve(matrix, precision @ mean) for name, matrix in precisions.items()},
        torch.linalg.inv(posterior_precision).diagonal().sqrt(),
    )


@pytest.mark.parametrize("name", [name for name, example in LEARNER_EXAMPLES.items() if example.exact is not None])
def test_an_example_reaches_the_exact_answer_that_it_names(name: str) -> None:
    """Every learner of the room, in the regression whose posterior is known: its mean is in the right place."""
    example = LEARNER_EXAMPLES[name]
    learner = example.make(priors.gaussian(SHARP))
    stepper = None if learner.optimiser([learner]) is not None else optimisers.sgd()
    means, deviation = exact_means()
    error = (fit(learner, epochs=300, lr=0.3, optimiser=stepper).posterior.mean - means[example.exact]) / deviation
    assert float(error.abs().max()) < example.tolerance


def test_an_example_without_an_exact_answer_says_why() -> None:
    assert all((example.exact is None) == bool(example.reason) for example in LEARNER_EXAMPLES.values())
    means, deviation = exact_means()
    apart = ((means["map"] - means["least squares"]) / deviation).abs().max()
    assert all(example.tolerance < apart / 10 for example in LEARNER_EXAMPLES.values()), "too loose to tell them apart"


def settling(moment: Moment) -> float:
    """Robbins & Monro (1951): steps of order N/t forget the start and average the noise away."""
    return 3 * ROWS / (moment.step + 900)


# The rows' own noise averages out by itself. Where rows share it, many draws must; they go side by side, as on a GPU,
# to the numbers that they come to in turns (tests/laws/test_fleet_feeds.py).
DRAWS = {"shared": 64, "local": 2, "flipout": 64}


@pytest.mark.parametrize("kind", noise.TABLE)
def test_variational_recovers_the_exact_posterior(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Means within 0.02 posterior standard deviations, scales within 2 % of the mean-field optimum 1/√Λᵢᵢ."""
    if DRAWS[kind] > 2:
        monkeypatch.setattr("doxa.gradients.variational.vectorizes_draws", lambda problem: True)
    learner = learners.variational(
        priors.gaussian(PRIOR),
        noise.TABLE[kind],
        samples=DRAWS[kind],
        antithetic=True,
        posterior=posteriors.mean_field(scale=0.06),
    )
    q = fit(learner, epochs=1800, lr=settling, optimiser=torch.optim.SGD).posterior
    _, _, mean, precision = regression()
    deviation = torch.linalg.inv(precision).diagonal().sqrt()
    assert float(((q.mean - mean) / deviation).abs().max()) < 0.02
    optimum = precision.diagonal().rsqrt()
    assert float((q.scale / optimum - 1).abs().max()) < 0.02


def test_variational_with_minibatches_keeps_the_weight_of_the_data() -> None:
    """The KL is weighed by the size of the data, not of the batch: small batches reach the same posterior."""
    learner = learners.variational(
        priors.gaussian(PRIOR), noise.local, samples=4, antithetic=True, posterior=posteriors.mean_field(scale=0.1)
    )
    q = fit(learner, epochs=300, lr=0.02, batch_size=24).posterior
    _, _, mean, precision = regression()
    deviation = torch.linalg.inv(precision).diagonal().sqrt()
    assert float(((q.mean - mean) / deviation).abs().max()) < 0.1
    assert float((q.scale * precision.diagonal().sqrt() - 1).abs().max()) < 0.05


def test_the_temperature_scales_the_posterior() -> None:
    """KL weight T gives the posterior of the likelihood raised to 1/T: precision XᵀX/(Tσ²) + 1/s²."""
    _, _, _, precision = regression()
    cold = (precision - torch.eye(SIZE + 1) / PRIOR**2) / 0.1 + torch.eye(SIZE + 1) / PRIOR**2
    learner = learners.variational(
        priors.gaussian(PRIOR),
        noise.local,
        samples=4,
        antithetic=True,
        posterior=posteriors.mean_field(scale=0.1),
        kl_weight=kl_weights.tempered(0.1),
    )
    q = fit(learner, epochs=800, lr=0.03).posterior
    assert float((q.scale * cold.diagonal().sqrt() - 1).abs().max()) < 0.05


@pytest.mark.parametrize("prior", [priors.scale_mixture(0.5, PRIOR, PRIOR * 0.999), priors.student_t(1e6, PRIOR)])
def test_monte_carlo_priors_reach_the_same_posterior(prior) -> None:
    """A mixture of two equal Gaussians, or a Student-t of many degrees, is the Gaussian: the same answer must come."""
    learner = learners.variational(
        prior, noise.local, samples=4, antithetic=True, posterior=posteriors.mean_field(scale=0.06)
    )
    q = fit(learner, epochs=1200, lr=0.02).posterior
    _, _, mean, precision = regression()
    deviation = torch.linalg.inv(precision).diagonal().sqrt()
    assert float(((q.mean - mean) / deviation).abs().max()) < 0.05
    assert float((q.scale * precision.diagonal().sqrt() - 1).abs().max()) < 0.04


def test_maximum_likelihood_is_least_squares() -> None:
    x, y, _, _ = regression()
    design = torch.cat([x, torch.ones(ROWS, 1)], 1)
    expected = torch.linalg.lstsq(design, y).solution[:, 0]
    learned_mean = fit(learners.point(), epochs=600, lr=0.05).posterior.mean
    torch.testing.assert_close(learned_mean, expected, rtol=1e-3, atol=1e-3)


def test_map_under_a_gaussian_prior_is_the_exact_mean() -> None:
    learned_mean = fit(learners.point(priors.gaussian(PRIOR)), epochs=600, lr=0.05).posterior.mean
    torch.testing.assert_close(learned_mean, regression()[2], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", priors.TABLE)
def test_map_ends_where_the_gradients_balance(name: str) -> None:
    """At the optimum, Σᵢ ∇ log p(yᵢ | xᵢ, w) + ∇ log p(w) = 0, or 0 is between the sums at both sides of a corner."""
    prior = {"laplace": priors.laplace(0.2), "scale_mixture": priors.scale_mixture(0.5, 1.0, 0.1)}.get(
        name, priors.TABLE[name]()
    )
    w = fit(learners.point(prior), epochs=1000, lr=0.05).posterior.mean
    x, y, _, _ = regression()
    design = torch.cat([x, torch.ones(ROWS, 1)], 1)
    likelihood_gradient = design.T @ (y[:, 0] - design @ w) / NOISE**2
    residual_gradient = likelihood_gradient + prior.grad_log_prob(w)
    below, above = prior.grad_log_prob(torch.tensor([-1e-6, 1e-6]))
    balanced = (likelihood_gradient + below > -0.5) & (likelihood_gradient + above < 0.5)
    corner = (below - above > 1) & (w.abs() < 1e-2) & balanced
    assert float(residual_gradient[~corner].abs().max()) < 0.05


def test_dropout_of_inputs_is_ridge_regression() -> None:
    """min E‖y − X(m∘z)/(1−p)‖² = ‖y − Xm‖² + p/(1−p) Σⱼ m_j² ‖xⱼ‖² (Srivastava et al., 2014, section 9.1)."""
    rate = 0.3
    x, y, _, _ = regression()
    design = torch.cat([x, torch.ones(ROWS, 1)], 1).double()
    penalty = torch.diag(torch.cat([x.double().square().sum(0) * rate / (1 - rate), torch.zeros(1).double()]))
    expected = torch.linalg.solve(design.T @ design + penalty, design.T @ y.double()[:, 0]).float()
    learned_mean = fit(learners.dropout(rate=0.3, input_rate=rate), epochs=2000, lr=0.02).posterior.mean
    torch.testing.assert_close(learned_mean, expected, rtol=0, atol=0.02)


def test_an_ensemble_of_learners_recovers_the_posterior_in_every_member() -> None:
    posterior = fit(learners.ensemble(learners.point(priors.gaussian(PRIOR)), 3), epochs=600, lr=0.05).posterior
    assert isinstance(posterior, posteriors.particles)
    for w in posterior.weights:
        torch.testing.assert_close(w, regression()[2], rtol=1e-3, atol=1e-3)


# Every example of the room, with every kind of prior in turn, and ensembles of what has a state of its own.
LEARNERS = {
    **{
        name: make(prior)
        for (name, make), prior in zip(MAKERS.items(), cycle(p[0] for p in priors.EXAMPLES.values()), strict=False)
    },
    "variational-annealed": learners.variational(
        priors.scale_mixture(),
        noise.local,
        samples=2,
        antithetic=True,
        kl_weight=kl_weights.annealed(2, of=kl_weights.geometric()),
    ),
    "ema-dropout": learners.ema(learners.dropout(0.3), decay=0.9),
    "ensemble-langevin": learners.ensemble(learners.langevin(priors.gaussian(1.0), burn_in=0.0), 2),
    "ensemble-variational": learners.ensemble(learners.variational(priors.gaussian(1.0), noise.local), 2),
}
OPTIMISERS = {
    "adam": None,
    "sgd": functools.partial(torch.optim.SGD, momentum=0.9),
    "adamw": torch.optim.AdamW,
}


def test_every_learner_of_the_table_is_here() -> None:
    assert {type(v) for v in LEARNERS.values()} == set(learners.TABLE.values())
    assert set(learners.EXAMPLES) == set(learners.TABLE)


def small(learner, folder=None, net: nn.Module | None = None, **more) -> doxa.Belief:
    case = CASES["batch_norm"]
    net = case.net() if net is None else net
    x, y = case.data(50)
    return doxa.fit(
        net,
        more.pop("data", (x, y)),
        learner=learner,
        likelihood=likelihoods.categorical(),
        epochs=4,
        batch_size=16,
        lr=rates.cosine(1e-2),
        validation=(x[:20], y[:20]),
        checkpoint=folder,
        **more,
    )


@pytest.mark.parametrize("name", LEARNERS)
def test_same_seed_same_bits_and_nothing_touched(name: str, tmp_path) -> None:
    net = CASES["batch_norm"].net()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    net.eval()
    torch.manual_seed(123)
    expected = torch.randn(3)
    torch.manual_seed(123)
    small(LEARNERS[name], net=net).save(tmp_path / "a.doxa")
    assert torch.equal(torch.randn(3), expected)
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())
    assert not any(m.training for m in net.modules())
    assert all(p.grad is None for p in net.parameters())
    small(LEARNERS[name]).save(tmp_path / "b.doxa")
    assert (tmp_path / "a.doxa").read_bytes() == (tmp_path / "b.doxa").read_bytes()
    small(LEARNERS[name], seed=1).save(tmp_path / "c.doxa")
    assert (tmp_path / "a.doxa").read_bytes() != (tmp_path / "c.doxa").read_bytes()


class Halting(nn.Module):
    """The same net, which sends this process a Ctrl-C in its n-th training pass."""

    def __init__(self, net: nn.Module, forward_pass: int) -> None:
        super().__init__()
        self.net, self.left = net, forward_pass

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGINT)
        return self.net(x)


def wrapped(forward_pass: int = -1) -> nn.Module:
    return Halting(CASES["batch_norm"].net(), forward_pass)


def has_best(learner) -> bool:
    """Whether patience can go back to a best epoch; a chain has none."""
    collector = learner.collector([learner])
    return collector.has_best if isinstance(collector, DeclaresBest) else True


RESUMED = [(name, "adam") for name in LEARNERS]
RESUMED += [
    (name, other) for name in ("point-map", "variational-local", "ensemble-point") for other in ("sgd", "adamw")
]


@pytest.mark.parametrize(("name", "optimiser"), RESUMED)
def test_resumed_equals_uninterrupted_byte_for_byte(name: str, optimiser: str, tmp_path) -> None:
    """Stopped in the middle of an epoch, at an epoch's end and again later, the final file is the same."""
    more = {"optimiser": OPTIMISERS[optimiser], "patience": 3 if has_best(LEARNERS[name]) else None}
    small(LEARNERS[name], tmp_path / "whole", net=wrapped(), **more)
    passes = getattr(LEARNERS[name], "members", 1) * getattr(LEARNERS[name], "samples", 1)
    # Two probing passes come first (four with validation), then `passes` a step, four steps an epoch.
    for stop in (4 + 2 * passes, 4 + 4 * passes, 4 + 5 * passes + 1):
        with pytest.raises(Interrupted, match="resume=True"):
            small(LEARNERS[name], tmp_path / "cut", net=wrapped(stop), resume=True, **more)
    small(LEARNERS[name], tmp_path / "cut", net=wrapped(), resume=True, **more)
    assert (tmp_path / "whole/belief.doxa").read_bytes() == (tmp_path / "cut/belief.doxa").read_bytes()
    assert (tmp_path / "whole/checkpoint.doxa").read_bytes() == (tmp_path / "cut/checkpoint.doxa").read_bytes()


@pytest.mark.parametrize("workers", [0, 2])
def test_resumed_equals_uninterrupted_with_a_loader(workers: int, tmp_path) -> None:
    def loader() -> DataLoader:
        x, y = CASES["batch_norm"].data(50)
        generator = torch.Generator().manual_seed(7)
        return DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True, num_workers=workers, generator=generator)

    learner = LEARNERS["variational-local"]
    small(learner, tmp_path / "whole", net=wrapped(), data=loader())
    with pytest.raises(Interrupted):
        small(learner, tmp_path / "cut", net=wrapped(4 + 6), data=loader())
    small(learner, tmp_path / "cut", net=wrapped(), data=loader(), resume=True)
    assert (tmp_path / "whole/belief.doxa").read_bytes() == (tmp_path / "cut/belief.doxa").read_bytes()


def test_every_epoch_checkpoint_resumes_to_the_same_bytes(tmp_path) -> None:
    """Each of a run's checkpoints, kept aside as it was written, leads to the same end."""
    learner = LEARNERS["variational-flipout"]
    small(learner, tmp_path / "whole", net=wrapped())
    whole = (tmp_path / "whole/belief.doxa").read_bytes()
    for stop in range(1, 16):
        folder = tmp_path / f"cut{stop}"
        with pytest.raises(Interrupted):
            small(learner, folder, net=wrapped(4 + stop))
        small(learner, folder, net=wrapped(), resume=True)
        assert (folder / "belief.doxa").read_bytes() == whole


@pytest.mark.parametrize("name", ["point", "shared", "per layer", "dropout", "ensemble"])
def test_a_draw_of_a_training_is_one_of_its_posterior(name: str) -> None:
    """All nets at once, from device counters: what each net's own posterior draws from the same stream."""
    learner = {
        "point": learners.point(),
        "shared": learners.variational(priors.gaussian(1.0)),
        "per layer": learners.variational(priors.gaussian(1.0), posterior=posteriors.mean_field("layer")),
        "dropout": learners.dropout(0.4, 0.2),
        "ensemble": learners.ensemble(learners.variational(priors.gaussian(1.0)), 2),
    }[name]
    source = InMemoryFeed(torch.randn(6, SIZE), torch.randn(6, 1), 3)
    members = [Member(nn.Sequential(nn.Linear(SIZE, 5), nn.ReLU(), nn.Linear(5, 1)), learner, seed) for seed in (1, 2)]
    problem = build_problem(members, source, likelihoods.gaussian(1.0), None, torch.device("cpu"), None)
    beliefs, members = learner.start(problem, [learner, learner]).beliefs(), Members(2, learner.nets)
    keys = [("draw", k) for k in range(len(beliefs.mean))]
    drawn_weights = beliefs.draw(Stream(torch.tensor([seed_of((*key, 0)) for key in keys])))
    member_posteriors = [members.posterior(beliefs, m) for m in range(2)]
    net_posteriors = [part for posterior in member_posteriors for part in getattr(posterior, "members", (posterior,))]
    for row, posterior, key in zip(drawn_weights, net_posteriors, keys, strict=True):
        (expected_draw,) = posterior.draws(1, key)
        torch.testing.assert_close(row, expected_draw.weights, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(beliefs.mean, torch.stack([p.mean for p in net_posteriors]))
    assert name == "point" or not torch.equal(drawn_weights, beliefs.mean)
