"""Predictions: coherent draws, the laws of total variance and entropy, and nothing touched."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
import scipy.optimize
import scipy.stats
import torch
from torch import Tensor, nn
from torch.func import functional_call

import doxa
from doxa import Belief, Draws, learners, likelihoods, noise, posteriors, priors
from doxa.contracts import Draw
from doxa.posteriors import MeanField
from doxa.posteriors.delta import Delta
from doxa.predict import sweep
from doxa.random.keys import Key
from doxa.weights.layout import lay_out, untrained_tensors
from zoo import CASES


def normal(*shape: int, seed: int = 4) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def belief(name: str, scale: float = 0.2, likelihood=None) -> Belief:
    """A mean-field belief about a net of the zoo, with BatchNorm statistics that are not the net's own."""
    net = CASES[name].net()
    layout, start = lay_out(net)
    rho = torch.full((layout.random,), math.log(math.expm1(scale)) if scale else -math.inf)
    buffers = {
        k: b + torch.rand(b.shape, generator=torch.Generator().manual_seed(1)) if b.dtype.is_floating_point else b
        for k, b in untrained_tensors(net).items()
    }
    likelihood = likelihoods.categorical() if likelihood is None else likelihood
    return Belief(net, likelihood, MeanField(start * 1.1, rho), layout, (buffers,))


NETS = ["mlp", "batch_norm", "transformer", "lstm", "tied_embedding"]


@pytest.mark.parametrize("name", NETS)
def test_chunks_of_rows_never_change_a_draw(name: str) -> None:
    """The weights of a draw are the same bits for every chunk; outputs agree to the rounding of matrix products."""
    q, x = belief(name), CASES[name].inputs(23)
    all_rows = q.predict(x, samples=4).outputs
    assert float(all_rows.std(0).min()) > 1e-3, "draws differ"
    for rows in (1, 2, 7, 22, 23, 1000):
        torch.testing.assert_close(q.predict(x, samples=4, rows=rows).outputs, all_rows, rtol=1e-4, atol=1e-5)
    drawn_weights = [draw.weights for draw in q.posterior.draws(4, (0, "predict"))]
    for s, w in enumerate(drawn_weights):
        net = q.plain(w).eval()
        torch.testing.assert_close(all_rows[s], net(x).detach(), rtol=1e-4, atol=1e-5)


def test_same_seed_same_draws_and_another_seed_others() -> None:
    q, x = belief("mlp"), CASES["mlp"].inputs()
    first = q.predict(x, samples=6, seed=3).outputs
    torch.manual_seed(99)
    assert torch.equal(q.predict(x, samples=6, seed=3).outputs, first)
    assert torch.equal(q.predict(x, samples=4, seed=3).outputs, first[:4]), "more draws come after the first ones"
    other_seed = q.predict(x, samples=6, seed=4).outputs
    assert not any(torch.equal(a, b) for a in first for b in other_seed)
    # A draw is one function of x.
    torch.testing.assert_close(q.predict(x[5:], samples=6, seed=3).outputs, first[:, 5:])


@pytest.mark.parametrize("name", NETS)
def test_the_mean_weights_and_a_scale_of_zero_are_the_plain_net(name: str) -> None:
    q, x = belief(name), CASES[name].inputs()
    with torch.no_grad():
        expected, before_training = q.plain().eval()(x), q.net.eval()(x)
    assert not torch.equal(expected, before_training), "the belief has left the net it began with"
    torch.testing.assert_close(q.predict_at_mean(x).outputs[0], expected, rtol=1e-5, atol=1e-6)
    certain = belief(name, scale=0.0).predict(x, samples=3)
    assert len(certain) == 3
    for output in certain.outputs:
        torch.testing.assert_close(output, expected, rtol=1e-5, atol=1e-6)
    assert float(certain.std.max()) == 0
    assert float(certain.mutual_information().max()) < 1e-6


def test_the_plain_net_is_a_copy() -> None:
    q = belief("batch_norm")
    plain = q.plain()
    with torch.no_grad():
        for p in plain.parameters():
            p.zero_()
    assert float(next(q.net.parameters()).detach().abs().sum()) > 0
    assert float(q.posterior.mean.abs().sum()) > 0
    assert torch.equal(plain.get_buffer("1.running_mean"), q.buffers[0]["1.running_mean"])


