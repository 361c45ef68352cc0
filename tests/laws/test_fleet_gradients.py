"""Law of a fleet's gradients: what a step leaves is the slope of the free energy, written out and left to autograd.

Every prior meets every noise and number of draws, one after the other and side by side; nets, likelihoods, groups of
scales and numbers of members take turns, so that any two choices meet somewhere. In float64, where nothing hides.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch import distributions as torchs

from doxa import learners, likelihoods, noise, posteriors, priors
from doxa.contracts import Batch, Problem
from doxa.engine.context import StepContext
from doxa.engine.contracts import Gradient
from doxa.engine.feed import make_feed
from doxa.engine.recipes import materialised
from doxa.noise.interception import Interception
from doxa.noise.leaves import noise_sites
from doxa.noise.source import StreamSource
from doxa.random import streams
from doxa.random.keys import isolated_rng, seed_of
from doxa.random.philox import Stream, fill_normals
from doxa.training.members import Member, net_keys
from doxa.training.problem import build_problem
from doxa.weights.layout import Chooser, Layout, call, lay_out, module_mode

STEP = 5


class Tied(nn.Module):
    """One weight in two places; it lies between weights that are used once."""

    def __init__(self) -> None:
        super().__init__()
        self.last, self.first, self.second = nn.Linear(6, 3), nn.Linear(6, 6), nn.Linear(6, 6)
        self.second.weight = self.first.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.second(self.first(x).tanh()).tanh())


class Odd(nn.Module):
    """A weight that does not lie in order, one without axes, a frozen one, and one that is never used."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 5), nn.Linear(5, 3)
        self.first.weight = nn.Parameter(torch.randn(6, 5).T)
        self.gain, self.idle = nn.Parameter(torch.tensor(0.7)), nn.Parameter(torch.randn(2, 2))
        self.last.weight.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.first(x).tanh() * self.gain)


