"""Laws of optimisers, the room's and torch's: each net has one to itself, whatever it takes over a whole tensor."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn, optim

import doxa
from doxa import learners, likelihoods, noise, optimisers, priors
from doxa.contracts import Moment
from doxa.engine.context import StepContext
from doxa.engine.contracts import Parameter, Stepper
from doxa.engine.recipes import GradientRows
from doxa.errors import BadInput, BrokenFile
from doxa.optimisers.torchs import TorchStepper
from doxa.random.philox import Stream

OPTIMISERS: dict[str, Callable[..., optim.Optimizer]] = {
    "sgd": optim.SGD,
    "nesterov": partial(optim.SGD, momentum=0.9, nesterov=True, weight_decay=0.1),
    "adam": optim.Adam,
    "amsgrad": partial(optim.Adam, amsgrad=True),
    "adamw": optim.AdamW,
    "nadam": optim.NAdam,
    "radam": optim.RAdam,
    "adagrad": optim.Adagrad,
    "rmsprop": partial(optim.RMSprop, momentum=0.9, centered=True),
    "rprop": optim.Rprop,
    "asgd": partial(optim.ASGD, t0=3),
    "adamax": optim.Adamax,
    "adadelta": optim.Adadelta,
    "adafactor": optim.Adafactor,
}
SEEDS = [3, 8, 5]
EACH = [learners.variational(priors.gaussian(s), noise.local) for s in (0.1, 1.0, 3.0)]
POINTS = [learners.point(learner.prior) for learner in EACH]
ROOM = {f"{name}-{i}": one for name, examples in optimisers.EXAMPLES.items() for i, one in enumerate(examples)}
# Points for the room's, of which some step weights alone.
TRAININGS: dict[str, tuple[Any, list[Any]]] = {
    **{name: (make, EACH) for name, make in OPTIMISERS.items()},
    **{name: (settings, POINTS) for name, settings in ROOM.items()},
}
KEYS: dict[str, Any] = {"likelihood": likelihoods.categorical(), "batch_size": 16, "progress": False, "lr": 0.02}


def rows() -> tuple[Tensor, Tensor]:
    x = torch.randn(50, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return x, (x[:, 0] + x[:, 1].square() > 0.5).long()


def net() -> nn.Module:
    """In double precision, so that optimisers that step by signs do not make large differences of small ones."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 2)).double()


def close(belief: doxa.Belief, expected: doxa.Belief) -> None:
    torch.testing.assert_close(belief.posterior.mean, expected.posterior.mean, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(belief.posterior.scale, expected.posterior.scale, rtol=1e-9, atol=1e-9)


class PulledToTargets:
    """A gradient of three nets, each drawn to a place of its own."""

    def __init__(self) -> None:
        draw = torch.Generator().manual_seed(1)
        rows = [torch.randn(3, n, generator=draw, dtype=torch.float64) for n in (7, 4)]
        self.parameters = [Parameter(name, values) for name, values in zip("ab", rows, strict=True)]
        self.targets = [torch.randn(3, n, generator=draw, dtype=torch.float64) for n in (7, 4)]

    def slopes(self, context: object, prior: bool = True) -> list[GradientRows]:
        stiffness = torch.tensor([[0.01], [1.0], [100.0]], dtype=torch.float64)
        return [
            GradientRows(p.name, slice(None), True, (p.values - target) * stiffness, p.values)
            for p, target in zip(self.parameters, self.targets, strict=True)
        ]


def steps(work: Stepper, gradient: PulledToTargets, rates: list[float], number: int = 5, first: int = 0) -> None:
    exact = torch.tensor(rates, dtype=torch.float64)
    for step in range(first, first + number):
        moment = Moment(step, first + number, step, first + number)
        schedules = {name: [one(moment) for one in nets] for name, nets in work.schedules().items()}
        numbers = {name: torch.tensor(values, dtype=torch.float64) for name, values in schedules.items()}
        stream = Stream(torch.arange(len(rates)), step)
        work.step(
            gradient, StepContext(stream, exact, (exact,), 1.0, (work.numbers(step + 1),), numbers, exact=(exact,))
        )


@pytest.mark.parametrize("name", TRAININGS)
def test_a_member_is_what_it_is_alone(name: str) -> None:
    optimiser, each = TRAININGS[name]
    keys = {**KEYS, "optimiser": optimiser, "epochs": 3}
    beliefs = doxa.fleet(net(), rows(), learners=each, seeds=SEEDS, **keys)
    for belief, learner, seed in zip(beliefs, each, SEEDS, strict=True):
        close(belief, doxa.fit(net(), rows(), learner=learner, seed=seed, **keys))


@pytest.mark.parametrize("name", TRAININGS)
def test_a_resumed_fleet_is_the_uninterrupted_one_to_the_byte(name: str, tmp_path: Path) -> None:
    optimiser, each = TRAININGS[name]

    def run(folder: str, epochs: int, **more: Any) -> None:
        keys = {**KEYS, "optimiser": optimiser, "epochs": epochs, **more}
        doxa.fleet(net(), rows(), learners=each, seeds=SEEDS, checkpoint=tmp_path / folder, **keys)

    run("whole", 3)
    run("cut", 1)
    run("cut", 3, resume=True)
    names = sorted(p.name for p in (tmp_path / "whole").iterdir())
    assert names == [*(f"belief-{k}.doxa" for k in range(3)), "checkpoint-previous.doxa", "checkpoint.doxa"]
    for file in names:
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "cut" / file).read_bytes()


