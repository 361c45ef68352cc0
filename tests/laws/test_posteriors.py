"""Laws of the posteriors' room: every row of its table obeys them."""

from __future__ import annotations

import copy
import math
import sys
from dataclasses import replace

import pytest
import scipy.stats
import torch
from torch import nn

from doxa import Belief, likelihoods, load, posteriors, priors
from doxa.contracts import Posterior
from doxa.errors import BadInput
from doxa.flat import fill_scale
from doxa.posteriors import MeanField
from doxa.posteriors.divergence import kl
from doxa.posteriors.mean_field import Family, inverse_softplus, log_softplus, softplus
from doxa.random.keys import stream_of
from doxa.random.philox import fill_dropout_mask
from doxa.weights.layout import lay_out, untrained_tensors
from doxa.weights.probe import probe
from zoo import CASES


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, groups=2),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.ConvTranspose2d(4, 3, 2),
        nn.Flatten(),
        nn.Linear(75, 3),
    )


FINITE = ("delta", "particles", "samples")
X = torch.randn(7, 2, 6, 6, generator=torch.Generator().manual_seed(1))


def example(name: str) -> Posterior:
    layout, start = lay_out(net())
    uses, _ = probe(net(), layout, start, untrained_tensors(net()), X)
    q = posteriors.EXAMPLES[name](layout, start, uses)
    if isinstance(q, posteriors.samples):  # with statistics of BatchNorm, one set a sample
        slots = (("1.running_mean", (4,)), ("1.running_var", (4,)))
        q = replace(q, rows=torch.cat([q.rows, 1 + torch.rand(len(q.rows), 8)], 1), slots=slots)
    return q


def test_every_posterior_of_the_table_has_an_example() -> None:
    assert set(posteriors.EXAMPLES) == set(posteriors.TABLE)
    assert all(isinstance(example(name), kind) for name, kind in posteriors.TABLE.items())


def belief(name: str) -> Belief:
    q = example(name)
    layout, _ = lay_out(net())
    members = {"particles": 5, "mixture": 3}.get(name, 1)
    return Belief(
        net(), likelihoods.categorical(), q, layout, (untrained_tensors(net()),) * members, prior=priors.gaussian(1.0)
    )


@pytest.mark.parametrize("name", posteriors.TABLE)
def test_moments_match_mean_and_scale(name: str) -> None:
    q = example(name)
    draws = torch.stack([draw.weights for draw in q.draws(6000, (0,))]).double()
    random = len(q.scale)
    if name in FINITE:
        torch.testing.assert_close(draws.mean(0).float(), q.mean)
        torch.testing.assert_close(draws[:, :random].std(0, correction=0).float(), q.scale)
        return
    varies = q.scale > 0
    assert bool(varies.any())
    z = (draws.mean(0) - q.mean)[:random][varies] / (q.scale[varies] / math.sqrt(len(draws)))
    assert float(z.abs().max()) < 5
    assert float((draws[:, :random].std(0)[varies] / q.scale[varies]).log().abs().max()) < 0.1
    constant = torch.cat([~varies, torch.ones(draws.shape[1] - random, dtype=torch.bool)])
    torch.testing.assert_close(draws[:, constant].float(), q.mean[constant].expand(len(draws), -1))


@pytest.mark.parametrize("name", posteriors.TABLE)
def test_draws_depend_on_the_key_alone(name: str) -> None:
    q = example(name)
    first, again, other_key = (torch.stack([draw.weights for draw in q.draws(6, key)]) for key in ((0,), (0,), (1,)))
    assert torch.equal(first, again)
    if name not in FINITE:
        assert not torch.equal(first, other_key)
        assert not torch.equal(first[0], first[1])


