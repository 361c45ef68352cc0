"""Laws of the noise room: all of its examples obey them, on every kind of net."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from doxa import noise, priors
from doxa.contracts import Problem
from doxa.engine.context import StepContext
from doxa.errors import BadInput
from doxa.flat import ScalePullback
from doxa.gradients.variational import VariationalGradient
from doxa.learners import variational
from doxa.likelihoods import categorical
from doxa.noise import Leaves
from doxa.noise import leaves as leaves_module
from doxa.noise.interception import Interception
from doxa.noise.leaves import noise_by_weight, noise_sites
from doxa.noise.source import NoiseRequest, PrecomputedSource, RecordingSource, StreamSource, precompute_noise
from doxa.posteriors.mean_field import Family
from doxa.random import streams
from doxa.random.keys import isolated_rng, normal, reseed, stream_of
from doxa.random.philox import fill_normals
from doxa.weights.layout import call, module_mode
from training_context import (
    intercept_noise,
    row_noise_source,
    single_net_leaves,
    single_net_problem,
    step_context,
    step_gradients,
)
from zoo import CASES, Case

EXAMPLES = [(name, kind) for name, kinds in noise.EXAMPLES.items() for kind in kinds]
NOISES = [pytest.param(kind, id=name) for name, kind in EXAMPLES]
WITH_RULE = [pytest.param(kind, id=name) for name, kind in EXAMPLES if kind.rule is not None]
NETS = [pytest.param(c, id=k) for k, c in CASES.items()]


def problem(case: Case) -> Problem:
    return single_net_problem(case.net(), case.inputs(), categorical())


def noisy_forward(p: Problem, leaves: Leaves, x: Tensor, key: tuple[int | str, ...]) -> Tensor:
    """One noisy pass, repeatable by its key."""
    buffers = {k: b[0].clone() for k, b in p.buffers.items()}
    with (
        isolated_rng(p.start.device),
        module_mode(p.net, False),
        intercept_noise(leaves, p.uses, row_noise_source(*key)),
    ):
        reseed(key)
        leaves.draw(stream_of(key))
        return call(p.net, leaves.first[0], buffers, x)


@pytest.mark.parametrize("case", NETS)
@pytest.mark.parametrize("kind", NOISES)
def test_at_scale_zero_the_plain_net_runs(kind: noise.Noise, case: Case) -> None:
    p = problem(case)
    x = case.inputs()
    with module_mode(p.net, False):
        expected = p.net(x)
    output = noisy_forward(p, single_net_leaves(p, kind, torch.zeros(p.layout.random)), x, (1,))
    torch.testing.assert_close(output, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", NETS)
@pytest.mark.parametrize("kind", WITH_RULE)
def test_what_falls_back_to_a_shared_draw_is_listed_and_nothing_else(kind: noise.Noise, case: Case) -> None:
    p = problem(case)
    listed = noise_by_weight(p.layout, p.uses, kind)
    assert {k for k, how in listed.items() if how.startswith("shared")} == set(case.shared)
    assert all("used by" in listed[k] for k in case.shared)
    assert {k for k, how in listed.items() if how == kind.name} == {s.name for s in p.layout.random_slots} - set(
        case.shared
    )


class RecordingInterception(Interception):
    """The interception itself, noting at each site what the rule returned on the very inputs it was given."""

    def __init__(self, sites, rule, source) -> None:
        self.outputs: dict[str, Tensor] = {}

        def keep(apply, x, weight, bias, site, source):
            frozen = self.inputs.setdefault(site.name, x.detach())
            output = rule(apply, frozen, weight, bias, site, source)
            self.outputs[site.name] = (output - apply(frozen, weight, bias)).detach()
            self.rows[site.name] = site.row_axes
            return output

        self.inputs: dict[str, Tensor] = {}
        self.rows: dict[str, tuple[int, ...]] = {}
        super().__init__(sites, keep, source)


def operations(net: nn.Module, x: Tensor) -> int:
    """How many linear maps and convolutions the net really calls, counted from outside."""
    from torch.overrides import TorchFunctionMode

    from doxa.weights.probe import ATTENTION, OPEN_ATTENTION, OPERATIONS

    class Count(TorchFunctionMode):
        calls = 0

        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is ATTENTION:
                with self:
                    return OPEN_ATTENTION(*args, **(kwargs or {}))
            Count.calls += func in OPERATIONS
            return func(*args, **(kwargs or {}))

    with Count(), module_mode(net, True), isolated_rng(x.device):
        net(x)
    return Count.calls


@pytest.mark.parametrize("case", NETS)
@pytest.mark.parametrize("kind", WITH_RULE)
def test_rows_have_uncorrelated_noise_at_every_operation(kind: noise.Noise, case: Case) -> None:
    """Each linear map and convolution the net calls, its input held fixed over draws: rows must not share noise."""
    p = problem(case)
    x = case.inputs(4)
    leaves = single_net_leaves(p, kind, torch.full((p.layout.random,), 0.3))
    sites = noise_sites(p.uses, leaves.first[0], leaves.second[0])
    recorder = RecordingInterception(sites, kind.rule, None)
    outputs_by_site: dict[str, list[Tensor]] = {}
    with isolated_rng(x.device), module_mode(p.net, True), torch.no_grad():
        for s in range(DRAWS):
            reseed((s,))
            leaves.draw(stream_of((s, "w")))
            recorder.visited.clear()
            recorder.source = StreamSource(stream_of((s, "rows")))
            with recorder:
                call(p.net, leaves.first[0], {k: b[0].clone() for k, b in p.buffers.items()}, x)
            for name, output in recorder.outputs.items():
                outputs_by_site.setdefault(name, []).append(output.movedim(recorder.rows[name][0], 0).flatten(1))
    # Every operation whose weight is used once has a site; tied or repeated ones are the listed exceptions.
    excused = operations(p.net, x) - len(sites)
    assert excused == {"tied_embedding": 1, "twice": 2, "cross_attention": 3}.get(
        next(k for k, c in CASES.items() if c is case), 0
    )
    assert len(outputs_by_site) == len(sites)
    for name, outputs in outputs_by_site.items():
        assert not shares_noise(torch.stack(outputs)), f"{name}: rows share noise"


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
    outputs = []
    for s in range(DRAWS):
        reseed((s,))
        outputs.append(F.linear(x, 0.3 * torch.randn_like(layer.weight)).detach())
    assert shares_noise(torch.stack(outputs))


@pytest.mark.parametrize(
    "case",
    [CASES["mlp"], CASES["grouped"], CASES["transposed"], CASES["strided"]],
    ids=["mlp", "grouped", "transposed", "strided"],
)
@pytest.mark.parametrize("kind", WITH_RULE)
def test_same_mean_and_variance_as_shared(kind: noise.Noise, case: Case) -> None:
    """The first operation's output, unit by unit, against shared draws."""
    p = problem(case)
    p.net.eval()
    first = nn.Sequential(next(iter(p.net.children())))
    x = case.inputs(3)
    p = single_net_problem(first, x, categorical())
    scale = torch.rand(p.layout.random, generator=torch.Generator().manual_seed(5)) * 0.3
    moments, draws = [], 3000
    for noise_kind in (noise.shared, kind):
        leaves, outputs = single_net_leaves(p, noise_kind, scale), []
        with torch.no_grad(), isolated_rng(x.device):
            reseed((noise_kind.name,))
            for s in range(draws):
                leaves.draw(stream_of((s, noise_kind.name)))
                with intercept_noise(leaves, p.uses, row_noise_source(s, noise_kind.name)):
                    outputs.append(call(first, leaves.first[0], {}, x))
        stacked = torch.stack(outputs)
        moments.append((stacked.mean(0), stacked.var(0)))
    (mean, variance), (kind_mean, kind_variance) = moments
    z = (mean - kind_mean) / (2 * variance / draws).sqrt()
    assert float(z.abs().max()) < 5
    # The variance of a variance estimate of Gaussian numbers is 2v²/n.
    z = (variance - kind_variance) / (variance * math.sqrt(4 / draws))
    assert float(z.abs().max()) < 5.5