def test_predicting_touches_nothing() -> None:
    """Mixed modes come back as they were, dropout layers are off, no gradient, no buffer, no random number."""
    net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3))
    net[1].eval()
    layout, start = lay_out(net)
    q = Belief(
        net, likelihoods.categorical(), posteriors.delta(start, layout.random), layout, (untrained_tensors(net),)
    )
    modes = [m.training for m in net.modules()]
    state = {k: v.clone() for k, v in net.state_dict().items()}
    before = torch.get_rng_state()
    x = torch.zeros(4, 6)
    outputs = q.predict(x).outputs
    assert torch.equal(torch.get_rng_state(), before)
    assert [m.training for m in net.modules()] == modes
    assert all(torch.equal(v, state[k]) for k, v in net.state_dict().items())
    assert not outputs.requires_grad
    assert torch.equal(outputs[0], net.eval()(x))


def draws(outputs: Tensor, likelihood, **parameters: Tensor) -> Draws:
    return Draws(outputs, likelihood, parameters)


# Classification.


def test_the_mean_averages_probabilities_not_logits() -> None:
    outputs = torch.tensor([[[0.0, 10.0]], [[0.0, -2.0]]])
    mean_probabilities = draws(outputs, likelihoods.categorical()).mean
    torch.testing.assert_close(mean_probabilities, outputs.softmax(-1).mean(0))
    assert not torch.allclose(mean_probabilities, outputs.mean(0).softmax(-1), atol=0.1)
    yes = draws(outputs[..., 1], likelihoods.bernoulli()).mean
    torch.testing.assert_close(yes, outputs[..., 1].sigmoid().mean(0))