@pytest.mark.parametrize("name", posteriors.TABLE)
def test_draws_tell_their_component_their_weight_and_how_many_they_are(name: str) -> None:
    q = example(name)
    drawn = list(q.draws(7, (0,)))
    assert sum(draw.weight for draw in drawn) == pytest.approx(1)
    assert {draw.component for draw in drawn} == set(range(q.components))
    distinct_weights = {draw.weights.numpy().tobytes() for n in (7, 1000) for draw in q.draws(n, (0,))}
    assert len(distinct_weights) >= 1000 if q.distinct is None else len(distinct_weights) == q.distinct


def test_a_mixture_counts_its_members_components_and_draws() -> None:
    """Members of members keep their own buffers, and every member weighs the same, whatever it yields."""
    particles, point, field = example("particles"), example("delta"), example("mean_field")
    chains = posteriors.mixture((particles, particles, point))
    assert (chains.components, chains.distinct) == (11, 11)
    drawn = list(chains.draws(6, (0,)))
    assert [draw.component for draw in drawn] == list(range(11))
    assert [draw.weight for draw in drawn] == pytest.approx([1 / 15] * 10 + [1 / 3])
    for draw, w in zip(drawn, [*particles.weights, *particles.weights, point.mean], strict=True):
        assert torch.equal(draw.weights, w)
    beside = posteriors.mixture((point, field))
    assert (beside.components, beside.distinct) == (2, None)
    assert [draw.weight for draw in beside.draws(20, (0,))] == pytest.approx([0.5] + [0.05] * 10)
    nested = posteriors.mixture((field, chains))
    assert [draw.component for draw in nested.draws(2, (0,))] == list(range(12))


def test_a_belief_has_buffers_for_each_component() -> None:
    b = belief("particles")
    with pytest.raises(BadInput, match="speaks of 5 sets of buffers, but 1 were given"):
        replace(b, buffers=b.buffers[:1])


def test_a_point_has_no_noise() -> None:
    layout, start = lay_out(net())
    start[3] = 0
    b = replace(belief("delta"), posterior=posteriors.delta(start, layout.random))
    ratio = torch.cat([r.flatten() for r in b.signal_to_noise().values()])
    assert ratio[3] == 0
    assert ratio[torch.arange(len(ratio)) != 3].isposinf().all()
    keep = b.kept(0.5)
    ranked = torch.cat([torch.arange(layout.random)[s.span] for s in layout.random_slots if len(s.shape) > 1])
    sizes = start[: layout.random].abs()[ranked]
    assert float(sizes[~keep[ranked]].max()) <= float(sizes[keep[ranked]].min()), "pruning still ranks by size"


@pytest.mark.parametrize("name", posteriors.TABLE)
def test_signal_to_noise_is_that_of_the_draws(name: str) -> None:
    b = belief(name)
    ratio = torch.cat([r.flatten() for r in b.signal_to_noise().values()])
    if name == "dropout":
        keep = b.posterior.keep
        torch.testing.assert_close(ratio, (keep / (1 - keep)).sqrt())
        assert ratio.isposinf().any()
        assert not ratio.isposinf().all()
        return
    q, random = b.posterior, b.layout.random
    torch.testing.assert_close(ratio, q.mean[:random].abs() / q.scale)


@pytest.mark.parametrize("name", posteriors.TABLE)
def test_save_and_load_are_exact(name: str, tmp_path) -> None:
    b = belief(name)
    b.save(tmp_path / "b.doxa")
    again = load(tmp_path / "b.doxa", net())
    again.save(tmp_path / "c.doxa")
    assert (tmp_path / "b.doxa").read_bytes() == (tmp_path / "c.doxa").read_bytes()
    assert torch.equal(b.predict(X, 5).outputs, again.predict(X, 5).outputs)
    assert again.prior == b.prior
    assert again.likelihood == b.likelihood


@pytest.mark.parametrize("name", posteriors.TABLE)
def test_deepcopy_is_independent(name: str) -> None:
    b = belief(name)
    twin = copy.deepcopy(b)
    assert torch.equal(b.predict(X, 3).outputs, twin.predict(X, 3).outputs)
    before = b.posterior.mean.clone()
    for tensor in vars(twin.posterior).values():
        if isinstance(tensor, torch.Tensor):
            tensor.zero_()
    assert torch.equal(b.posterior.mean, before)