class Recurrent(nn.Module):
    """Many of these are no single program: they take turns."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.last = nn.LSTM(2, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.body(x.view(-1, 3, 2))[0][:, -1])


def normed() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 7), nn.BatchNorm1d(7), nn.Tanh(), nn.Linear(7, 3))


def convolving() -> nn.Module:
    """These take turns too."""
    image = nn.Unflatten(1, (1, 2, 3))
    return nn.Sequential(image, nn.Conv2d(1, 4, 2), nn.BatchNorm2d(4), nn.Tanh(), nn.Flatten(), nn.Linear(8, 3))


def plain() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 7), nn.Tanh(), nn.Linear(7, 3))


def a_bias(name: str, _: nn.Parameter) -> bool:
    return name.endswith("bias")


NETS: dict[str, tuple[Callable[[], nn.Module], Chooser | None]] = {
    "batch norm": (normed, None),
    "tied": (Tied, None),
    "odd": (Odd, None),
    "lstm": (Recurrent, None),
    "conv": (convolving, None),
    "biases": (plain, a_bias),
}
# Of a member's number k, and a vector and a positive one, a number for each random weight.
PRIORS: dict[str, Callable[[int, Tensor, Tensor], Any]] = {
    "gaussian": lambda k, v, p: priors.gaussian(0.3 + k, 0.1 * k),
    "gaussian of each": lambda k, v, p: priors.gaussian(p, v),
    "gaussian mixed": lambda k, v, p: priors.gaussian(0.5 + k, 0.2 if k % 2 else v),
    "laplace": lambda k, v, p: priors.laplace(0.3 + k, 0.1 * k),
    "laplace of each": lambda k, v, p: priors.laplace(0.3 + k, v),
    "student t": lambda k, v, p: priors.student_t(3.0, 0.3 + k, 0.1 * k),
    "student t of each": lambda k, v, p: priors.student_t(3.0 + k, 0.3, v),
    "mixture": lambda k, v, p: priors.scale_mixture(0.25 + 0.2 * k, 1.0, 0.1, 0.1 * k),
    "mixture of each": lambda k, v, p: priors.scale_mixture(0.25 + 0.2 * k, 1.0, 0.1, v),
    "mixture mixed": lambda k, v, p: priors.scale_mixture(0.25 + 0.2 * k, 1.0, 0.1, 0.1 if k % 2 else v),
}
DRAWS = {"one": (1, False), "a pair": (2, True), "three": (3, False)}
LIKELIHOODS = {"categorical": likelihoods.categorical(), "learned": likelihoods.gaussian_learned(0.7)}

CHOICES = {
    "prior": list(PRIORS),
    "noise": list(noise.TABLE),
    "draws": list(DRAWS),
    "per": ["weight", "layer", "network"],
    "net": list(NETS),
    "members": [1, 2, 3],
    "likelihood": list(LIKELIHOODS),
}


@dataclass(frozen=True)
class Case:
    """A choice of everything."""

    prior: str
    noise: str
    draws: str
    per: str
    net: str
    members: int
    likelihood: str

    def __str__(self) -> str:
        return "-".join(map(str, vars(self).values()))


def fixed_choices() -> Iterator[dict[str, Any]]:
    """Every prior and noise: with every number of draws where each weight has a scale, and once where many share it."""
    for prior, kind in product(PRIORS, noise.TABLE):
        for draws in DRAWS:
            yield {"prior": prior, "noise": kind, "draws": draws, "per": "weight"}
        yield {"prior": prior, "noise": kind}


def cases() -> Iterator[Case]:
    """What was begun, and for the rest each time what has met the others least often."""
    pair_counts: Counter[Any] = Counter()
    for fixed in fixed_choices():
        chosen = list(fixed.items())
        pair_counts.update(combinations(chosen, 2))
        for name in (n for n in CHOICES if n not in fixed):
            options = [(name, value) for value in CHOICES[name]]
            least = min(options, key=lambda option: sorted(pair_counts[choice, option] for choice in chosen))
            pair_counts.update((choice, least) for choice in chosen)
            chosen.append(least)
        yield Case(**dict(chosen))


CASES = list(cases())


def test_any_two_choices_meet() -> None:
    pairs = {pair for case in CASES for pair in combinations(vars(case).items(), 2)}
    for first, second in combinations(CHOICES, 2):
        assert {((first, a), (second, b)) for a, b in product(CHOICES[first], CHOICES[second])} <= pairs


@dataclass(frozen=True)
class FleetAtStep:
    """A fleet at a step, as `doxa.fleet` would bring it there."""

    problem: Problem
    learners: list[Any]
    gradient: Gradient
    batch: Batch
    now: StepContext


def data(likelihood: str) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    x, y = (torch.randn(20, n, generator=generator, dtype=torch.float64) for n in (6, 3))
    return x, y.argmax(1) if likelihood == "categorical" else y


def learner(case: Case, k: int, random: int) -> Any:
    generator = torch.Generator().manual_seed(10 + k)
    some, positive = (f(random, generator=generator, dtype=torch.float64) for f in (torch.randn, torch.rand))
    samples, antithetic = DRAWS[case.draws]
    return learners.variational(
        PRIORS[case.prior](k, 0.3 * some, 0.3 + positive),
        noise.TABLE[case.noise],
        samples,
        antithetic,
        posteriors.mean_field(case.per, rho=(-3.0, 0.0)),
    )


def start_fleet(case: Case) -> FleetAtStep:
    make, random = NETS[case.net]
    with isolated_rng(torch.device("cpu")):
        torch.manual_seed(0)
        nets = [make().double() for _ in range(case.members)]
    layout, like = lay_out(nets[0], random)
    members = [Member(net, learner(case, k, layout.random), seed=7 * k + 1) for k, net in enumerate(nets)]
    source = make_feed(data(case.likelihood), like[:1], 8, None, [None] * len(members))
    problem = build_problem(members, source, LIKELIHOODS[case.likelihood], random, like.device, None)
    fleet_learners = [member.learner for member in members]
    net_seeds = torch.tensor([seed_of(key) for key in net_keys(members)])
    weights = torch.tensor([0.01, 0.02, 0.03][: len(members)], dtype=torch.float64)
    batch = next(source.epoch(0, net_seeds, 0))
    return FleetAtStep(
        problem,
        fleet_learners,
        fleet_learners[0].start(problem, fleet_learners),
        batch,
        StepContext(Stream(net_seeds, STEP), weights, ()),
    )


def as_torch_s(prior: Any, like: Tensor) -> torchs.Distribution:
    """The prior in torch's words, one for each weight."""
    centre = torch.as_tensor(prior.centre, dtype=like.dtype).expand_as(like)
    if isinstance(prior, priors.scale_mixture):
        shares, scales = like.new_tensor([[prior.share, 1 - prior.share], [prior.wide, prior.narrow]])
        return torchs.MixtureSameFamily(torchs.Categorical(shares), torchs.Normal(centre[:, None], scales))
    if isinstance(prior, priors.student_t):
        return torchs.StudentT(prior.degrees, centre, prior.scale)
    return (torchs.Normal if isinstance(prior, priors.gaussian) else torchs.Laplace)(centre, prior.scale)


def numbers(stream: Stream, stream_number: int, sign: float, like: Tensor) -> Tensor:
    """A draw's standard normals, turned round by the sign."""
    normals = torch.empty_like(like)[None]
    fill_normals(normals, stream.with_number(stream.number + stream_number))
    return sign * normals[0]


