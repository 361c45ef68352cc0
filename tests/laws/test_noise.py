"""Laws of the noise room: every row of its table obeys them, on every kind of net."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from doxa import noise, priors
from doxa.contracts import Batch, Moment, Problem
from doxa.layout import call, constants, lay_out, mode
from doxa.learners import variational
from doxa.learners.variational import VariationalTraining
from doxa.likelihoods import categorical
from doxa.noise import Leaves
from doxa.noise import leaves as leaves_module
from doxa.noise.interception import Interception
from doxa.noise.leaves import noise_of
from doxa.posteriors.mean_field import Family
from doxa.probe import probe
from doxa.randomness import isolated, normal, reseed
from zoo import CASES, Case

NOISES = [pytest.param(n, id=k) for k, n in noise.TABLE.items()]
RULED = [pytest.param(n, id=k) for k, n in noise.TABLE.items() if n.rule is not None]
NETS = [pytest.param(c, id=k) for k, c in CASES.items()]
MOMENT = Moment(step=0, steps=10, batch=0, batches=5, key=(0, "step", 0))


def problem(case: Case, size: int = 100) -> Problem:
    net = case.net()
    layout, start = lay_out(net)
    buffers = constants(net)
    uses, _ = probe(net, layout, start, buffers, case.inputs())
    return Problem(net, layout, uses, categorical(), start, buffers, size, (0,))


def leaves_for(p: Problem, kind: noise.Noise, scale: Tensor) -> Leaves:
    return Leaves(p.layout, p.uses, kind, p.start, scale, torch.zeros_like(p.start))


def run(p: Problem, leaves: Leaves, x: Tensor, key: tuple[int | str, ...]) -> Tensor:
    """One noisy pass, repeatable by its key."""
    buffers = {k: b.clone() for k, b in p.buffers.items()}
    with isolated(p.start.device), mode(p.net, False), leaves.at_work():
        reseed(key)
        leaves.draw(key)
        return call(p.net, leaves.first, buffers, x)


@pytest.mark.parametrize("case", NETS)
@pytest.mark.parametrize("kind", NOISES)
def test_at_scale_zero_the_plain_net_runs(kind: noise.Noise, case: Case) -> None:
    p = problem(case)
    x = case.inputs()
    with mode(p.net, False):
        expected = p.net(x)
    found = run(p, leaves_for(p, kind, torch.zeros(p.layout.random)), x, (1,))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", NETS)
@pytest.mark.parametrize("kind", RULED)
def test_what_falls_back_to_a_shared_draw_is_listed_and_nothing_else(kind: noise.Noise, case: Case) -> None:
    p = problem(case)
    listed = noise_of(p.layout, p.uses, kind)
    assert {k for k, how in listed.items() if how.startswith("shared")} == set(case.shared)
    assert all("used by" in listed[k] for k in case.shared)
    assert {k for k, how in listed.items() if how == kind.name} == {s.name for s in p.layout.random_slots} - set(
        case.shared
    )


class Overheard(Interception):
    """The interception itself, noting at each site what the rule returned on the very inputs it was given."""

    def __init__(self, sites, rule) -> None:
        self.outputs: dict[str, Tensor] = {}

        def keep(apply, x, weight, bias, site):
            frozen = self.inputs.setdefault(site.name, x.detach())
            output = rule(apply, frozen, weight, bias, site)
            self.outputs[site.name] = (output - apply(frozen, weight, bias)).detach()
            self.rows[site.name] = site.row_axes
            return output

        self.inputs: dict[str, Tensor] = {}
        self.rows: dict[str, tuple[int, ...]] = {}
        super().__init__(sites, keep)


def operations(net: nn.Module, x: Tensor) -> int:
    """How many linear maps and convolutions the net really calls, counted from outside."""
    from torch.overrides import TorchFunctionMode

    from doxa.probe import ATTENTION, OPEN_ATTENTION, OPERATIONS

    class Count(TorchFunctionMode):
        calls = 0

        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is ATTENTION:
                with self:
                    return OPEN_ATTENTION(*args, **(kwargs or {}))
            Count.calls += func in OPERATIONS
            return func(*args, **(kwargs or {}))

    with Count(), mode(net, True), isolated(x.device):
        net(x)
    return Count.calls


@pytest.mark.parametrize("case", NETS)
@pytest.mark.parametrize("kind", RULED)
def test_rows_have_uncorrelated_noise_at_every_operation(kind: noise.Noise, case: Case) -> None:
    """Each linear map and convolution the net calls, its input held fixed over draws: rows must not share noise."""
    p = problem(case)
    x = case.inputs(4)
    leaves = leaves_for(p, kind, torch.full((p.layout.random,), 0.3))
    heard = Overheard(leaves.sites, partial(kind.rule, sign=1.0))
    seen: dict[str, list[Tensor]] = {}
    with isolated(x.device), mode(p.net, True), torch.no_grad():
        for s in range(DRAWS):
            reseed((s,))
            leaves.draw((s, "w"))
            heard.met.clear()
            with heard:
                call(p.net, leaves.first, {k: b.clone() for k, b in p.buffers.items()}, x)
            for name, output in heard.outputs.items():
                seen.setdefault(name, []).append(output.movedim(heard.rows[name][0], 0).flatten(1))
    # Every operation whose weight is used once has a site; tied or repeated ones are the listed exceptions.
    excused = operations(p.net, x) - len(leaves.sites)
    assert excused == {"tied_embedding": 1, "twice": 2, "cross_attention": 3}.get(
        next(k for k, c in CASES.items() if c is case), 0
    )
    assert len(seen) == len(leaves.sites)
    for name, found in seen.items():
        assert not shares_noise(torch.stack(found)), f"{name}: rows share noise"


DRAWS = 500


def shares_noise(z: Tensor) -> bool:
    """Whether any two rows of z [draws, rows, units] are correlated, unit by unit or on average over units."""
    rows = z.shape[1]
    for a in range(rows):
        for b in range(a):
            product = z[:, a] * z[:, b]
            error = product.std(0) / math.sqrt(len(z))
            t = (product.mean(0) / error.clamp_min(1e-30))[error > 0]
            # The largest of m standard normal numbers is about √(2 log m); all pairs of rows are looked at.
            if float(t.abs().max()) > 1.5 + math.sqrt(2 * math.log(t.numel() * rows * rows)):
                return True
            mean = (product / z[:, a].norm(dim=1, keepdim=True) / z[:, b].norm(dim=1, keepdim=True)).sum(1)
            if abs(float(mean.mean())) > 5 * float(mean.std()) / math.sqrt(len(z)):
                return True
    return False


def test_shared_draws_would_be_noticed() -> None:
    """The judgement above can fail: plain shared draws, on the same net, are found out."""
    case = CASES["mlp"]
    p = problem(case)
    x = case.inputs(4)
    layer = p.net[0]
    found = []
    for s in range(DRAWS):
        reseed((s,))
        found.append(F.linear(x, 0.3 * torch.randn_like(layer.weight)).detach())
    assert shares_noise(torch.stack(found))


@pytest.mark.parametrize(
    "case",
    [CASES["mlp"], CASES["grouped"], CASES["transposed"], CASES["strided"]],
    ids=["mlp", "grouped", "transposed", "strided"],
)
@pytest.mark.parametrize("kind", RULED)
def test_same_mean_and_variance_as_shared(kind: noise.Noise, case: Case) -> None:
    """The first operation's output, unit by unit, against shared draws."""
    p = problem(case)
    p.net.eval()
    first = nn.Sequential(next(iter(p.net.children())))
    layout, start = lay_out(first)
    x = case.inputs(3)
    uses, _ = probe(first, layout, start, {}, x)
    p = Problem(first, layout, uses, categorical(), start, {}, 10, (0,))
    scale = torch.rand(layout.random, generator=torch.Generator().manual_seed(5)) * 0.3
    moments, draws = [], 3000
    for each in (noise.shared, kind):
        leaves, outputs = leaves_for(p, each, scale), []
        with torch.no_grad(), isolated(x.device):
            reseed((each.name,))
            for s in range(draws):
                leaves.draw((s, each.name))
                with leaves.at_work():
                    outputs.append(call(first, leaves.first, {}, x))
        stacked = torch.stack(outputs)
        moments.append((stacked.mean(0), stacked.var(0)))
    (mean, variance), (own_mean, own_variance) = moments
    z = (mean - own_mean) / (2 * variance / draws).sqrt()
    assert float(z.abs().max()) < 5
    # The variance of a variance estimate of Gaussian numbers is 2v²/n.
    z = (variance - own_variance) / (variance * math.sqrt(4 / draws))
    assert float(z.abs().max()) < 5.5


