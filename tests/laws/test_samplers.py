"""Laws of sampling and averaging: Langevin dynamics against what is known of it in closed form, means against means.

The target is the posterior of y ~ N(wx, 1), w ~ N(0, 1): Gaussian, of precision Λ = Σ x² + 1.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import doxa
from doxa import learners, likelihoods, optimisers, priors, rates
from doxa.collectors import chain as chain_module
from doxa.errors import BadInput, BrokenFile
from test_capture import Record, record

__all__ = ["record"]  # a fixture

ROWS = 64


def data() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(ROWS, 1, generator=generator, dtype=torch.float64)
    return x, 0.7 * x + torch.randn(ROWS, 1, generator=generator, dtype=torch.float64)


def exact() -> tuple[float, float]:
    """The posterior's mean and precision."""
    x, y = data()
    precision = float(x.square().sum()) + 1
    return float((x * y).sum()) / precision, precision


class Apart(nn.Module):
    """As many slopes as there are outputs, each of which has the data to itself: so many chains in one net."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.slopes = nn.Parameter(torch.zeros(count, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.slopes


def chains(count: int, steps: int, batch_size: int = ROWS, temperature: float = 1.0, **more: Any) -> Tensor:
    """Every state after burn-in of so many independent chains [chains, states]."""
    x, y = data()
    learner = learners.langevin(priors.gaussian(1.0), temperature, burn_in=0.05, thinning=1)
    likelihood, epochs = likelihoods.gaussian(1.0), steps * batch_size // ROWS
    keys: dict[str, Any] = {"likelihood": likelihood, "epochs": epochs, "batch_size": batch_size, "progress": False}
    belief = doxa.fit(Apart(count), (x, y.expand(-1, count)), learner=learner, **keys, **more)
    return belief.posterior.rows.T


def net(bias: bool = False) -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(1, 1, bias=bias).double()


def effective(states: Tensor) -> float:
    """So many independent draws would have a mean as uncertain as that of these chains."""
    return len(states) * float(states.var() / states.mean(1).var())


def test_minibatches_leave_the_mean_where_it_is() -> None:
    mean, precision = exact()
    states = chains(1000, 3000, batch_size=16, lr=0.1 * ROWS / precision)
    assert effective(states) >= 50_000
    assert abs(float(states.mean()) - mean) < 0.05 * precision**-0.5


@pytest.mark.parametrize("temperature", [1.0, 0.25])
@pytest.mark.parametrize("share", [0.5, 0.05])
def test_of_all_rows_the_variance_is_that_of_the_discrete_chain(share: float, temperature: float) -> None:
    """w ← (1 − rλ) w + … + √(2rT/N) ξ has variance T/Λ · 1/(1 − rλ/2), λ = Λ/N; `share` is rλ."""
    mean, precision = exact()
    states = chains(2000, 1000, lr=share * ROWS / precision, temperature=temperature)
    chain_variances = (states - mean).square().mean(1)
    error = float(chain_variances.std()) / len(chain_variances) ** 0.5
    exact_variance = temperature / precision / (1 - share / 2)
    assert error < 0.02 * exact_variance
    assert abs(float(chain_variances.mean()) - exact_variance) < 4 * error


def test_a_falling_step_brings_the_variance_to_the_posterior_s() -> None:
    mean, precision = exact()
    rate = rates.polynomial(0.5 * ROWS / precision, after=5, power=0.6)
    chain_variances = (chains(1000, 1500, lr=rate)[:, -400:] - mean).square().mean(1)
    error = float(chain_variances.std()) / len(chain_variances) ** 0.5
    assert abs(float(chain_variances.mean()) * precision - 1) < 4 * error * precision + 0.02


def test_point_estimates_get_no_noise_and_no_temperature_none() -> None:
    keys: dict[str, Any] = {"likelihood": likelihoods.gaussian(1.0), "epochs": 30, "batch_size": 16, "lr": 0.01}
    keys |= {"progress": False, "seed": 5}
    cold = doxa.fit(net(True), data(), learner=learners.langevin(priors.gaussian(1.0), 0.0), **keys)
    plain = doxa.fit(
        net(True), data(), learner=learners.point(priors.gaussian(1.0)), optimiser=optimisers.sgd(), **keys
    )
    torch.testing.assert_close(cold.posterior.rows[-1], plain.posterior.mean, rtol=1e-12, atol=1e-12)
    assert cold.record.settings["learner"]["temperature"] == 0.0
    assert cold.record.history[-1]["temperature"] == 0.0

    def is_weight(name: str, _: Any) -> bool:
        return name == "weight"

    # With the weight held by its prior, the bias is the only thing that learns: as without noise.
    tight = learners.langevin(priors.gaussian(1e-9), 1.0, burn_in=0.0, thinning=1)
    halves = [
        doxa.fit(net(True), data(), learner=tight, random=is_weight, optimiser=None, **{**keys, "seed": s, "lr": 1e-22})
        for s in (1, 2)
    ]
    assert not torch.equal(halves[0].posterior.rows[:, 0], halves[1].posterior.rows[:, 0])
    assert torch.equal(halves[0].posterior.rows[:, 1], halves[1].posterior.rows[:, 1])


def small() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(1, 6, bias=False), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 1)).double()


KEYS: dict[str, Any] = {
    "likelihood": likelihoods.gaussian(1.0),
    "epochs": 8,
    "batch_size": 16,
    "lr": 0.03,
    "progress": False,
}


def iterates(dtype: torch.dtype = torch.float64, **more: Any) -> list[Tensor]:
    """The weights after every epoch of a plain run."""
    weights_by_epoch: list[Tensor] = []

    def watch(belief: doxa.Belief) -> dict[str, float]:
        weights_by_epoch.append(belief.posterior.mean.clone())
        return {}

    rows = tuple(t.to(dtype) for t in data())
    doxa.fit(small().to(dtype), rows, learner=learners.point(), watch=watch, **{**KEYS, **more})
    return weights_by_epoch


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_swa_is_the_mean_of_the_iterates(dtype: torch.dtype) -> None:
    """Of the last quarter's epochs, in double precision; BatchNorm's statistics are those of the rows at the mean."""
    rows = tuple(t.to(dtype) for t in data())
    belief = doxa.fit(small().to(dtype), rows, learner=learners.swa(start_at=0.5), **KEYS)
    right = torch.stack(iterates(dtype)[4:]).double().mean(0)
    gap = (belief.posterior.mean.double() - right).norm() / right.norm()
    assert float(gap) < 1e-6
    weights = belief.layout.weights(belief.posterior.mean)
    hidden = data()[0].to(dtype) @ weights["0.weight"].T
    (buffers,) = belief.buffers
    torch.testing.assert_close(buffers["1.running_mean"], hidden.mean(0), rtol=1e-5, atol=1e-6)


def test_ema_is_the_recursion() -> None:
    decay = 0.9
    belief = doxa.fit(small(), data(), learner=learners.ema(decay=decay), **{**KEYS, "batch_size": ROWS})
    weights_by_step = iterates(batch_size=ROWS)
    average = torch.zeros_like(weights_by_step[0])
    for w in weights_by_step:
        average = decay * average + (1 - decay) * w
    torch.testing.assert_close(
        belief.posterior.mean, average / (1 - decay ** len(weights_by_step)), rtol=1e-9, atol=1e-12
    )


ALL = {
    "langevin": learners.langevin(priors.gaussian(1.0), burn_in=0.2, thinning=3),
    "swa": learners.swa(start_at=0.3, every=3),
    "ema": learners.ema(decay=0.9),
}


def numbers(belief: doxa.Belief) -> list[Tensor]:
    draws = list(belief.posterior.draws(1000, (0,)))
    tensors = [d.weights for d in draws] + [b for buffers in belief.buffers for b in buffers.values()]
    return tensors + [b for d in draws for b in (d.buffers or {}).values()]


@pytest.mark.parametrize("name", ALL)
def test_a_fleet_has_them_as_alone(name: str) -> None:
    beliefs = doxa.fleet(small(), data(), learners=ALL[name], seeds=[1, 2, 3], **KEYS)
    for belief, seed in zip(beliefs, [1, 2, 3], strict=True):
        alone = doxa.fit(small(), data(), learner=ALL[name], seed=seed, **KEYS)
        for fleet_tensor, alone_tensor in zip(numbers(belief), numbers(alone), strict=True):
            torch.testing.assert_close(fleet_tensor, alone_tensor, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ALL)
def test_an_ensemble_does_not_mix_its_members_up(name: str) -> None:
    """Each draw predicts as the member's own belief does, with statistics of its own."""
    both = doxa.fit(small(), data(), learner=learners.ensemble(ALL[name], 2, restart=False), seed=1, **KEYS)
    alone = doxa.fit(small(), data(), learner=ALL[name], seed=1, **KEYS)
    ensemble_outputs, alone_outputs = (b.predict(data()[0], 1000).outputs for b in (both, alone))
    assert len(ensemble_outputs) == 2 * len(alone_outputs)
    torch.testing.assert_close(ensemble_outputs[: len(alone_outputs)], alone_outputs, rtol=1e-9, atol=1e-9)
    assert not torch.allclose(ensemble_outputs[len(alone_outputs) :], alone_outputs)


