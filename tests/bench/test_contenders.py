"""Other libraries, where they are installed, begin at the belief they are given and pull as Doxa does."""

from __future__ import annotations

import pytest
import torch

import doxa
from doxa_bench.contenders import TABLE, LearningTask, describe_libraries, suppress_warnings, try_library
from doxa_bench.trainables import GAUSSIAN, BeliefTrainer, equal_scales, plain_model

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
    trainable = try_library(TABLE[name], LearningTask(net, equal_scales(net, SCALE), ROWS, noise), x, y)
    assert not isinstance(trainable, str), trainable
    return trainable, net, x, y


def mean_gradient(trainable, x, y, times: int = 400):
    with suppress_warnings():
        gradients = [trainable.mean_gradients(x, y) for _ in range(times)]
    return {name: torch.stack([each[name].detach() for each in gradients]).mean(0) for name in gradients[0]}


def test_a_contender_pulls_the_means_as_doxa_does(contender) -> None:
    trainable, net, x, y = contender
    belief = BeliefTrainer(net, (x, y), doxa.learners.variational(GAUSSIAN), ROWS)
    belief.set_scales(equal_scales(net, SCALE))
    ours, theirs = mean_gradient(belief.trainable_model(), x, y), mean_gradient(trainable, x, y)
    assert {*ours} == {*theirs}
    for name, slope in ours.items():
        assert (theirs[name] - slope).norm() < 0.15 * slope.norm() + 1e-3, name


def test_a_contender_draws_about_the_net_and_learns(contender) -> None:
    trainable, net, x, y = contender
    outputs = trainable.outputs(x, 200).detach()
    assert outputs.shape == (200, 32, 10)
    assert (outputs.mean(0) - net(x)).abs().max() < 0.1
    assert outputs.std(0).min() > 0

    def nll() -> float:
        return float(torch.nn.functional.cross_entropy(trainable.outputs(x, 50).detach().mean(0), y))

    before = nll()
    with suppress_warnings():
        for _ in range(100):
            trainable.step(x, y)
    assert nll() < before


@pytest.mark.parametrize("noise", ["shared", "local", "flipout"])
def test_doxa_pulls_the_means_as_the_plain_net_where_nothing_is_in_doubt(noise: str) -> None:
    net, x, y = problem()
    belief = BeliefTrainer(net, (x, y), doxa.learners.variational(GAUSSIAN, doxa.noise.TABLE[noise]), size=1e12)
    belief.set_scales(equal_scales(net, 1e-6))
    ours, theirs = belief.trainable_model().mean_gradients(x, y), plain_model(net).mean_gradients(x, y)
    for name, slope in theirs.items():
        assert torch.allclose(ours[name], slope, atol=1e-4), name


def test_a_library_that_cannot_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    net, x, y = problem()
    assert (
        try_library(TABLE["torchbnn"], LearningTask(net, equal_scales(net), noise="local"), x, y)
        == "has no local noise"
    )
    absent = type(TABLE["torchbnn"])("no-such-library", ("shared",), "", lambda task: plain_model(task.net))
    assert try_library(absent, LearningTask(net, equal_scales(net)), x, y) == NOT_INSTALLED
    assert describe_libraries([absent]) == {"no-such-library": {"version": None, "kl": ""}}

    def broken(task: LearningTask):
        raise RuntimeError("first line\nsecond line")

    present = type(absent)("torch", ("shared",), "", broken)
    assert try_library(present, LearningTask(net, equal_scales(net)), x, y) == "fails: RuntimeError: first line"