@pytest.mark.parametrize("kind", NOISES)
def test_gradient_is_unbiased(kind: noise.Noise) -> None:
    """On a linear-Gaussian model, E_q[NLL] and its gradient are known: the mean of many pull-backs must match."""
    torch.manual_seed(0)
    net = nn.Linear(3, 1)
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    layout, start = lay_out(net)
    uses, _ = probe(net, layout, start, {}, x)
    scale = torch.tensor([0.3, 0.5, 0.2, 0.4])
    design = torch.cat([x, torch.ones(8, 1)], 1)
    residual = design @ start - y[:, 0]
    # E ½(x·w − y)² = ½(x·mean − y)² + ½ Σ x²·scale²
    exact_mean = (residual[:, None] * design).mean(0)
    exact_scale = design.square().mean(0) * scale
    leaves = Leaves(layout, uses, kind, start, scale, torch.zeros_like(start))
    found = []
    for s in range(4000):
        leaves.draw((s,))
        with isolated(x.device), leaves.at_work():
            reseed((s, "rows"))
            (0.5 * (call(net, leaves.first, {}, x) - y).square().mean()).backward()
        by_scale = torch.empty_like(scale)
        for piece in leaves.pieces:
            leaves.pull(piece, by_scale[piece.span], add=False)
        found.append(torch.cat([leaves.gradient, by_scale]))
    stacked = torch.stack(found)
    z = (stacked.mean(0) - torch.cat([exact_mean, exact_scale])) / (stacked.std(0) / math.sqrt(len(found)))
    assert float(z.abs().max()) < 4


