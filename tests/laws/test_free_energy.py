"""Laws of the free energy: the evidence where it is known, what lies above it, and rows whatever they came as."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import doxa
from doxa import Belief, likelihoods, posteriors, priors
from doxa.contracts import Draw, Posterior, Prior
from doxa.errors import BadInput
from doxa.posteriors import MeanField
from doxa.posteriors.mean_field import inverse_softplus
from doxa.random.keys import Key
from doxa.weights.layout import lay_out

ROWS, SIZE, NOISE, PRIOR = 60, 3, 0.5, 0.7


def design(orthogonal: bool) -> Tensor:
    """Inputs [N, 3]; orthogonal ones have an exact posterior of independent weights."""
    x = torch.randn(ROWS, SIZE, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x[:, 1] += x[:, 0]
    return torch.linalg.qr(x)[0] * 8 if orthogonal else x


def targets(x: Tensor) -> Tensor:
    noise = torch.randn(len(x), 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return x @ torch.tensor([[0.6], [-0.4], [0.2]], dtype=torch.float64) + NOISE * noise


def exact(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, float]:
    """The posterior's mean and precision, and −log P(D) of the Gaussian that the targets are drawn from together."""
    identity = torch.eye(SIZE, dtype=torch.float64)
    precision = x.T @ x / NOISE**2 + identity / PRIOR**2
    mean = torch.linalg.solve(precision, x.T @ y[:, 0] / NOISE**2)
    covariance = NOISE**2 * torch.eye(len(x), dtype=torch.float64) + PRIOR**2 * x @ x.T
    evidence = torch.distributions.MultivariateNormal(torch.zeros(len(x), dtype=torch.float64), covariance)
    return mean, precision, -float(evidence.log_prob(y[:, 0]))


def linear_belief(q: Posterior, prior: Prior | None = None) -> Belief:
    net = nn.Linear(SIZE, 1, bias=False).double()
    layout, _ = lay_out(net)
    own_prior = priors.gaussian(PRIOR) if prior is None else prior
    return Belief(net, likelihoods.gaussian(NOISE), q, layout, ({},) * q.components, prior=own_prior)


def gaussian(mean: Tensor, scale: Tensor) -> MeanField:
    return MeanField(mean, inverse_softplus(scale))


def away() -> MeanField:
    """A belief that is far from any posterior of these tests."""
    return gaussian(torch.tensor([0.5, -0.1, 0.3]).double(), torch.tensor([0.1, 0.3, 0.2]).double())


def test_at_the_exact_posterior_it_is_the_evidence() -> None:
    x = design(orthogonal=True)
    y = targets(x)
    mean, precision, evidence = exact(x, y)
    b = linear_belief(gaussian(mean, precision.diagonal().rsqrt()))
    f = doxa.free_energy(b, (x, y), samples=4000)
    assert 0 < f.error < 0.03
    assert abs(f.value - evidence) < 4 * f.error
    assert doxa.elbo(b, (x, y), samples=4000) == doxa.Estimate(-f.value, f.error)
    assert f.elbo.value + f.value == 0


@pytest.mark.parametrize("seed", range(3))
def test_elsewhere_it_lies_above_by_the_divergence_from_the_exact_posterior(seed: int) -> None:
    """Also where no mean field is exact: KL(q‖p(w | D)) = F(q) + log P(D)."""
    x = design(orthogonal=False)
    y = targets(x)
    mean, precision, evidence = exact(x, y)
    q = away()
    posterior = torch.distributions.MultivariateNormal(mean, precision_matrix=precision)
    own = torch.distributions.MultivariateNormal(q.mean, torch.diag(q.scale.square()))
    divergence = float(torch.distributions.kl_divergence(own, posterior))
    f = doxa.free_energy(linear_belief(q), (x, y), samples=4000, seed=seed)
    assert divergence > 40 * f.error > 0
    assert abs(f.value - evidence - divergence) < 4 * f.error
    assert f.elbo.value < -evidence


