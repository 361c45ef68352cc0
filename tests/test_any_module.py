"""Any torch module, untouched, with every noise: learn, predict, save, load, copy."""

from __future__ import annotations

import copy
import functools
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch

import doxa
from doxa import kl_weights, learners, likelihoods, noise, priors
from zoo import CASES


def believe(name: str, kind: str, **fit_options) -> doxa.Belief:
    case = CASES[name]
    learner = learners.variational(
        priors.gaussian(1.0),
        noise.TABLE[kind],
        kl_weight=kl_weights.tempered(0.1),
        samples=fit_options.pop("samples", 1),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return doxa.fit(
            case.net(),
            case.data(24),
            learner=learner,
            likelihood=likelihoods.categorical(),
            epochs=6,
            batch_size=8,
            lr=3e-3,
            **fit_options,
        )


@pytest.mark.parametrize("kind", noise.TABLE)
@pytest.mark.parametrize("name", CASES)
def test_learns_predicts_saves_loads_and_copies(name: str, kind: str, tmp_path) -> None:
    case = CASES[name]
    net = case.net()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    belief = believe(name, kind)
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())
    history = belief.record.history
    assert history[-1]["nll"] < history[0]["nll"]
    x = case.inputs(5)
    draws = belief.predict(x, samples=4)
    assert draws.outputs.shape == (4, 5, case.classes)
    assert draws.outputs.isfinite().all()
    assert not torch.equal(draws.outputs[0], draws.outputs[1])
    torch.testing.assert_close(draws.mean.sum(-1), torch.ones(5))
    belief.save(tmp_path / "b.doxa")
    for again in (doxa.load(tmp_path / "b.doxa", case.net()), copy.deepcopy(belief)):
        assert torch.equal(again.predict(x, samples=4).outputs, draws.outputs)
        assert again.noise == belief.noise
    fallbacks = {k for k, family in belief.noise.items() if family.startswith("shared (")}
    assert fallbacks == (set() if kind == "shared" else set(case.shared))


@pytest.mark.parametrize("name", CASES)
def test_at_scale_zero_prediction_equals_the_plain_net(name: str) -> None:
    case = CASES[name]
    belief = believe(name, "shared")
    point = doxa.posteriors.delta(belief.posterior.mean, belief.layout.random)
    point_belief = doxa.Belief(belief.net, belief.likelihood, point, belief.layout, belief.buffers)
    x = case.inputs(5)
    plain = belief.plain().eval()
    with torch.no_grad():
        expected = plain(x)
    torch.testing.assert_close(point_belief.predict(x).outputs[0], expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(belief.predict_at_mean(x).outputs[0], expected, rtol=1e-5, atol=1e-6)
    zero_scale = doxa.posteriors.MeanField(belief.posterior.mean, torch.full_like(belief.posterior.rho, -torch.inf))
    zero_scale_belief = doxa.Belief(belief.net, belief.likelihood, zero_scale, belief.layout, belief.buffers)
    torch.testing.assert_close(zero_scale_belief.predict(x, samples=2).outputs[1], expected, rtol=1e-5, atol=1e-6)


PLAIN = """
import os, torch
from zoo import CASES
torch.set_num_threads(1)
for name, case in CASES.items():
    child = os.fork()
    if child == 0:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            case.net()(case.inputs(8)).float().sum().backward()
        os._exit(0)
    if not os.WIFSIGNALED(os.waitpid(child, 0)[1]):
        print(name)
"""


@functools.cache
def torch_itself_can() -> set[str]:
    """The plain nets that survive bfloat16 here: some processors lack instructions that torch believes they have."""
    finished = subprocess.run(
        [sys.executable, "-c", PLAIN],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=Path(__file__).parent,
        check=True,
    )
    return set(finished.stdout.split())


@pytest.mark.parametrize("kind", noise.TABLE)
@pytest.mark.parametrize("name", CASES)
def test_trains_in_bfloat16(name: str, kind: str) -> None:
    """Autocast leaves the beliefs in single precision and still learns."""
    if name not in torch_itself_can():
        pytest.skip("the plain torch net crashes in bfloat16 on this processor")
    belief = believe(name, kind, autocast=torch.bfloat16)
    assert belief.posterior.mean.dtype == torch.float32
    history = belief.record.history
    assert history[-1]["nll"] < history[0]["nll"]
    assert belief.predict(CASES[name].inputs(5), samples=3, autocast=torch.bfloat16).outputs.isfinite().all()


@pytest.mark.parametrize("name", ["mlp", "batch_norm", "transformer"])
def test_the_fallbacks_are_told_once(name: str) -> None:
    case = CASES[name]
    learner = learners.variational(priors.gaussian(1.0), noise.flipout)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        doxa.fit(case.net(), case.data(), learner=learner, likelihood=likelihoods.categorical(), epochs=2)
    fallback_warnings = [str(w.message) for w in caught if "shared draw" in str(w.message)]
    assert len(fallback_warnings) == (1 if case.shared else 0)
    assert all(weight in fallback_warnings[0] for weight in case.shared)