PRIORS = {
    "gaussian": priors.gaussian(0.5),
    "laplace": priors.laplace(0.3),
    "scale_mixture": priors.scale_mixture(0.5, 1.0, math.exp(-3)),
    "student_t": priors.student_t(3.0, 0.5),
}


@pytest.mark.parametrize("name", ["mlp", "lstm", "tied_embedding", "transformer"])
@pytest.mark.parametrize("kind", NOISES)
def test_noise_is_one_stream_however_it_is_cut(kind: noise.Noise, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of 7 weights: each takes its own part of the stream, so that no two weights share a number."""
    monkeypatch.setattr(leaves_module, "BLOCK", 7)
    p = problem(CASES[name])
    leaves = leaves_for(p, kind, torch.full((p.layout.random,), 0.1))
    assert len(leaves.pieces) > 5
    leaves.draw((1, "cut"), -1.0)
    whole = -normal(p.layout.random, (1, "cut"), p.start)
    spans = [*leaves.drawn, *(leaves.ruled if kind.draws_weights else [])]
    for span in spans:
        assert torch.equal(leaves.epsilon[span], whole[span])
    for span in leaves.drawn:
        torch.testing.assert_close(leaves.flat[span], p.start[span] + 0.1 * whole[span])


def by_autograd(training: VariationalTraining, batch: Batch, moment: Moment) -> tuple[Tensor, Tensor]:
    """The same free energy with the same noise, differentiated from end to end by autograd alone."""
    p, learner = training.problem, training.learner
    mean = training.mean.detach().clone().requires_grad_()
    rho = training.rho.detach().clone().requires_grad_()
    random = p.layout.random
    loss = torch.zeros(())
    scale = F.softplus(rho)
    for s in range(learner.samples):
        key = (*moment.key, s // 2 if learner.antithetic else s)
        sign = -1.0 if learner.antithetic and s % 2 else 1.0
        reseed(key)
        leaves = Leaves(p.layout, p.uses, learner.noise, mean.detach(), scale.detach(), torch.zeros_like(p.start))
        leaves.draw((*key, "weights"), sign)
        epsilon = sign * normal(random, (*key, "weights"), like=scale.detach())
        drawn = mean.clone()
        second = torch.zeros_like(scale)
        for span in leaves.drawn:
            drawn = torch.cat([drawn[: span.start], mean[span] + scale[span] * epsilon[span], drawn[span.stop :]])
        for span in leaves.ruled:
            value = scale[span].square() if learner.noise is noise.local else scale[span] * epsilon[span]
            second = torch.cat([second[: span.start], value, second[span.stop :]])
        views, seconds = p.layout.views(drawn), {}
        for slot in p.layout.random_slots:
            seconds[slot.name] = second[slot.span].unflatten(0, slot.shape)
        sites = []
        for site in leaves.sites:
            names = {
                k: next((n for n, leaf in leaves.first.items() if leaf is getattr(site, k)), None)
                for k in ("weight", "bias")
            }
            sites.append(
                type(site)(
                    site.name,
                    views[names["weight"]] if names["weight"] else None,
                    views[names["bias"]] if names["bias"] else None,
                    seconds[names["weight"]] if names["weight"] else None,
                    seconds[names["bias"]] if names["bias"] else None,
                    site.channel_axis,
                    site.row_axes,
                )
            )
        buffers = {k: b.clone() for k, b in training._buffers.items()}
        if sites:
            with Interception(sites, partial(learner.noise.rule, sign=sign)):
                output = call(p.net, views, buffers, batch.x)
        else:
            output = call(p.net, views, buffers, batch.x)
        loss = loss - p.likelihood.log_prob(output, batch.y, {}).mean() / learner.samples
        if training.closed is None:
            if training.extra_epsilon is not None:
                extra = sign * normal(random, (*key, "prior"), like=scale)
                for span in leaves.drawn:
                    extra[span] = epsilon[span]
                epsilon = extra
            w = mean[:random] + scale * epsilon
            loss = loss - training.prior.log_prob(w).sum() / p.size / learner.samples
    if training.closed is None:
        loss = loss - scale.log().sum() / p.size
    else:
        loss = loss + training.closed.value(training.prior, mean[:random], scale, scale.log()).sum() / p.size
    loss.backward()
    return mean.grad, rho.grad


@pytest.mark.parametrize("samples", ["one", "antithetic"])
@pytest.mark.parametrize("name", ["mlp", "batch_norm", "transformer", "lstm"])
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("kind", NOISES)
def test_flat_gradients_equal_autograd(kind: noise.Noise, prior: str, name: str, samples: str) -> None:
    case = CASES[name]
    p = problem(case)
    learner = variational(
        PRIORS[prior],
        kind,
        samples=1 if samples == "one" else 4,
        antithetic=samples != "one",
        posterior=Family(rho=(-4.0, -1.0)),
    )
    with isolated(p.start.device), mode(p.net, True):
        training = learner.start(p)
        batch = Batch(*case.data())
        expected_mean, expected_rho = by_autograd(training, batch, MOMENT)
        training.step([batch], MOMENT)
    for found, expected in ((training.mean.grad, expected_mean), (training.rho.grad, expected_rho)):
        assert float((found - expected).abs().max()) < 1e-6 * max(1.0, float(expected.abs().max()))


@pytest.mark.parametrize("per", ["layer", "network"])
def test_grouped_scales_sum_their_gradients(per: str) -> None:
    """One rho for many weights: its gradient is the sum of what each would get."""
    case = CASES["mlp"]
    p = problem(case)
    with isolated(p.start.device):
        each = variational(priors.gaussian(), posterior=Family(scale=0.1)).start(p)
        few = variational(priors.gaussian(), posterior=Family(per=per, scale=0.1)).start(p)
        batch = Batch(*case.data())
        each.step([batch], MOMENT)
        few.step([batch], MOMENT)
    groups = p.layout.layers() if per == "layer" else (p.layout.random,)
    assert len(few.rho) == len(groups)
    torch.testing.assert_close(
        few.rho.grad, torch.stack([g.sum() for g in each.rho.grad.split(groups)]), rtol=1e-4, atol=1e-6
    )
    torch.testing.assert_close(few.mean.grad, each.mean.grad)


@pytest.mark.parametrize("case", [pytest.param(c, id=k) for k, c in CASES.items() if c.compiles])
@pytest.mark.parametrize("kind", NOISES)
def test_captures_whole(kind: noise.Noise, case: Case) -> None:
    """A noisy pass compiles as one graph, and its gradients reach both leaves."""
    torch._dynamo.reset()
    p = problem(case)
    x, y = case.data()
    leaves = leaves_for(p, kind, torch.full((p.layout.random,), 0.05))
    leaves.draw((0,))
    buffers = {k: b.clone() for k, b in p.buffers.items()}

    def loss(x: Tensor, y: Tensor) -> Tensor:
        with leaves.at_work():
            return -p.likelihood.log_prob(call(p.net, leaves.first, buffers, x), y, {}).mean()

    with mode(p.net, True), isolated(x.device):
        torch.compile(loss, fullgraph=True, backend="aot_eager")(x, y).backward()
    assert float(leaves.gradient.abs().sum()) > 0
    if leaves.sites:
        for span in leaves.ruled:
            assert float(leaves.second_gradient[span].abs().sum()) > 0


def test_a_net_that_changes_its_flow_is_refused() -> None:
    class Fickle(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.more = nn.Linear(4, 4), False

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(self.layer(x)) if self.more else self.layer(x)

    net = Fickle()
    layout, start = lay_out(net)
    x = torch.randn(5, 4)
    uses, _ = probe(net, layout, start, {}, x)
    leaves = Leaves(layout, uses, noise.local, start, torch.full((layout.random,), 0.1), torch.zeros_like(start))
    leaves.draw((0,))
    net.more = True
    with pytest.raises(ValueError, match="twice in one pass"), leaves.at_work():
        call(net, leaves.first, {}, x)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("kind", NOISES)
def test_antithetic_pairs_are_no_noisier_than_independent_draws(kind: noise.Noise, prior: str) -> None:
    """The variance of the gradient of the mean, over steps, with a likelihood that says nearly nothing."""
    case = CASES["mlp"]
    p = problem(case, size=1)
    batch = Batch(case.inputs() * 1e-3, case.data()[1])
    spread = {}
    for antithetic in (False, True):
        learner = variational(PRIORS[prior], kind, 2, antithetic, posterior=Family(scale=0.3))
        with isolated(p.start.device), mode(p.net, True):
            training = learner.start(p)
            found = []
            for step in range(150):
                training.step([batch], Moment(step, 1000, 0, 5, (antithetic, "step", step)))
                found.append(training.mean.grad.clone())
        spread[antithetic] = float(torch.stack(found).var(0).mean())
    assert spread[True] < 1.05 * spread[False] + 1e-9