def test_entropy_and_mutual_information_have_known_answers() -> None:
    sure, unsure = math.log(1e9), 0.0
    rows = torch.tensor(
        [
            [[sure, 0, 0, 0], [0, sure, 0, 0]],  # sure draws that disagree: ln 2, all of it disagreement
            [[unsure] * 4, [unsure] * 4],  # unsure draws that agree: ln 4, none of it
            [[sure, 0, 0, 0], [sure, 0, 0, 0]],  # sure draws that agree: nothing
        ]
    ).transpose(0, 1)
    predicted = draws(rows.double(), likelihoods.categorical())
    expected = torch.tensor([math.log(2), math.log(4), 0.0]).double()
    torch.testing.assert_close(predicted.entropy(), expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(
        predicted.mutual_information(), torch.tensor([math.log(2), 0.0, 0.0]).double(), rtol=0, atol=1e-6
    )
    # The same for yes or no; several targets of a row add up.
    logits = torch.tensor([[[100.0, 0.0], [100.0, 100.0]], [[-100.0, 0.0], [100.0, -100.0]]])  # [S, B, D]
    predicted = draws(logits, likelihoods.bernoulli())
    torch.testing.assert_close(predicted.entropy(), torch.tensor([2 * math.log(2), math.log(2)]))
    torch.testing.assert_close(predicted.mutual_information(), torch.tensor([math.log(2), math.log(2)]))


def test_mutual_information_is_never_negative_and_never_more_than_the_entropy() -> None:
    outputs = 5 * normal(30, 200, 4, seed=11)
    predicted = draws(outputs, likelihoods.categorical())
    assert float(predicted.mutual_information().min()) >= 0
    assert bool((predicted.mutual_information() <= predicted.entropy() + 1e-6).all())
    identical_draws = draws(outputs[:1].expand(30, -1, -1), likelihoods.categorical())
    assert float(identical_draws.mutual_information().max()) < 1e-5


def test_quantiles_of_classification_are_those_of_the_probabilities() -> None:
    outputs = normal(201, 5, 3, seed=12)
    predicted = draws(outputs, likelihoods.categorical())
    sorted_ = outputs.softmax(-1).sort(0).values
    for q in (0.0, 0.05, 0.5, 0.95, 1.0):
        torch.testing.assert_close(predicted.quantile(q), sorted_[round(200 * q)])
    torch.testing.assert_close(predicted.std, outputs.softmax(-1).std(0, correction=0))
    yes = draws(outputs, likelihoods.bernoulli())
    torch.testing.assert_close(yes.quantile(0.5), outputs.sigmoid().sort(0).values[100])


# Regression.


def mixtures() -> list[tuple[Draws, Tensor, Tensor]]:
    """Draws of each Gaussian likelihood with their locations and scales [S, B, D] told apart."""
    locations = normal(7, 5, 2, seed=13).double() * 2
    raw = normal(7, 5, 2, seed=14).double()
    log_scale = normal(7, 1, 2, seed=15).double()
    return [
        (draws(locations, likelihoods.gaussian(0.7)), locations, torch.full_like(locations, 0.7)),
        (
            draws(locations, likelihoods.gaussian_learned(), log_scale=log_scale),
            locations,
            log_scale.exp().expand_as(locations),
        ),
        (
            draws(torch.cat([locations, raw], -1), likelihoods.gaussian_per_input(0.1)),
            locations,
            0.1 + nn.functional.softplus(raw),
        ),
    ]


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("q", [0.001, 0.05, 0.5, 0.9, 0.999])
def test_quantiles_of_regression_are_those_of_the_mixture(which: int, q: float) -> None:
    """Against scipy's root of the mixture's distribution function."""
    predicted, locations, scales = mixtures()[which]
    quantile = predicted.quantile(q)
    assert quantile.shape == locations.shape[1:]
    for b in range(5):
        for d in range(2):
            parts = scipy.stats.norm(locations[:, b, d].numpy(), scales[:, b, d].numpy())
            root = scipy.optimize.brentq(lambda y, parts=parts: parts.cdf(y).mean() - q, -100, 100, xtol=1e-12)
            assert float(quantile[b, d]) == pytest.approx(root, abs=1e-8)


@pytest.mark.parametrize("which", range(3))
def test_variance_is_the_mean_of_variances_plus_the_variance_of_means(which: int) -> None:
    predicted, locations, scales = mixtures()[which]
    torch.testing.assert_close(predicted.aleatoric, scales.square().mean(0).sqrt())
    torch.testing.assert_close(predicted.epistemic, locations.var(0, correction=0).sqrt())
    # The variance of the mixture itself, E[y²] − E[y]².
    total = (scales.square() + locations.square()).mean(0) - locations.mean(0).square()
    torch.testing.assert_close(predicted.std, total.sqrt())
    torch.testing.assert_close(predicted.mean, locations.mean(0))


def test_regression_on_rows_is_as_unsure_as_its_draws() -> None:
    """For a linear net y = wx, w ~ N(m, s²), and noise σ: sd² = σ² + s²x²."""
    torch.manual_seed(0)
    net = nn.Linear(1, 1, bias=False)
    layout, start = lay_out(net)
    q = MeanField(start, torch.tensor([math.log(math.expm1(0.5))]))
    belief = Belief(net, likelihoods.gaussian(0.3), q, layout, ({},))
    x = torch.tensor([[0.0], [1.0], [4.0]])
    predicted = belief.predict(x, samples=4000)
    expected = (0.09 + 0.25 * x.square()).sqrt()
    torch.testing.assert_close(predicted.std, expected, rtol=0.04, atol=0)
    torch.testing.assert_close(
        predicted.quantile(0.975) - predicted.quantile(0.025), 2 * 1.96 * expected, rtol=0.05, atol=0
    )
    entropy = (2 * math.pi * math.e * expected.square()).log().div(2)[:, 0]
    fewer_draws = belief.predict(x, samples=400)
    torch.testing.assert_close(fewer_draws.entropy(), entropy, rtol=0, atol=0.1)
    information = 0.5 * (1 + x[:, 0].square() * 0.25 / 0.09).log()
    torch.testing.assert_close(fewer_draws.mutual_information(), information, rtol=0, atol=0.1)


def test_log_prob_of_draws_is_each_draw_s_own() -> None:
    predicted, locations, scales = mixtures()[2]
    y = normal(5, 2, seed=16).double()
    expected = torch.distributions.Normal(locations, scales).log_prob(y).sum(-1)
    torch.testing.assert_close(predicted.log_prob(y), expected)
    with pytest.raises(doxa.BadInput, match=r"targets have shape \(5, 3\)"):
        predicted.log_prob(torch.zeros(5, 3).double())


# Ensembles.


@pytest.mark.parametrize(
    "learner", [learners.point(), learners.variational(priors.gaussian(1.0), noise.local)], ids=["point", "variational"]
)
def test_members_of_an_ensemble_keep_their_own_batch_statistics(learner) -> None:
    case = CASES["batch_norm"]
    x, y = case.data(40)
    ensemble = doxa.fit(
        case.net(),
        (x, y),
        learner=learners.ensemble(learner, 3),
        likelihood=likelihoods.categorical(),
        epochs=2,
        batch_size=20,
    )
    statistics = [b["1.running_mean"] for b in ensemble.buffers]
    assert len(statistics) == 3
    assert not torch.equal(statistics[0], statistics[1])
    outputs = ensemble.predict(x, samples=6).outputs
    drawn = list(ensemble.posterior.draws(6, (0, "predict")))
    assert len(outputs) == len(drawn) == (3 if isinstance(ensemble.posterior, posteriors.particles) else 6)
    assert {draw.component for draw in drawn} == {0, 1, 2}
    net = ensemble.net.eval()
    for out, draw in zip(outputs, drawn, strict=True):
        w, member = draw.weights, draw.component
        expected = functional_call(net, {**ensemble.layout.weights(w), **ensemble.buffers[member]}, (x,))
        torch.testing.assert_close(out, expected.detach())
        wrong = functional_call(net, {**ensemble.layout.weights(w), **ensemble.buffers[(member + 1) % 3]}, (x,))
        assert not torch.allclose(out, wrong.detach(), atol=1e-4)


def with_statistics(net: nn.Module, seed: int) -> dict[str, Tensor]:
    """A net's buffers with BatchNorm's means and variances of its own."""
    source = torch.Generator().manual_seed(seed)
    return {
        k: b + torch.rand(b.shape, generator=source) if b.is_floating_point() else b
        for k, b in untrained_tensors(net).items()
    }


@pytest.mark.parametrize("most_draws", [1, 3, 100])
def test_an_ensemble_of_chains_does_not_mix_up_its_buffers(most_draws: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains of 2 and of 3 states: five states, each with the statistics it was kept with."""
    monkeypatch.setattr(sweep, "_draws_at_once", lambda *_: most_draws)
    net = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3)).eval()
    layout, start = lay_out(net)
    states = start + 0.3 * normal(5, len(start))
    chains = tuple(posteriors.particles(part, layout.random) for part in (states[:2], states[2:]))
    buffers = tuple(with_statistics(net, s) for s in range(5))
    q = Belief(net, likelihoods.categorical(), posteriors.mixture(chains), layout, buffers)
    x = normal(8, 4)
    predicted = q.predict(x, 5)
    for out, w, state_buffers in zip(predicted.outputs, states, buffers, strict=True):
        torch.testing.assert_close(out, functional_call(net, {**layout.weights(w), **state_buffers}, (x,)).detach())
    p = predicted.means
    torch.testing.assert_close(predicted.mean, (p[:2].mean(0) + p[2:].mean(0)) / 2)
    refreshed = q.refreshed(x)
    assert len(refreshed.buffers) == 5
    for draw in refreshed.posterior.draws(5, (0,)):
        named = layout.views(draw.weights)
        means = (x @ named["0.weight"].T + named["0.bias"]).mean(0)
        torch.testing.assert_close(refreshed.buffers[draw.component]["1.running_mean"], means)


@pytest.mark.parametrize("most_draws", [1, 3, 100])
def test_a_draw_s_own_buffers_take_the_place_of_its_component_s(
    most_draws: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Kept(Delta):
        def draws(self, samples: int, key: Key) -> Iterator[Draw]:
            for s in range(samples):
                yield Draw(self.mean, 0, 1 / samples, {"1.running_mean": running_means[s]})

    monkeypatch.setattr(sweep, "_draws_at_once", lambda *_: most_draws)
    net = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3)).eval()
    layout, start = lay_out(net)
    running_means = normal(6, 5)
    shared = with_statistics(net, 0)
    q = Belief(net, likelihoods.categorical(), Kept(start, layout.random), layout, (shared,))
    x = normal(8, 4)
    for draw, out in zip(q.posterior.draws(6, (0,)), q.predict(x, 6).outputs, strict=True):
        expected = functional_call(net, {**layout.weights(start), **shared, **draw.buffers}, (x,)).detach()
        torch.testing.assert_close(out, expected)
        torch.testing.assert_close(q.plain(draw).eval()(x).detach(), expected)


def test_a_point_beside_a_cloud_is_not_drowned() -> None:
    """Two members count alike, though one yields a draw and the other twenty; every average heeds it."""
    x = normal(8, 4)
    net = nn.Linear(4, 3)
    layout, start = lay_out(net)
    point, cloud = Delta(start, layout.random), MeanField(start + 1, torch.zeros(layout.random))
    both = Belief(net, likelihoods.categorical(), posteriors.mixture((point, cloud)), layout, ({}, {}))
    predicted = both.predict(x, 40)
    assert len(predicted) == 21
    assert predicted.weights.tolist() == pytest.approx([0.5] + [0.025] * 20)
    parts = [Draws(predicted.outputs[span], predicted.likelihood, {}) for span in (slice(0, 1), slice(1, None))]
    torch.testing.assert_close(predicted.mean, (parts[0].mean + parts[1].mean) / 2)
    y = torch.arange(8) % 3
    expected = torch.stack([part.log_predictive(y).exp() for part in parts]).mean(0).log()
    torch.testing.assert_close(predicted.log_predictive(y), expected)
    repeated = Draws(
        torch.cat([predicted.outputs[:1].expand(20, -1, -1), predicted.outputs[1:]]), predicted.likelihood, {}
    )
    for name in ("entropy", "mutual_information"):
        torch.testing.assert_close(getattr(predicted, name)(), getattr(repeated, name)())
    for name in ("mean", "std", "aleatoric", "epistemic"):
        torch.testing.assert_close(getattr(predicted, name), getattr(repeated, name))
    assert Belief(net, both.likelihood, cloud, layout, ({},)).predict(x, 5).weights is None


def test_a_mixture_predicts_the_mean_of_its_members() -> None:
    case = CASES["mlp"]
    x, y = case.data(40)
    ensemble = doxa.fit(
        case.net(), (x, y), learner=learners.ensemble(learners.point(), 4), likelihood=likelihoods.categorical()
    )
    nets = [ensemble.plain(w).eval() for w in ensemble.posterior.weights]
    expected = torch.stack([net(x).softmax(-1) for net in nets]).mean(0).detach()
    torch.testing.assert_close(ensemble.predict(x).mean, expected)


# How draws are worked through.


@pytest.mark.parametrize("name", [*NETS, "strided"])
def test_draws_as_one_program_are_draws_one_by_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In blocks of any size; convolutions and recurrent nets always take turns."""
    q, x = belief(name), CASES[name].inputs(5)
    outputs_by_block_size = {}
    for block_size in (1, 3, 100):
        monkeypatch.setattr(sweep, "_draws_at_once", lambda *_, block_size=block_size: block_size)
        outputs_by_block_size[block_size] = q.predict(x, samples=7).outputs
    torch.testing.assert_close(outputs_by_block_size[3], outputs_by_block_size[1], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(outputs_by_block_size[100], outputs_by_block_size[1], rtol=1e-4, atol=1e-5)


def test_few_rows_of_a_small_net_are_one_program_and_much_work_is_not() -> None:
    small, rows = belief("mlp"), CASES["mlp"].inputs(5)
    many_rows = rows.repeat(40_000, 1)
    draws_at_once = sweep._draws_at_once
    assert draws_at_once(small.net, small.layout, rows, 2048) >= 50
    assert draws_at_once(small.net, small.layout, many_rows, len(many_rows)) == 1
    for name in ("strided", "lstm"):
        larger = belief(name)
        assert draws_at_once(larger.net, larger.layout, CASES[name].inputs(2), 2048) == 1


def test_a_precision_that_the_processor_lacks_is_said_to_be_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    q, x = belief("mlp"), CASES["mlp"].inputs(5)

    def refuses(*_: object) -> Tensor:
        raise RuntimeError("could not create a primitive")

    monkeypatch.setattr(sweep, "call", refuses)
    with pytest.raises(doxa.BadInput, match=r"in torch.bfloat16; if it runs without autocast=, leave that out"):
        q.predict(x, samples=2, autocast=torch.bfloat16)


def test_a_net_that_refuses_is_asked_draw_by_draw() -> None:
    class Branching(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x) if x.sum() + self.layer.bias.sum() > 0 else -self.layer(x)

    net = Branching()
    layout, start = lay_out(net)
    q = Belief(net, likelihoods.categorical(), MeanField(start, torch.full((8,), -1.0)), layout, ({},))
    x = normal(4, 3)
    for draw, output in zip(q.posterior.draws(20, (0, "predict")), q.predict(x, 20).outputs, strict=True):
        assert torch.equal(output, q.plain(draw.weights)(x).detach())
