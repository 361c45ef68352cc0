"""Laws of the noise room: every row of its table obeys them, on every kind of net."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from at_work import at_step, leaves_of_one, noisy, posed, rows_of, stepped
from doxa import noise, priors
from doxa.contracts import Problem
from doxa.engine.context import StepContext
from doxa.flat import Turn
from doxa.gradients.variational import VariationalGradient
from doxa.learners import variational
from doxa.likelihoods import categorical
from doxa.noise import Leaves
from doxa.noise import leaves as leaves_module
from doxa.noise.interception import Interception
from doxa.noise.leaves import PRIOR, ROWS, SAMPLE, WEIGHTS, noise_of, sites_of
from doxa.noise.source import Alone, Handed, Listening, made
from doxa.posteriors.mean_field import Family
from doxa.random.keys import isolated, normal, reseed, stream_of
from doxa.random.philox import fill_normals
from doxa.weights.layout import call, mode
from zoo import CASES, Case

NOISES = [pytest.param(n, id=k) for k, n in noise.TABLE.items()]
RULED = [pytest.param(n, id=k) for k, n in noise.TABLE.items() if n.rule is not None]
NETS = [pytest.param(c, id=k) for k, c in CASES.items()]


def problem(case: Case) -> Problem:
    return posed(case.net(), case.inputs(), categorical())


def run(p: Problem, leaves: Leaves, x: Tensor, key: tuple[int | str, ...]) -> Tensor:
    """One noisy pass, repeatable by its key."""
    buffers = {k: b[0].clone() for k, b in p.buffers.items()}
    with isolated(p.start.device), mode(p.net, False), noisy(leaves, p.uses, rows_of(*key)):
        reseed(key)
        leaves.draw(stream_of(key))
        return call(p.net, leaves.first[0], buffers, x)


@pytest.mark.parametrize("case", NETS)
@pytest.mark.parametrize("kind", NOISES)
def test_at_scale_zero_the_plain_net_runs(kind: noise.Noise, case: Case) -> None:
    p = problem(case)
    x = case.inputs()
    with mode(p.net, False):
        expected = p.net(x)
    found = run(p, leaves_of_one(p, kind, torch.zeros(p.layout.random)), x, (1,))
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

    with Count(), mode(net, True), isolated(x.device):
        net(x)
    return Count.calls


@pytest.mark.parametrize("case", NETS)
@pytest.mark.parametrize("kind", RULED)
def test_rows_have_uncorrelated_noise_at_every_operation(kind: noise.Noise, case: Case) -> None:
    """Each linear map and convolution the net calls, its input held fixed over draws: rows must not share noise."""
    p = problem(case)
    x = case.inputs(4)
    leaves = leaves_of_one(p, kind, torch.full((p.layout.random,), 0.3))
    sites = sites_of(p.uses, leaves.first[0], leaves.second[0])
    heard = Overheard(sites, kind.rule, None)
    seen: dict[str, list[Tensor]] = {}
    with isolated(x.device), mode(p.net, True), torch.no_grad():
        for s in range(DRAWS):
            reseed((s,))
            leaves.draw(stream_of((s, "w")))
            heard.met.clear()
            heard.source = Alone(stream_of((s, "rows")))
            with heard:
                call(p.net, leaves.first[0], {k: b[0].clone() for k, b in p.buffers.items()}, x)
            for name, output in heard.outputs.items():
                seen.setdefault(name, []).append(output.movedim(heard.rows[name][0], 0).flatten(1))
    # Every operation whose weight is used once has a site; tied or repeated ones are the listed exceptions.
    excused = operations(p.net, x) - len(sites)
    assert excused == {"tied_embedding": 1, "twice": 2, "cross_attention": 3}.get(
        next(k for k, c in CASES.items() if c is case), 0
    )
    assert len(seen) == len(sites)
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
    x = case.inputs(3)
    p = posed(first, x, categorical())
    scale = torch.rand(p.layout.random, generator=torch.Generator().manual_seed(5)) * 0.3
    moments, draws = [], 3000
    for each in (noise.shared, kind):
        leaves, outputs = leaves_of_one(p, each, scale), []
        with torch.no_grad(), isolated(x.device):
            reseed((each.name,))
            for s in range(draws):
                leaves.draw(stream_of((s, each.name)))
                with noisy(leaves, p.uses, rows_of(s, each.name)):
                    outputs.append(call(first, leaves.first[0], {}, x))
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
    p = posed(net, x, categorical())
    start = p.start[0]
    scale = torch.tensor([0.3, 0.5, 0.2, 0.4])
    design = torch.cat([x, torch.ones(8, 1)], 1)
    residual = design @ start - y[:, 0]
    # E ½(x·w − y)² = ½(x·mean − y)² + ½ Σ x²·scale²
    exact_mean = (residual[:, None] * design).mean(0)
    exact_scale = design.square().mean(0) * scale
    leaves = leaves_of_one(p, kind, scale)
    found = []
    for s in range(4000):
        leaves.draw(stream_of((s,)))
        with isolated(x.device), noisy(leaves, p.uses, rows_of(s)):
            (0.5 * (call(net, leaves.first[0], {}, x) - y).square().mean()).backward()
        by_mean, by_scale = torch.empty(4), torch.empty(4)
        for piece in leaves.pieces:
            by_mean[piece.span], given = (rows[0] for rows in piece.gradients())
            twice = piece.ruled and kind.turn is Turn.TIMES_TWICE_SCALE
            by_scale[piece.span] = given * (2 * scale[piece.span] if twice else piece.epsilon[0])
        found.append(torch.cat([by_mean, by_scale]))
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
    """A piece for each tensor: each takes its own part of the stream, so that no two weights share a number."""
    monkeypatch.setattr(leaves_module, "LONG", 1)
    p = problem(CASES[name])
    leaves = leaves_of_one(p, kind, torch.full((p.layout.random,), 0.1))
    assert len(leaves.pieces) == len(p.layout.random_slots)
    leaves.draw(stream_of((1, "cut")), -1.0)
    whole = -normal(p.layout.random, (1, "cut"), p.start)
    for piece in leaves.pieces:
        if piece.epsilon is not None:
            assert torch.equal(piece.epsilon[0], whole[piece.span])
        if not piece.ruled:
            torch.testing.assert_close(piece.flat[0], p.start[0, piece.span] + 0.1 * whole[piece.span])


def by_autograd(training: VariationalGradient, x: Tensor, y: Tensor, at: StepContext) -> tuple[Tensor, Tensor]:
    """The same free energy with the same noise, differentiated from end to end by autograd alone."""
    p, learner, prior, weight = training.problem, training.learner, training.priors[0], at.kl_weight[0]
    mean = training.mean[0].clone().requires_grad_()
    rho = training.rho[0].clone().requires_grad_()
    random, loss, scale = p.layout.random, torch.zeros(()), F.softplus(rho)
    ruled = {s.name: learner.noise.reaches(p.uses, s.name) for s in p.layout.random_slots}

    def numbers(stream: int) -> Tensor:
        out = torch.empty(1, random)
        fill_normals(out, at.stream.other(stream), 0, sign)
        return out[0]

    for s in range(learner.samples):
        number = SAMPLE * (s // 2 if learner.antithetic else s)
        sign = -1.0 if learner.antithetic and s % 2 else 1.0
        epsilon = numbers(number + WEIGHTS)
        drawn, second = [], {}
        for slot in p.layout.slots:
            if not slot.random or ruled[slot.name]:
                drawn.append(mean[slot.span])
            else:
                drawn.append(mean[slot.span] + scale[slot.span] * epsilon[slot.span])
            if slot.random:
                own = scale[slot.span]
                value = own.square() if learner.noise is noise.local else own * epsilon[slot.span]
                second[slot.name] = value.unflatten(0, slot.shape)
        views = p.layout.views(torch.cat(drawn))
        buffers = {k: b[0].clone() for k, b in training.buffers.items()}
        reseed((int(at.stream.seeds), at.stream.step, number + ROWS))  # for the net's own dropout
        if any(ruled.values()):
            source = Alone(at.stream.other(number + ROWS), sign)
            with Interception(sites_of(p.uses, views, second), learner.noise.rule, source):
                output = call(p.net, views, buffers, x)
        else:
            output = call(p.net, views, buffers, x)
        loss = loss - p.likelihood.log_prob(output, y, {}).mean() / learner.samples
        if training.closed is None:
            at_prior = numbers(number + PRIOR)
            for slot in p.layout.random_slots:
                if not ruled[slot.name]:
                    at_prior[slot.span] = epsilon[slot.span]
            w = mean[:random] + scale * at_prior
            loss = loss - prior.log_prob(w).sum() * weight / learner.samples
    if training.closed is None:
        loss = loss - scale.log().sum() * weight
    else:
        loss = loss + training.closed.value(prior, mean[:random], scale, scale.log()).sum() * weight
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
        training = learner.start(p, [learner])
        expected = by_autograd(training, *case.data(), at_step())
        gradients = stepped(training, *case.data(), at_step())
    for found, exact in zip(gradients, expected, strict=True):
        assert float((found - exact).abs().max()) < 1e-6 * max(1.0, float(exact.abs().max()))


@pytest.mark.parametrize("per", ["layer", "network"])
def test_grouped_scales_sum_their_gradients(per: str) -> None:
    """One rho for many weights: its gradient is the sum of what each would get."""
    case = CASES["mlp"]
    p = problem(case)
    with isolated(p.start.device):
        each, few = (variational(priors.gaussian(), posterior=Family(per=q, scale=0.1)) for q in ("weight", per))
        by_mean, by_rho = stepped(each.start(p, [each]), *case.data(), at_step())
        mean_too, by_few = stepped(few.start(p, [few]), *case.data(), at_step())
    groups = p.layout.layers() if per == "layer" else (p.layout.random,)
    assert len(by_few) == len(groups)
    torch.testing.assert_close(by_few, torch.stack([g.sum() for g in by_rho.split(groups)]), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(mean_too, by_mean)


def heard_by(leaves: Leaves, p: Problem, x: Tensor) -> list[Tensor]:
    """The numbers that a pass will ask for, made beforehand as for a fleet."""
    listening = Listening()
    with mode(p.net, True), isolated(x.device), noisy(leaves, p.uses, listening), torch.no_grad():
        call(p.net, leaves.first[0], {k: b[0].clone() for k, b in p.buffers.items()}, x)
    return [rows[0] for rows in made(listening.asked, [(stream_of((0, "rows")), 1.0)])]


@pytest.mark.parametrize("case", [pytest.param(c, id=k) for k, c in CASES.items() if c.compiles])
@pytest.mark.parametrize("kind", NOISES)
def test_captures_whole(kind: noise.Noise, case: Case) -> None:
    """A noisy pass compiles as one graph, and its gradients reach both leaves."""
    torch._dynamo.reset()
    p = problem(case)
    x, y = case.data()
    leaves = leaves_of_one(p, kind, torch.full((p.layout.random,), 0.05))
    leaves.draw(stream_of((0,)))
    buffers = {k: b[0].clone() for k, b in p.buffers.items()}
    asked = heard_by(leaves, p, x)

    def loss(x: Tensor, y: Tensor, numbers: list[Tensor]) -> Tensor:
        with noisy(leaves, p.uses, Handed(numbers)):
            return -p.likelihood.log_prob(call(p.net, leaves.first[0], buffers, x), y, {}).mean()

    with mode(p.net, True), isolated(x.device):
        torch.compile(loss, fullgraph=True, backend="aot_eager")(x, y, asked).backward()
    for piece in leaves.pieces:
        assert all(float(rows.abs().sum()) > 0 for rows in piece.gradients())


def test_a_net_that_changes_its_flow_is_refused() -> None:
    class Fickle(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.more = nn.Linear(4, 4), False

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(self.layer(x)) if self.more else self.layer(x)

    net = Fickle()
    x = torch.randn(5, 4)
    p = posed(net, x, categorical())
    leaves = leaves_of_one(p, noise.local, torch.full((p.layout.random,), 0.1))
    leaves.draw(stream_of((0,)))
    net.more = True
    with pytest.raises(ValueError, match="twice in one pass"), noisy(leaves, p.uses, rows_of(0)):
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
        with isolated(p.start.device), mode(p.net, True):
            training = learner.start(p, [learner])
            found = []
            for step in range(150):
                at = at_step((antithetic,), step, weight=1.0)
                found.append(stepped(training, case.inputs() * 1e-3, case.data()[1], at)[0])
        spread[antithetic] = float(torch.stack(found).var(0).mean())
    assert spread[True] < 1.05 * spread[False] + 1e-9