@pytest.mark.parametrize("name", ALL)
def test_recorded_they_are_as_written(name: str, record: Record) -> None:
    written = doxa.fleet(small(), data(), learners=ALL[name], seeds=[1, 2], **KEYS)
    record()
    for recorded_belief, written_belief in zip(
        doxa.fleet(small(), data(), learners=ALL[name], seeds=[1, 2], **KEYS), written, strict=True
    ):
        for recorded_tensor, written_tensor in zip(numbers(recorded_belief), numbers(written_belief), strict=True):
            torch.testing.assert_close(recorded_tensor, written_tensor, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_chain_that_was_broken_off_goes_on_to_the_same_bytes(on_disk: bool, tmp_path: Path) -> None:
    """Within burn-in, and with samples that no checkpoint knows of; a store of a run before its first is nobody's."""
    chain = learners.langevin(priors.gaussian(1.0), burn_in=0.3, thinning=1, on_disk=on_disk)

    def run(folder: str, after: int | None = None, **more: Any) -> None:
        left = [after]

        def watch(belief: doxa.Belief) -> dict[str, float]:
            if left[0] is not None:
                left[0] -= 1
                if left[0] == 0:
                    raise Enough
            return {}

        keys = {**KEYS, "checkpoint": tmp_path / folder, "checkpoint_every": 3, "watch": watch, **more}
        doxa.fit(small(), data(), learner=chain, **keys)

    run("whole")
    for epochs in (2, 4, 3):
        with pytest.raises(Enough):
            run("cut", epochs, resume=True)
    run("cut", resume=True)
    names = ["belief.doxa", "checkpoint-previous.doxa", "checkpoint.doxa"]
    assert sorted(p.name for p in (tmp_path / "cut").iterdir()) == [*names, *["samples-0.rows"] * on_disk]
    for name in names:
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "cut" / name).read_bytes()


