"""Other libraries, where they are installed, begin at the belief they are given and pull as Doxa does."""

from __future__ import annotations

import pytest
import torch

import doxa
from doxa_bench.contenders import TABLE, Task, described, offered, quiet
from doxa_bench.steps import GAUSSIAN, Believed, even, plain

ROWS, SCALE = 1e4, 0.05
NOT_INSTALLED = "is not installed"


def problem():
    torch.manual_seed(0)
    net = doxa.nets.mlp(6, (5,), 10)
    return net, torch.randn(32, 6), torch.randint(0, 10, (32,))


@pytest.fixture(params=[(name, noise) for name, library in TABLE.items() for noise in library.noises], ids=", ".join)
def contender(request: pytest.FixtureRequest):
    name, noise = request.param
    if TABLE[name].version is None:
        pytest.skip(f"{name} {NOT_INSTALLED}; benchmarks/peers.txt has it")
    net, x, y = problem()
    found = offered(TABLE[name], Task(net, even(net, SCALE), ROWS, noise), x, y)
    assert not isinstance(found, str), found
    return found, net, x, y


def mean_slope(pupil, x, y, times: int = 400):
    with quiet():
        found = [pupil.slopes(x, y) for _ in range(times)]
    return {name: torch.stack([each[name].detach() for each in found]).mean(0) for name in found[0]}


def test_a_contender_pulls_the_means_as_doxa_does(contender) -> None:
    pupil, net, x, y = contender
    belief = Believed(net, (x, y), doxa.learners.variational(GAUSSIAN), ROWS)
    belief.spread(even(net, SCALE))
    ours, theirs = mean_slope(belief.pupil(), x, y), mean_slope(pupil, x, y)
    assert {*ours} == {*theirs}
    for name, slope in ours.items():
        assert (theirs[name] - slope).norm() < 0.15 * slope.norm() + 1e-3, name


def test_a_contender_draws_about_the_net_and_learns(contender) -> None:
    pupil, net, x, y = contender
    outputs = pupil.outputs(x, 200).detach()
    assert outputs.shape == (200, 32, 10)
    assert (outputs.mean(0) - net(x)).abs().max() < 0.1
    assert outputs.std(0).min() > 0

    def nll() -> float:
        return float(torch.nn.functional.cross_entropy(pupil.outputs(x, 50).detach().mean(0), y))

    before = nll()
    with quiet():
        for _ in range(100):
            pupil.step(x, y)
    assert nll() < before


@pytest.mark.parametrize("noise", ["shared", "local", "flipout"])
def test_doxa_pulls_the_means_as_the_plain_net_where_nothing_is_in_doubt(noise: str) -> None:
    net, x, y = problem()
    belief = Believed(net, (x, y), doxa.learners.variational(GAUSSIAN, doxa.noise.TABLE[noise]), size=1e12)
    belief.spread(even(net, 1e-6))
    ours, theirs = belief.pupil().slopes(x, y), plain(net).slopes(x, y)
    for name, slope in theirs.items():
        assert torch.allclose(ours[name], slope, atol=1e-4), name


def test_a_library_that_cannot_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    net, x, y = problem()
    assert offered(TABLE["torchbnn"], Task(net, even(net), noise="local"), x, y) == "has no local noise"
    absent = type(TABLE["torchbnn"])("no-such-library", ("shared",), "", lambda task: plain(task.net))
    assert offered(absent, Task(net, even(net)), x, y) == NOT_INSTALLED
    assert described([absent]) == {"no-such-library": {"version": None, "kl": ""}}

    def broken(task: Task):
        raise RuntimeError("first line\nsecond line")

    present = type(absent)("torch", ("shared",), "", broken)
    assert offered(present, Task(net, even(net)), x, y) == "fails: RuntimeError: first line"