@pytest.mark.parametrize("name", OPTIMISERS)
def test_each_net_has_a_rate_of_its_own(name: str) -> None:
    gradient, rates = PulledToTargets(), [0.1, 0.01, 0.03]
    work = TorchStepper(OPTIMISERS[name], gradient, own_rates=False)
    steps(work, gradient, rates)
    assert [optimiser.param_groups[0]["lr"] for optimiser in work.optimisers] == rates
    for k, rate in enumerate(rates):
        alone_gradient = PulledToTargets()
        net_tensors = [p.values[k].clone().requires_grad_() for p in alone_gradient.parameters]
        alone = OPTIMISERS[name](net_tensors, lr=rate)
        for _ in range(5):
            for tensor, slopes in zip(net_tensors, alone_gradient.slopes(None), strict=True):
                tensor.grad = slopes.rows[k].clone()
            alone.step()
            with torch.no_grad():
                for tensor, p in zip(net_tensors, alone_gradient.parameters, strict=True):
                    p.values[k] = tensor
        for tensor, p in zip(net_tensors, gradient.parameters, strict=True):
            torch.testing.assert_close(p.values[k], tensor.detach(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("own_rates", [False, True])
@pytest.mark.parametrize("name", OPTIMISERS)
def test_who_rests_does_not_move(name: str, own_rates: bool) -> None:
    """Neither by momentum nor by decay, and its optimiser forgets nothing."""
    gradient = PulledToTargets()
    work = TorchStepper(OPTIMISERS[name], gradient, own_rates)
    steps(work, gradient, [0.1, 0.1, 0.1], 2)
    before = [p.values.clone() for p in gradient.parameters]
    state = {k: t.clone() for k, t in work.state().tensors.items()}
    steps(work, gradient, [0.1, -1.0, 0.1])
    for p, old in zip(gradient.parameters, before, strict=True):
        assert torch.equal(p.values[1], old[1])
        assert not torch.equal(p.values[0], old[0])
    for key, tensor in work.state().tensors.items():
        assert not key.startswith("1.") or torch.equal(tensor, state[key])


@pytest.mark.parametrize("name", OPTIMISERS)
def test_a_state_comes_back_to_the_net_it_was_taken_from(name: str) -> None:
    """That of a net that has rested from the start too, which may be none."""
    gradient = PulledToTargets()
    work = TorchStepper(OPTIMISERS[name], gradient, own_rates=False)
    steps(work, gradient, [0.1, -1.0, 0.1])
    copied_gradient = PulledToTargets()
    with torch.no_grad():
        for p, q in zip(copied_gradient.parameters, gradient.parameters, strict=True):
            p.values.copy_(q.values)
    loaded_stepper = TorchStepper(OPTIMISERS[name], copied_gradient, own_rates=False)
    loaded_stepper.load({k: t.clone() for k, t in work.state().tensors.items()}, work.state().numbers)
    assert list(loaded_stepper.state().tensors) == list(work.state().tensors)
    assert loaded_stepper.state().numbers == work.state().numbers
    for stepper, stepper_gradient in ((work, gradient), (loaded_stepper, copied_gradient)):
        steps(stepper, stepper_gradient, [0.1, 0.02, -1.0])
    for p, q in zip(copied_gradient.parameters, gradient.parameters, strict=True):
        assert torch.equal(p.values, q.values)


@pytest.mark.parametrize("name", ROOM)
def test_who_rests_keeps_its_place_and_what_is_remembered_of_it(name: str) -> None:
    gradient = PulledToTargets()
    work = ROOM[name].start(gradient)
    steps(work, gradient, [0.001] * 3, 2)
    before = [p.values.clone() for p in gradient.parameters]
    state = {key: tensor.clone() for key, tensor in work.state().tensors.items()}
    steps(work, gradient, [0.001, -1.0, 0.001], first=2)
    for p, old in zip(gradient.parameters, before, strict=True):
        assert torch.equal(p.values[1], old[1])
        assert not torch.equal(p.values[0], old[0])
    assert all(torch.equal(tensor[1], state[key][1]) for key, tensor in work.state().tensors.items())


@pytest.mark.parametrize("name", ROOM)
def test_a_state_that_is_loaded_goes_on_to_the_bit(name: str) -> None:
    gradient, copied_gradient = PulledToTargets(), PulledToTargets()
    work, loaded = ROOM[name].start(gradient), ROOM[name].start(copied_gradient)
    steps(work, gradient, [0.001, 0.003, 0.002], 3)
    for p, q in zip(copied_gradient.parameters, gradient.parameters, strict=True):
        p.values.copy_(q.values)
    loaded.load({key: tensor.clone() for key, tensor in work.state().tensors.items()}, work.state().numbers)
    for stepper, stepper_gradient in ((work, gradient), (loaded, copied_gradient)):
        steps(stepper, stepper_gradient, [0.001, 0.003, 0.002], first=3)
    for p, q in zip(copied_gradient.parameters, gradient.parameters, strict=True):
        assert torch.equal(p.values, q.values)


def test_what_is_no_optimiser_of_vectors_is_refused_in_words() -> None:
    keys = {**KEYS, "epochs": 1, "learner": EACH[0]}
    with pytest.raises(BadInput, match=r"flat vectors .*2D"):
        doxa.fit(net(), rows(), optimiser=optim.Muon, **keys)
    with pytest.raises(BadInput, match="made a list"):
        doxa.fit(net(), rows(), optimiser=list, **keys)
    with pytest.raises(BadInput, match="LBFGS"):
        doxa.fit(net(), rows(), optimiser=optim.LBFGS, **keys)


@pytest.mark.parametrize("name", ["0.exp_avg", "3.0.exp_avg", "0.0"])
def test_a_state_of_another_kind_is_a_broken_file(name: str) -> None:
    work = TorchStepper(optim.Adam, PulledToTargets(), own_rates=False)
    with pytest.raises(BrokenFile, match="another version"):
        work.load({name: torch.zeros(7)}, {})