@pytest.mark.parametrize("kind", NOISES)
def test_gradient_is_unbiased(kind: noise.Noise) -> None:
    """On a linear-Gaussian model, E_q[NLL] and its gradient are known: the mean of many pull-backs must match."""
    torch.manual_seed(0)
    net = nn.Linear(3, 1)
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    p = single_net_problem(net, x, categorical())
    start = p.start[0]
    scale = torch.tensor([0.3, 0.5, 0.2, 0.4])
    design = torch.cat([x, torch.ones(8, 1)], 1)
    residual = design @ start - y[:, 0]
    # E ½(x·w − y)² = ½(x·mean − y)² + ½ Σ x²·scale²
    exact_mean = (residual[:, None] * design).mean(0)
    exact_scale = design.square().mean(0) * scale
    leaves = single_net_leaves(p, kind, scale)
    gradients = []
    for s in range(4000):
        leaves.draw(stream_of((s,)))
        with isolated_rng(x.device), intercept_noise(leaves, p.uses, row_noise_source(s)):
            (0.5 * (call(net, leaves.first[0], {}, x) - y).square().mean()).backward()
        by_mean, by_scale = torch.empty(4), torch.empty(4)
        for segment in leaves.segments:
            by_mean[segment.span], second_gradient = (rows[0] for rows in segment.gradients())
            twice = segment.has_rule and kind.pullback is ScalePullback.TIMES_TWICE_SCALE
            by_scale[segment.span] = second_gradient * (2 * scale[segment.span] if twice else segment.epsilon[0])
        gradients.append(torch.cat([by_mean, by_scale]))
    stacked = torch.stack(gradients)
    z = (stacked.mean(0) - torch.cat([exact_mean, exact_scale])) / (stacked.std(0) / math.sqrt(len(gradients)))
    assert float(z.abs().max()) < 4