class Enough(Exception):
    pass


@pytest.mark.parametrize("name", ["langevin", "swa"])
def test_what_has_begun_goes_on_where_there_are_more_epochs(name: str, tmp_path: Path) -> None:
    """Samples and sums that were kept stay, and none of the steps that follow is left out."""
    every = {
        "langevin": learners.langevin(priors.gaussian(1.0), burn_in=0.5),
        "swa": learners.swa(start_at=0.5),
    }[name]
    plain = {"langevin": learners.langevin(priors.gaussian(1.0), burn_in=0.0), "swa": learners.point()}[name]
    doxa.fit(small(), data(), learner=every, checkpoint=tmp_path, **{**KEYS, "epochs": 4})
    longer = doxa.fit(small(), data(), learner=every, checkpoint=tmp_path, resume=True, **KEYS).posterior
    weights_by_epoch: list[Tensor] = []
    whole = doxa.fit(
        small(), data(), learner=plain, watch=lambda b: weights_by_epoch.append(b.posterior.mean.clone()) or {}, **KEYS
    ).posterior
    if name == "langevin":
        assert torch.equal(longer.rows, whole.rows[2:])
    else:
        torch.testing.assert_close(longer.mean, torch.stack(weights_by_epoch[2:]).mean(0), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("batch_size", [16, ROWS])
@pytest.mark.parametrize("on_disk", [False, True])
def test_a_chain_that_keeps_every_step_is_recorded_as_written(
    on_disk: bool, batch_size: int, record: Record, tmp_path: Path
) -> None:
    """Steps that warm up are no samples."""
    chain = learners.langevin(priors.gaussian(1.0), burn_in=0.0, thinning=1, on_disk=on_disk)
    keys = {**KEYS, "epochs": 3, "batch_size": batch_size}
    written = doxa.fit(small(), data(), learner=chain, checkpoint=tmp_path / "written", **keys)
    record()
    recorded = doxa.fit(small(), data(), learner=chain, checkpoint=tmp_path / "recorded", **keys)
    assert written.posterior.distinct == recorded.posterior.distinct == 3 * ROWS // batch_size
    for recorded_tensor, written_tensor in zip(numbers(recorded), numbers(written), strict=True):
        torch.testing.assert_close(recorded_tensor, written_tensor, rtol=1e-9, atol=1e-9)


def test_samples_on_disk_outlive_a_run_that_goes_on(tmp_path: Path) -> None:
    chain = learners.langevin(priors.gaussian(1.0), burn_in=0.0, thinning=1, on_disk=True)
    first = doxa.fit(small(), data(), learner=chain, checkpoint=tmp_path, **{**KEYS, "epochs": 2})
    before = first.predict(data()[0]).outputs
    longer = doxa.fit(small(), data(), learner=chain, checkpoint=tmp_path, resume=True, **KEYS)
    assert longer.posterior.distinct == 4 * first.posterior.distinct
    assert torch.equal(first.predict(data()[0]).outputs, before)


def test_another_run_s_samples_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain_module, "STAGED_NUMBERS", {"cpu": 1})
    chain = learners.langevin(priors.gaussian(1.0), burn_in=0.0, thinning=1, on_disk=True)
    for seed in (1, 2):
        doxa.fit(small(), data(), learner=chain, checkpoint=tmp_path / str(seed), seed=seed, **{**KEYS, "epochs": 2})
    shutil.copy(tmp_path / "2/samples-0.rows", tmp_path / "1/samples-0.rows")
    with pytest.raises(BrokenFile, match="other samples than those that its checkpoint was written with"):
        doxa.fit(small(), data(), learner=chain, checkpoint=tmp_path / "1", seed=1, resume=True, **KEYS)