@pytest.mark.parametrize("name", posteriors.TABLE)
def test_pruned_weights_are_certainly_zero(name: str) -> None:
    b = belief(name)
    pruned = b.prune(0.6, refresh=X)
    keep = b.kept(0.6)
    weights = sum(math.prod(s.shape) for s in b.layout.random_slots if len(s.shape) > 1)
    assert int((~keep).sum()) == round(0.6 * weights)
    for draw in pruned.posterior.draws(4, (0,)):
        assert float(draw.weights[: b.layout.random][~keep].abs().max()) == 0
    assert float(pruned.posterior.mean[: b.layout.random][~keep].abs().max()) == 0
    assert float(pruned.posterior.scale[~keep].abs().max()) == 0
    assert pruned.predict(X, 3).outputs.isfinite().all()
    relevance = b.posterior.relevance
    ranked = torch.cat([torch.arange(b.layout.random)[s.span] for s in b.layout.random_slots if len(s.shape) > 1])
    lost = relevance[ranked][~keep[ranked]]
    assert float(lost.max()) <= float(relevance[ranked][keep[ranked]].min())


def test_a_dropout_draw_equals_masked_inputs() -> None:
    """Dropping input channels of a grouped or transposed convolution and of a linear map is zeroing their weights."""
    b = belief("dropout")
    for m in b.posterior.masked:
        slot = next(s for s in b.layout.slots if s.start == m.start)
        assert m.channels == {"0.weight": 2, "3.weight": 4, "5.weight": 75}[slot.name]
        mask = torch.zeros(m.channels)
        mask[m.channels // 2] = 1
        w = torch.randn(m.shape)
        module = dict(b.net.named_modules())[slot.module]
        x = torch.randn(1, m.channels) if len(m.shape) == 2 else torch.randn(1, m.channels, 5, 5)
        module.bias = None
        by_weight = torch.func.functional_call(module, {"weight": w * m.expand_mask(mask)}, (x,))
        by_input = torch.func.functional_call(module, {"weight": w}, (x * mask.reshape(1, -1, *[1] * (x.dim() - 2)),))
        torch.testing.assert_close(by_weight, by_input)


def test_dropout_s_draws_are_those_of_training_s_streams() -> None:
    """Words that depend on the key alone, so that device, dtype and the number of draws change no mask."""
    q = example("dropout")
    all_five, first_two = ([draw.weights for draw in q.draws(n, (3, "masks"))] for n in (5, 2))
    double = replace(q, mean=q.mean.double())
    doubled = [draw.weights for draw in double.draws(2, (3, "masks"))]
    for s, (w, again, in_double) in enumerate(zip(all_five, first_two, doubled, strict=False)):
        assert torch.equal(w, again)
        assert torch.equal(w == 0, in_double == 0)
        for i, m in enumerate(q.masked):
            dropout_mask = torch.empty(1, m.channels)
            fill_dropout_mask(dropout_mask, stream_of((3, "masks", s)).with_number(i), m.rate)
            weight = q.mean[m.start : m.stop].view(m.shape)
            assert torch.equal(w[m.start : m.stop].view(m.shape), weight * m.expand_mask(dropout_mask[0]))


def test_starts_are_the_same_in_every_dtype() -> None:
    layout, start = lay_out(net())
    family = Family(rho=(-5, -4), mean=(-0.2, 0.2))
    single, double = (family.start(layout, s, (7,)) for s in (start, start.double()))
    torch.testing.assert_close(single.rho.double(), double.rho, rtol=1e-6, atol=0)
    torch.testing.assert_close(single.mean.double(), double.mean, rtol=1e-6, atol=1e-7)
    assert scipy.stats.kstest((single.rho + 5).numpy(), "uniform").pvalue > 1e-4


def test_nothing_overflows_at_rho_of_ten_thousand() -> None:
    rho = torch.tensor([-1e4, -200.0, -50.0, 0.0, 50.0, 200.0, 1e4])
    q = MeanField(torch.zeros(7), rho)
    assert softplus(rho).isfinite().all()
    assert log_softplus(rho).isfinite().all()
    assert log_softplus(rho)[0] == -1e4
    assert fill_scale(torch.empty(1, 7), rho[None]).isfinite().all()
    assert fill_scale(torch.empty(1, 7), rho[None]).reciprocal().isfinite().all()
    for prior in (priors.gaussian(1.0), priors.laplace(1.0), priors.scale_mixture(), priors.student_t()):
        assert math.isfinite(kl(q, prior).value)
    assert all(draw.weights.isfinite().all() for draw in q.draws(3, (0,)))


def test_log_softplus_is_right_everywhere() -> None:
    rho = torch.linspace(-40, 40, 2001, dtype=torch.float64)
    expected = torch.log(torch.log1p(torch.exp(rho)))
    torch.testing.assert_close(log_softplus(rho.detach()), expected.detach(), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(fill_scale(torch.empty_like(rho)[None], rho[None])[0].detach(), softplus(rho.detach()))
    scale = torch.logspace(-6, 2, 50)
    torch.testing.assert_close(softplus(inverse_softplus(scale)), scale, rtol=2e-4, atol=0)


@pytest.mark.parametrize("per", ["weight", "layer", "network"])
def test_a_family_starts_where_it_is_told(per: str) -> None:
    layout, start = lay_out(CASES["mlp"].net())
    q = Family(per=per, scale=0.05).start(layout, start, (0,))
    assert torch.equal(q.mean, start)
    torch.testing.assert_close(q.scale, torch.full((layout.random,), 0.05))
    q = Family(per=per, rho=(-5, -4), mean=(-0.2, 0.2)).start(layout, start, (0,))
    assert float(q.rho.min()) >= -5
    assert float(q.rho.max()) <= -4
    assert float(q.mean.abs().max()) <= 0.2
    assert len(q.rho) == {"weight": layout.random, "layer": 2, "network": 1}[per]


def test_draws_made_together_are_those_made_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a GPU makes them: in blocks, the last one shorter."""
    from doxa.posteriors import divergence

    q = MeanField(torch.linspace(-1, 1, 1030), torch.linspace(-4, 1, 1025))
    prior = priors.scale_mixture()
    one_by_one = torch.stack([draw.weights for draw in q.draws(7, (3, "draws"))])
    divergence_one_by_one = divergence.monte_carlo(q, prior, 7, (3, "kl"))
    for module in (sys.modules[Family.__module__], divergence):
        monkeypatch.setattr(module, "draws_at_once", lambda like: 3)
    in_blocks = torch.stack([draw.weights for draw in q.draws(7, (3, "draws"))])
    assert torch.equal(in_blocks, one_by_one)
    divergence_in_blocks = divergence.monte_carlo(q, prior, 7, (3, "kl"))
    assert (divergence_in_blocks.value, divergence_in_blocks.error) == pytest.approx(
        (divergence_one_by_one.value, divergence_one_by_one.error), rel=1e-9
    )


DENSITIES = ("mean_field", "mixture")  # the others have all of their mass at points


def test_every_family_tells_its_density_or_says_why_it_has_none() -> None:
    for name in posteriors.TABLE:
        q = example(name)
        if name in DENSITIES:
            drawn = torch.stack([draw.weights for draw in q.draws(6, (0,))])
            assert q.log_prob(drawn).shape == (len(drawn),)
            assert q.log_prob(drawn[0]).shape == ()
            assert q.log_prob(drawn.view(2, -1, drawn.shape[1])).shape == (2, len(drawn) // 2)
        else:
            with pytest.raises(BadInput, match="there is no density"):
                q.log_prob(q.mean)


@pytest.mark.parametrize("groups", [None, (2, 3)])
def test_the_density_is_torch_s(groups: tuple[int, ...] | None) -> None:
    mean, rho = torch.linspace(-1, 1, 7), torch.linspace(-1, 2, 5 if groups is None else 2)
    q = MeanField(mean, rho, groups)
    assert q.random == 5
    w = mean + torch.randn(3, 2, 7, generator=torch.Generator().manual_seed(0))
    normal = torch.distributions.Normal(mean[:5].double(), q.scale.double())
    torch.testing.assert_close(q.log_prob(w), normal.log_prob(w[..., :5].double()).sum(-1), rtol=1e-5, atol=1e-5)
    assert q.log_prob(w).dtype == torch.float64
    moved = torch.cat([w[..., :5], w[..., 5:] + 7], -1)
    assert torch.equal(q.log_prob(moved), q.log_prob(w)), "point estimates have no density to speak of"
    other = replace(q, mean=-mean)
    parts = torch.stack([q.log_prob(w), other.log_prob(w)])
    torch.testing.assert_close(posteriors.mixture((q, other)).log_prob(w), parts.exp().mean(0).log(), rtol=1e-9, atol=0)


@pytest.mark.parametrize("name", DENSITIES)
def test_the_density_integrates_to_one(name: str) -> None:
    one = MeanField(torch.tensor([0.3, -0.5]).double(), torch.tensor([-1.0, 0.0]).double())
    other = MeanField(torch.tensor([-1.0, 0.4]).double(), torch.tensor([-2.0, -1.0]).double())
    q = one if name == "mean_field" else posteriors.mixture((one, other))
    axis = torch.linspace(-6, 6, 1201, dtype=torch.float64)
    density = q.log_prob(torch.cartesian_prod(axis, axis)).exp()
    assert float(density.sum()) * 0.01**2 == pytest.approx(1, abs=1e-6)


def test_the_density_is_that_of_the_draws() -> None:
    """The mean of log q − log p over draws is the KL that is known in closed form, within its error."""
    q, prior = example("mean_field"), priors.gaussian(0.3)
    w = torch.stack([draw.weights for draw in q.draws(2000, (5,))])
    ratios = q.log_prob(w) - prior.log_prob(w[:, : q.random]).double().sum(1)
    error = float(ratios.std()) / math.sqrt(len(ratios))
    assert abs(float(ratios.mean()) - kl(q, prior).value) < 3 * error
    assert error < 0.01 * kl(q, prior).value


def test_slopes_go_through_the_density() -> None:
    mean, rho = torch.tensor([0.2, -0.4], requires_grad=True), torch.tensor([-1.0, 0.5], requires_grad=True)
    w = torch.tensor([0.5, 0.1], requires_grad=True)
    MeanField(mean, rho).log_prob(w).backward()
    scale = softplus(rho.detach())
    torch.testing.assert_close(mean.grad, (w - mean).detach() / scale.square())
    torch.testing.assert_close(w.grad, -mean.grad)
    by_scale = (w - mean).detach().square() / scale**3 - 1 / scale
    torch.testing.assert_close(rho.grad, by_scale * torch.sigmoid(rho.detach()))


def test_the_density_of_many_weights_and_of_tiny_scales_is_finite_and_right() -> None:
    """A million terms of single precision are summed without losing any; a scale below the last bit makes no NaN."""
    size = 1_000_000
    q = MeanField(torch.ones(size), torch.full((size,), -50.0))
    assert float(q.log_prob(q.mean)) == pytest.approx(size * (50 - 0.5 * math.log(2 * math.pi)), rel=1e-12)
    assert math.isfinite(float(replace(q, rho=torch.full((size,), -1e4)).log_prob(q.mean)))


def test_a_density_wants_all_weights() -> None:
    q = example("mean_field")
    for wrong in (q.mean[:-1], q.mean.long(), q.mean[0], q.mean.numpy()):
        with pytest.raises(BadInput, match="expected real numbers"):
            q.log_prob(wrong)