def test_the_error_is_that_of_repetition_and_shrinks_with_the_draws() -> None:
    x = design(orthogonal=False)
    data, b = (x, targets(x)), linear_belief(away())
    few = [doxa.free_energy(b, data, samples=40, seed=seed) for seed in range(60)]
    values = torch.tensor([f.value for f in few])
    assert float(values.std()) == pytest.approx(sum(f.error for f in few) / len(few), rel=0.3)
    many = doxa.free_energy(b, data, samples=4000)
    assert many.error == pytest.approx(sum(f.error for f in few) / len(few) / 10, rel=0.2)
    with pytest.raises(BadInput, match="at least 2"):
        doxa.free_energy(b, data, samples=1)


@pytest.mark.parametrize("nested", [False, True])
def test_the_error_of_a_mixture_is_that_of_repetition_too(nested: bool) -> None:
    """Members lie far apart, which is no error: each has the same number of draws."""
    x = design(orthogonal=False)
    one = away()
    far = replace(one, mean=-2 * one.mean)
    inner = posteriors.mixture((far, replace(far, mean=3 * one.mean))) if nested else far
    b = linear_belief(posteriors.mixture((one, inner)))
    all_of_it = [doxa.free_energy(b, (x, targets(x)), samples=40, seed=seed) for seed in range(60)]
    for part in ("nll", "kl"):
        values = torch.tensor([getattr(f, part).value for f in all_of_it])
        told = sum(getattr(f, part).error for f in all_of_it) / len(all_of_it)
        assert float(values.std()) == pytest.approx(told, rel=0.3)
    few = doxa.free_energy(b, (x, targets(x)), samples=2)  # one draw of a member cannot tell its spread
    assert few.nll.error > all_of_it[0].nll.error


def test_rows_count_each_however_they_are_handed_over() -> None:
    x = design(orthogonal=False)
    y, b = targets(x), linear_belief(away())
    f = doxa.free_energy(b, (x, y))
    assert f.rows == ROWS
    assert doxa.free_energy(b, (x.numpy(), y.tolist())) == f
    before = torch.random.get_rng_state()
    for batch_size in (7, 60):
        loader = DataLoader(TensorDataset(x, y), batch_size=batch_size, shuffle=True)
        again = doxa.free_energy(b, loader)
        assert again.rows == ROWS
        assert (again.nll.value, again.nll.error) == pytest.approx((f.nll.value, f.nll.error), rel=1e-9)
        assert again.kl == f.kl
    assert torch.equal(torch.random.get_rng_state(), before)
    twice = doxa.free_energy(b, (torch.cat([x, x]), torch.cat([y, y])))
    assert twice.nll.value == pytest.approx(2 * f.nll.value, rel=1e-9)
    assert twice.kl == f.kl
    many = doxa.free_energy(b, (x.repeat(90, 1), y.repeat(90, 1)), samples=8)  # more than are swept at a time
    assert many.nll.value == pytest.approx(90 * doxa.free_energy(b, (x, y), samples=8).nll.value, rel=1e-9)