PRIORS = {name: examples[-1] for name, examples in priors.EXAMPLES.items()}


@pytest.mark.parametrize("name", ["mlp", "lstm", "tied_embedding", "transformer"])
@pytest.mark.parametrize("kind", NOISES)
def test_noise_is_one_stream_however_it_is_cut(kind: noise.Noise, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece for each tensor: each takes its own part of the stream, so that no two weights share a number."""
    monkeypatch.setattr(leaves_module, "LONG", 1)
    p = problem(CASES[name])
    leaves = single_net_leaves(p, kind, torch.full((p.layout.random,), 0.1))
    assert len(leaves.segments) == len(p.layout.random_slots)
    leaves.draw(stream_of((1, "cut")), -1.0)
    whole = -normal(p.layout.random, (1, "cut"), p.start)
    for segment in leaves.segments:
        if segment.epsilon is not None:
            assert torch.equal(segment.epsilon[0], whole[segment.span])
        if not segment.has_rule:
            torch.testing.assert_close(segment.flat[0], p.start[0, segment.span] + 0.1 * whole[segment.span])


def by_autograd(training: VariationalGradient, x: Tensor, y: Tensor, context: StepContext) -> tuple[Tensor, Tensor]:
    """The same free energy with the same noise, differentiated from end to end by autograd alone."""
    p, learner, prior, weight = training.problem, training.learner, training.priors[0], context.kl_weight[0]
    mean = training.mean[0].clone().requires_grad_()
    rho = training.rho[0].clone().requires_grad_()
    random, loss, scale = p.layout.random, torch.zeros(()), F.softplus(rho)
    has_rule = {s.name: learner.noise.applies_to(p.uses, s.name) for s in p.layout.random_slots}

    def numbers(stream: int) -> Tensor:
        out = torch.empty(1, random)
        fill_normals(out, context.stream.with_number(stream), 0, sign)
        return out[0]

    for s in range(learner.samples):
        number = streams.SAMPLE * (s // 2 if learner.antithetic else s)
        sign = -1.0 if learner.antithetic and s % 2 else 1.0
        epsilon = numbers(number + streams.WEIGHTS)
        weights_by_slot, second = [], {}
        for slot in p.layout.slots:
            if not slot.random or has_rule[slot.name]:
                weights_by_slot.append(mean[slot.span])
            else:
                weights_by_slot.append(mean[slot.span] + scale[slot.span] * epsilon[slot.span])
            if slot.random:
                slot_scale = scale[slot.span]
                value = slot_scale.square() if learner.noise is noise.local else slot_scale * epsilon[slot.span]
                second[slot.name] = value.unflatten(0, slot.shape)
        views = p.layout.views(torch.cat(weights_by_slot))
        buffers = {k: b[0].clone() for k, b in training.buffers.items()}
        reseed((int(context.stream.seeds), context.stream.step, number + streams.ROWS))  # for the net's own dropout
        if any(has_rule.values()):
            source = StreamSource(context.stream.with_number(number + streams.ROWS), sign)
            with Interception(noise_sites(p.uses, views, second), learner.noise.rule, source):
                output = call(p.net, views, buffers, x)
        else:
            output = call(p.net, views, buffers, x)
        loss = loss - p.likelihood.log_prob(output, y, {}).mean() / learner.samples
        if training.closed_form is None:
            at_prior = numbers(number + streams.PRIOR)
            for slot in p.layout.random_slots:
                if not has_rule[slot.name]:
                    at_prior[slot.span] = epsilon[slot.span]
            w = mean[:random] + scale * at_prior
            loss = loss - prior.log_prob(w).sum() * weight / learner.samples
    if training.closed_form is None:
        loss = loss - scale.log().sum() * weight
    else:
        loss = loss + prior.kl_from_gaussian(mean[:random], scale, scale.log()).sum() * weight
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
    with isolated_rng(p.start.device), module_mode(p.net, True):
        training = learner.start(p, [learner])
        expected = by_autograd(training, *case.data(), step_context())
        gradients = step_gradients(training, *case.data(), step_context())
    for gradient, exact in zip(gradients, expected, strict=True):
        assert float((gradient - exact).abs().max()) < 1e-6 * max(1.0, float(exact.abs().max()))


@pytest.mark.parametrize("kind", WITH_RULE)
def test_rows_of_zeros_without_a_bias_give_zero_gradients_and_no_nan(kind: noise.Noise) -> None:
    """Their variance is zero, where the slope of a root is infinite: what is above keeps rows of its own."""
    torch.manual_seed(0)
    nets = {"one layer": nn.Linear(4, 3, bias=False)}
    nets["two layers"] = nn.Sequential(nn.Linear(4, 5, bias=False), nn.ReLU(), nn.Linear(5, 3, bias=False))
    x, y = torch.randn(6, 4), torch.tensor([0, 1, 2, 0, 1, 2])
    zeros = torch.zeros_like(x)
    learner = variational(priors.gaussian(), kind, posterior=Family(scale=0.1))
    for name, net in nets.items():
        p = single_net_problem(net, x, categorical())
        leaves = single_net_leaves(p, kind, torch.full((p.layout.random,), 0.1))
        assert float(noisy_forward(p, leaves, zeros, (0,)).detach().abs().max()) < 1e-15
        with isolated_rng(x.device):
            of_zeros = step_gradients(learner.start(p, [learner]), zeros, y, step_context(weight=0.0))
            half = torch.cat([x[:3], zeros[3:]])
            mixed = step_gradients(learner.start(p, [learner]), half, y, step_context(weight=0.0))
        assert all(float(gradient.abs().max()) < 1e-15 for gradient in of_zeros), name
        assert all(gradient.isfinite().all() and gradient.any() for gradient in mixed), name


@pytest.mark.parametrize("per", ["layer", "network"])
def test_grouped_scales_sum_their_gradients(per: str) -> None:
    """One rho for many weights: its gradient is the sum of what each would get."""
    case = CASES["mlp"]
    p = problem(case)
    with isolated_rng(p.start.device):
        per_weight, grouped = (
            variational(priors.gaussian(), posterior=Family(per=q, scale=0.1)) for q in ("weight", per)
        )
        by_mean, by_rho = step_gradients(per_weight.start(p, [per_weight]), *case.data(), step_context())
        mean_too, by_few = step_gradients(grouped.start(p, [grouped]), *case.data(), step_context())
    groups = p.layout.weights_per_layer() if per == "layer" else (p.layout.random,)
    assert len(by_few) == len(groups)
    torch.testing.assert_close(by_few, torch.stack([g.sum() for g in by_rho.split(groups)]), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(mean_too, by_mean)


def precomputed_numbers(leaves: Leaves, p: Problem, x: Tensor) -> list[Tensor]:
    """The numbers that a pass will ask for, made beforehand as for a fleet."""
    recorder = RecordingSource()
    with module_mode(p.net, True), isolated_rng(x.device), intercept_noise(leaves, p.uses, recorder), torch.no_grad():
        call(p.net, leaves.first[0], {k: b[0].clone() for k, b in p.buffers.items()}, x)
    return [rows[0] for rows in precompute_noise(recorder.requests, [(stream_of((0, "rows")), 1.0)])]


@pytest.mark.parametrize("case", [pytest.param(c, id=k) for k, c in CASES.items() if c.compiles])
@pytest.mark.parametrize("kind", NOISES)
def test_captures_whole(kind: noise.Noise, case: Case) -> None:
    """A noisy pass compiles as one graph, and its gradients reach both leaves."""
    torch._dynamo.reset()
    p = problem(case)
    x, y = case.data()
    leaves = single_net_leaves(p, kind, torch.full((p.layout.random,), 0.05))
    leaves.draw(stream_of((0,)))
    buffers = {k: b[0].clone() for k, b in p.buffers.items()}
    noise_numbers = precomputed_numbers(leaves, p, x)

    def loss(x: Tensor, y: Tensor, numbers: list[Tensor]) -> Tensor:
        with intercept_noise(leaves, p.uses, PrecomputedSource(numbers)):
            return -p.likelihood.log_prob(call(p.net, leaves.first[0], buffers, x), y, {}).mean()

    with module_mode(p.net, True), isolated_rng(x.device):
        torch.compile(loss, fullgraph=True, backend="aot_eager")(x, y, noise_numbers).backward()
    for segment in leaves.segments:
        assert all(float(rows.abs().sum()) > 0 for rows in segment.gradients())


def test_a_net_that_changes_its_flow_is_refused() -> None:
    class Fickle(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.more = nn.Linear(4, 4), False

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(self.layer(x)) if self.more else self.layer(x)

    net = Fickle()
    x = torch.randn(5, 4)
    p = single_net_problem(net, x, categorical())
    leaves = single_net_leaves(p, noise.local, torch.full((p.layout.random,), 0.1))
    leaves.draw(stream_of((0,)))
    net.more = True
    with pytest.raises(ValueError, match="twice in one pass"), intercept_noise(leaves, p.uses, row_noise_source(0)):
        call(net, leaves.first[0], {}, x)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("kind", NOISES)
def test_antithetic_pairs_are_no_noisier_than_independent_draws(kind: noise.Noise, prior: str) -> None:
    """The variance of the gradient of the mean, over steps, with a likelihood that says nearly nothing."""
    case = CASES["mlp"]
    p = problem(case)
    spread = {}
    for antithetic in (False, True):
        learner = variational(PRIORS[prior], kind, 2, antithetic, posterior=Family(scale=0.3))
        with isolated_rng(p.start.device), module_mode(p.net, True):
            training = learner.start(p, [learner])
            gradients = []
            for step in range(150):
                context = step_context((antithetic,), step, weight=1.0)
                gradients.append(step_gradients(training, case.inputs() * 1e-3, case.data()[1], context)[0])
        spread[antithetic] = float(torch.stack(gradients).var(0).mean())
    assert spread[True] < 1.05 * spread[False] + 1e-9


def test_no_sample_s_rows_meet_the_next_one_s_numbers() -> None:
    """A pass that asks more often than a sample has streams is told so, alone and among others."""
    request = NoiseRequest(fill_normals, (1,), torch.float32, torch.device("cpu"), flips_sign=True)
    stream = stream_of((0, "rows")).with_number(streams.ROWS)
    source = StreamSource(stream, requests_served=streams.MAX_ROW_REQUESTS - 1)
    last = source.draw(request)
    after = torch.empty(1, 1)
    fill_normals(after, stream.with_number(streams.SAMPLE))  # the next sample's weights
    assert last != after
    with pytest.raises(BadInput, match="65,534 times"):
        source.draw(request)
    with pytest.raises(BadInput, match="65,534 times"):
        precompute_noise([request] * (streams.MAX_ROW_REQUESTS + 1), [(stream, 1.0)])