@dataclass
class ReferenceFreeEnergy:
    """The free energy of one member at a step, in terms of its mean [P] and rho [G]."""

    fleet: FleetAtStep
    member: int
    mean: Tensor
    rho: Tensor

    def __post_init__(self) -> None:
        self.problem, self.learner = self.fleet.problem, self.fleet.learners[self.member]
        layout, kind = self.problem.layout, self.learner.noise
        sizes = {"weight": (1,) * layout.random, "layer": layout.weights_per_layer(), "network": (layout.random,)}
        groups = torch.tensor(sizes[self.learner.posterior.per])
        self.middle, self.scale = self.mean[: layout.random], F.softplus(self.rho).repeat_interleave(groups)
        self.has_rule = torch.zeros(layout.random, dtype=torch.bool)
        for slot in layout.random_slots:
            self.has_rule[slot.span] = kind.applies_to(self.problem.uses, slot.name)
        self.prior = as_torch_s(self.learner.prior, self.middle.detach())
        self.q = torchs.Normal(self.middle, self.scale)

    def draw(self, sample: int) -> tuple[Stream, float]:
        """Each draw has streams of its own; antithetic ones share them, two by two, and differ in sign."""
        number, sign = (sample // 2, 1.0 - 2.0 * (sample % 2)) if self.learner.antithetic else (sample, 1.0)
        return Stream(self.fleet.now.stream.seeds[self.member, None], STEP, streams.SAMPLE * number), sign

    def nll(self, sample: int, buffers: dict[str, Tensor]) -> Tensor:
        """Of one draw; buffers are changed in place."""
        problem, kind, (stream, sign) = self.problem, self.learner.noise, self.draw(sample)
        weight_noise = self.scale * numbers(stream, streams.WEIGHTS, sign, self.middle)
        random_weights = torch.where(self.has_rule, self.middle, self.middle + weight_noise)
        flat = torch.cat([random_weights, self.mean[problem.layout.random :]])
        first, parameters = problem.layout.weights(flat), problem.layout.parameters(flat)
        second = Layout(problem.layout.random_slots).views(self.scale**2 if kind is noise.local else weight_noise)
        interception: Any = nullcontext()
        if bool(self.has_rule.any()):
            source = StreamSource(stream.with_number(stream.number + streams.ROWS), sign)
            interception = Interception(noise_sites(problem.uses, first, second), kind.rule, source)
        with interception:
            output = call(problem.net, first, buffers, self.fleet.batch.x[self.member])
        return -problem.likelihood.log_prob(output, self.fleet.batch.y[self.member], parameters).mean()

    def cross_entropy(self, sample: int) -> Tensor:
        """−log p at the draw that the net ran on; where it ran on none, at one of the prior's own."""
        stream, sign = self.draw(sample)
        net_epsilon, prior_epsilon = (
            numbers(stream, stream_number, sign, self.middle) for stream_number in (streams.WEIGHTS, streams.PRIOR)
        )
        return -self.prior.log_prob(
            self.middle + self.scale * torch.where(self.has_rule, prior_epsilon, net_epsilon)
        ).sum()

    def kl(self) -> Tensor:
        """In closed form where torch knows one, else the mean over the draws."""
        if isinstance(self.prior, torchs.Normal | torchs.Laplace):
            return torchs.kl_divergence(self.q, self.prior).sum()
        samples = range(self.learner.samples)
        return sum(self.cross_entropy(s) for s in samples) / len(samples) - self.q.entropy().sum()


# The NLL, the slopes by mean and rho, and the buffers.
Expected = tuple[Tensor, tuple[Tensor, ...], dict[str, Tensor]]


def expected(fleet: FleetAtStep, member: int) -> Expected:
    """What a step should leave of a member; of buffers the mean over the draws."""
    mean, rho = (p.values[member].clone().requires_grad_() for p in fleet.gradient.parameters)
    written = ReferenceFreeEnergy(fleet, member, mean, rho)
    samples = written.learner.samples
    buffers_by_draw = [{k: b[member].clone() for k, b in fleet.problem.buffers.items()} for _ in range(samples)]
    nll = sum(written.nll(s, buffers_by_draw[s]) for s in range(samples)) / samples
    slopes = torch.autograd.grad(nll + fleet.now.kl_weight[member] * written.kl(), (mean, rho))
    mean_buffers = {
        k: torch.stack([draw_buffers[k].double() for draw_buffers in buffers_by_draw]).mean(0)
        for k in buffers_by_draw[0]
    }
    return nll.detach(), slopes, mean_buffers


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_fleet_s_gradients_are_autograd_s(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """By mean and rho, for every member; losses and BatchNorm's statistics too. Then the way of a GPU, side by side."""
    fleet = start_fleet(case)
    with isolated_rng(torch.device("cpu")), module_mode(fleet.problem.net, True):
        exact = [expected(fleet, k) for k in range(case.members)]
        compare(fleet, exact)
        if fleet.learners[0].samples > 1 and fleet.problem.uses.supports_vmap:
            monkeypatch.setattr(sys.modules["doxa.gradients.variational"], "vectorizes_draws", lambda problem: True)
            compare(start_fleet(case), exact)


def compare(fleet: FleetAtStep, exact: list[Expected]) -> None:
    """Take the step and look at what it leaves; again, since nothing of the first may be left in the second."""
    gradient = fleet.gradient
    for second_time in (False, True):
        losses = gradient.evaluate(fleet.batch, fleet.now)
        by = materialised(gradient, fleet.now)
        for k, (nll, slopes, buffers) in enumerate(exact):
            pairs = [(losses[k], nll), *((by[p.name][k], g) for p, g in zip(gradient.parameters, slopes, strict=True))]
            if not second_time:
                pairs += [(value.double(), buffers[name]) for name, value in gradient.beliefs().buffers(k)[0].items()]
            for value, exact_value in pairs:
                torch.testing.assert_close(value, exact_value, rtol=1e-9, atol=1e-12)