class Sum(nn.Module):
    """Of two inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(SIZE, 1, bias=False).double()

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return self.map(a + b)


def test_nets_of_several_inputs_have_one_too() -> None:
    x = design(orthogonal=False)
    y, b = targets(x), linear_belief(away())
    net = Sum()
    several = replace(b, net=net, layout=lay_out(net)[0])
    halves = [((x[i] / 2, x[i] / 2), y[i]) for i in range(ROWS)]
    expected = doxa.free_energy(b, (x, y))
    for data in (((x / 2, x / 2), y), DataLoader(halves, batch_size=16)):
        f = doxa.free_energy(several, data)
        assert f.value == pytest.approx(expected.value, rel=1e-9)
    with pytest.raises(BadInput, match="must be a pair"):
        doxa.free_energy(b, DataLoader(x, batch_size=16))


def test_a_loader_that_leaves_rows_out_is_refused() -> None:
    x = design(orthogonal=False)
    loader = DataLoader(TensorDataset(x, targets(x)), batch_size=25, drop_last=True)
    with pytest.raises(BadInput, match="gave 50 rows and its data set has 60"):
        doxa.free_energy(linear_belief(away()), loader)


def test_batches_that_a_data_set_has_ready_are_counted_by_their_rows() -> None:
    x = design(orthogonal=False)
    y, b = targets(x), linear_belief(away())
    f = doxa.free_energy(b, DataLoader([(x[k::3], y[k::3]) for k in range(3)], batch_size=None))
    assert f.rows == ROWS
    assert f.value == pytest.approx(doxa.free_energy(b, (x, y)).value, rel=1e-9)
    with pytest.raises(BadInput, match="the DataLoader is empty"):
        doxa.free_energy(b, DataLoader(TensorDataset(x[:0], y[:0]), batch_size=4))


def test_a_prior_that_is_given_is_bound_to_the_weights_or_refused() -> None:
    x = design(orthogonal=False)
    data, b = (x, targets(x)), linear_belief(away())
    centre = dict(b.net.named_parameters())
    by_net = doxa.free_energy(b, data, prior=priors.gaussian(PRIOR, centre=b.net))
    flat = torch.cat([v.detach().flatten() for v in centre.values()])
    assert by_net.kl == doxa.free_energy(b, data, prior=priors.gaussian(PRIOR, centre=flat)).kl
    assert by_net.kl != doxa.free_energy(b, data).kl
    with pytest.raises(BadInput, match="one for each of the 3 random weights"):
        doxa.free_energy(b, data, prior=priors.gaussian(torch.ones(2)))
    for no_prior in (1.0, "gaussian", priors.gaussian):
        with pytest.raises(BadInput, match="prior must be a prior"):
            doxa.free_energy(b, data, prior=no_prior)


def test_the_parts_stand_apart_and_another_weight_is_a_choice() -> None:
    x = design(orthogonal=False)
    data, b = (x, targets(x)), linear_belief(away())
    f = doxa.free_energy(b, data)
    kl = torch.distributions.kl_divergence(
        torch.distributions.Normal(b.posterior.mean, b.posterior.scale), torch.distributions.Normal(0.0, PRIOR)
    )
    assert f.kl.value == pytest.approx(float(kl.sum()), rel=1e-6)
    assert f.kl.error == 0
    assert f.value == f.nll.value + f.kl.value
    assert f.error == f.nll.error
    cold = doxa.free_energy(b, data, kl_weight=0.1)
    assert (cold.nll, cold.kl) == (f.nll, f.kl)
    assert cold.value == f.nll.value + 0.1 * f.kl.value
    assert "not the true free energy" in str(cold)
    assert "not the true free energy" not in str(f)


def test_it_is_the_true_one_whatever_a_belief_was_learned_with() -> None:
    x = design(orthogonal=False).float()
    y = targets(x.double()).float()
    learned = [
        doxa.fit(
            nn.Linear(SIZE, 1),
            (x, y),
            learner=doxa.learners.variational(priors.gaussian(PRIOR), kl_weight=doxa.kl_weights.tempered(temperature)),
            likelihood=likelihoods.gaussian(NOISE),
            epochs=400,
            lr=doxa.rates.cosine(0.03),
        )
        for temperature in (1.0, 0.01)
    ]
    free, cold = (doxa.free_energy(b, (x, y), samples=500) for b in learned)
    assert free.kl_weight == cold.kl_weight == 1
    assert free.value + 4 * math.hypot(free.error, cold.error) < cold.value, "a colder belief lowers something else"
    colder = [doxa.free_energy(b, (x, y), samples=500, kl_weight=0.01).value for b in learned]
    assert colder[1] < colder[0]


@pytest.mark.parametrize("prior", [priors.laplace(0.5), priors.scale_mixture(0.5, 1.0, 0.1), priors.student_t()])
def test_every_prior_will_do(prior: Prior) -> None:
    x = design(orthogonal=False)
    q = away()
    f = doxa.free_energy(linear_belief(q, prior), (x, targets(x)), samples=3000)
    w = torch.stack([drawn.weights for drawn in q.draws(20_000, (9,))])
    log_ratio = q.log_prob(w) - prior.log_prob(w).sum(1)
    error = math.hypot(f.kl.error, float(log_ratio.std()) / math.sqrt(len(w)))
    assert abs(f.kl.value - float(log_ratio.mean())) < 4 * error
    assert f.error == pytest.approx(math.hypot(f.nll.error, f.kl.error))


def test_a_mixture_has_its_own_divergence_and_not_the_mean_of_its_members() -> None:
    x = design(orthogonal=False)
    data, one = (x, targets(x)), away()
    far = replace(one, mean=-one.mean)
    alone, other = (doxa.free_energy(linear_belief(q), data, samples=2000) for q in (one, far))
    same = doxa.free_energy(linear_belief(posteriors.mixture((one, one))), data, samples=2000)
    assert same.kl.error > 0
    assert abs(same.kl.value - alone.kl.value) < 4 * same.kl.error
    apart = posteriors.mixture((gaussian(one.mean + 2, one.scale), gaussian(one.mean - 2, one.scale)))
    members = [doxa.free_energy(linear_belief(q), data).kl.value for q in apart.members]
    mixed = doxa.free_energy(linear_belief(apart), data, samples=2000).kl
    assert mixed.value + math.log(2) == pytest.approx(sum(members) / 2, abs=4 * mixed.error)
    both = doxa.free_energy(linear_belief(posteriors.mixture((one, far))), data, samples=2000)
    assert abs(both.nll.value - (alone.nll.value + other.nll.value) / 2) < 4 * both.nll.error + 4 * other.nll.error


@dataclass(frozen=True)
class Uniform:
    """A posterior of one's own: independent and uniform about a middle."""

    mean: Tensor
    width: float
    scale = property(lambda self: torch.full_like(self.mean, self.width / math.sqrt(3)))
    relevance = property(lambda self: self.mean.abs())
    components, distinct = 1, None

    def draws(self, samples: int, key: Key) -> Iterator[Draw]:
        source = torch.Generator().manual_seed(key[0])
        for _ in range(samples):
            signed = 2 * torch.rand(len(self.mean), generator=source, dtype=self.mean.dtype) - 1
            yield Draw(self.mean + self.width * signed, weight=1 / samples)

    def pruned(self, keep: Tensor) -> Uniform:
        raise NotImplementedError