def test_what_gets_no_noise_is_not_called_a_sample() -> None:
    belief = doxa.fit(
        small(),
        data(),
        learner=ALL["langevin"],
        **{**KEYS, "likelihood": likelihoods.gaussian_learned(1.0)},
        random=lambda name, _: name == "3.weight",
    )
    assert belief.noise == {n: "samples" if n == "3.weight" else "point" for n in belief.noise}
    assert len({tuple(d.weights[belief.layout.random :].tolist()) for d in belief.posterior.draws(9, (0,))}) > 1


REFUSED = {
    "temperature must be a finite number from 0 up": lambda: learners.langevin(priors.gaussian(1.0), -1.0),
    "burn_in must lie between 0 and 1": lambda: learners.langevin(priors.gaussian(1.0), burn_in=1.0),
    "burn_in must lie between 0 and 1, 1 excluded; got 'half'": lambda: learners.langevin(
        priors.gaussian(1.0), burn_in="half"
    ),
    "thinning must be at least 1": lambda: learners.langevin(priors.gaussian(1.0), thinning=0),
    "prior must be one of doxa.priors": lambda: learners.langevin(None),
    "kl_weight must be one of doxa.kl_weights": lambda: learners.langevin(priors.gaussian(1.0), kl_weight=3),
    "start_at must lie between 0 and 1": lambda: learners.swa(start_at=1),
    "every must be at least 1": lambda: learners.swa(every=0),
    "decay must lie between 0 and 1": lambda: learners.ema(decay=1.0),
    "learner must be one of doxa.learners, with brackets": lambda: learners.swa(learners.point),
    "each by itself: write ensemble": lambda: learners.swa(learners.ensemble(learners.point(), 2)),
    "Swa keeps its way in a way of its own": lambda: learners.ema(learners.swa()),
    "Langevin keeps its way in a way of its own": lambda: learners.swa(learners.langevin(priors.gaussian(1.0))),
}


@pytest.mark.parametrize("message", REFUSED)
def test_settings_that_make_no_sense_are_refused_in_words(message: str) -> None:
    with pytest.raises(BadInput, match=message):
        REFUSED[message]()


CHAIN = ALL["langevin"]
UNFIT: dict[str, tuple[Any, dict[str, Any]]] = {
    "samples on disk need a folder": (learners.langevin(priors.gaussian(1.0), on_disk=True), {}),
    "patience goes back to the best epoch, and Langevin": (CHAIN, {"patience": 1, "validation": data()}),
    "takes steps of its own, Langevin's": (CHAIN, {"optimiser": optimisers.sgd()}),
    "optimiser must be one of doxa.optimisers, with brackets": (learners.point(), {"optimiser": optimisers.adam}),
    "not one sample would be kept in 32 steps": (learners.langevin(priors.gaussian(1.0), thinning=33), {}),
    "not one average would be kept in 32 steps": (learners.swa(every=33), {}),
    "the temperature at step 0 must be a finite number from 0 up; got -1": (
        learners.langevin(priors.gaussian(1.0), lambda moment: -1.0),
        {},
    ),
    "2 temperatures were given for 1 nets": (learners.point(), {"optimiser": optimisers.langevin((1.0, 2.0))}),
}


@pytest.mark.parametrize("message", UNFIT)
def test_partners_that_do_not_fit_are_refused_in_words(message: str) -> None:
    learner, more = UNFIT[message]
    with pytest.raises(BadInput, match=message):
        doxa.fit(small(), data(), learner=learner, **{**KEYS, **more})


def test_an_average_that_never_began_says_so() -> None:
    x, y = data()
    keys = {**KEYS, "validation": (x, -y), "patience": 1, "epochs": 40, "lr": 0.3}
    with pytest.warns(UserWarning, match="ended before averaging began"):
        doxa.fit(small(), (x, y), learner=learners.swa(start_at=0.9), **keys)