class Told(Uniform):
    def log_prob(self, w: Tensor) -> Tensor:
        inside = ((w - self.mean).abs() <= self.width).all(-1)
        return torch.where(inside, -len(self.mean) * math.log(2 * self.width), -torch.inf).double()


def test_a_posterior_of_one_s_own_needs_no_density_but_for_this() -> None:
    x = design(orthogonal=False)
    data, mean = (x, targets(x)), away().mean
    silent = linear_belief(Uniform(mean, 0.2))
    assert len(silent.predict(x, 5)) == 5
    with pytest.raises(BadInput, match="does not tell its density"):
        doxa.free_energy(silent, data)
    f = doxa.free_energy(linear_belief(Told(mean, 0.2)), data, samples=4000)
    second_moment = float((mean.square() + 0.2**2 / 3).sum())
    cross_entropy = second_moment / (2 * PRIOR**2) + SIZE * math.log(PRIOR * math.sqrt(2 * math.pi))
    assert abs(f.kl.value - (cross_entropy - SIZE * math.log(0.4))) < 4 * f.kl.error


def without_density() -> dict[str, Posterior]:
    mean = away().mean
    masked = posteriors.dropout(mean, SIZE, ())
    return {
        "delta": posteriors.delta(mean, SIZE),
        "dropout": masked,
        "particles": posteriors.particles(torch.stack([mean, -mean]), SIZE),
        "samples": posteriors.samples(torch.stack([mean, -mean]), SIZE),
        "pruned": away().pruned(torch.tensor([True, False, True])),
        "mixture": posteriors.mixture((away(), posteriors.delta(mean, SIZE))),
    }


@pytest.mark.parametrize("name", without_density())
def test_what_has_no_divergence_is_refused_in_words(name: str) -> None:
    x = design(orthogonal=False)
    with pytest.raises(BadInput, match="there is no density, and no KL to a prior"):
        doxa.free_energy(linear_belief(without_density()[name]), (x, targets(x)))


def test_a_belief_without_a_prior_is_refused_unless_one_is_given() -> None:
    x = design(orthogonal=False)
    data, b = (x, targets(x)), linear_belief(away())
    with pytest.raises(BadInput, match="no prior"):
        doxa.free_energy(replace(b, prior=None), data)
    assert doxa.free_energy(replace(b, prior=None), data, prior=b.prior) == doxa.free_energy(b, data)
