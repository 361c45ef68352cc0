"""A learner by words: its signature says which knobs it has, and a learner of one's own needs nothing else."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from doxa import kl_weights, learners, likelihoods, noise, optimisers, posteriors, priors, rates
from doxa.collectors import last
from doxa.contracts import Prior, Problem, Schedule
from doxa.engine.contracts import Gradient
from doxa.errors import BadInput
from doxa.runs import Plan, learn, load_training_data, open_run
from doxa.runs.learner_call import OF_SEARCH, PARAMETERS, parse_learner

NET = nn.Linear(3, 1)
VARIATIONAL, DROPOUT = {"noise", "posterior", "samples", "antithetic"}, {"dropout", "input_dropout"}
CHAIN = {"temperature", "burn_in", "thinning", "on_disk"}


@dataclass(frozen=True)
class Shrunk:
    """MAP under a Gaussian prior of scale 1/strength, around the centre: a learner made of another one's parts."""

    strength: float
    centre: float = 0.0
    rate: float = 0.1  # not dropout's, which is 0.5 unless told
    kl_weight: Schedule = field(default_factory=kl_weights.uniform)

    nets = 1

    @property
    def prior(self) -> Prior:
        return priors.gaussian(1 / self.strength, self.centre)

    @property
    def kind(self) -> tuple[Any, ...]:
        return (Shrunk,)

    def start(self, problem: Problem, fleet: Sequence[Shrunk]) -> Gradient:
        points = [learners.point(shrunk.prior, shrunk.kl_weight) for shrunk in fleet]
        gradient: Gradient = points[0].start(problem, points)
        return gradient

    def optimiser(self, fleet: Sequence[Shrunk]) -> None:
        return None

    def collector(self, fleet: Sequence[Shrunk]) -> Any:
        return last()


@pytest.fixture
def shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(learners.TABLE, "shrunk", Shrunk)


@pytest.mark.parametrize(
    ("learner", "used"),
    [
        ("variational", {"prior", "kl_weight", *VARIATIONAL}),
        ("point", {"prior", "kl_weight"}),
        ("dropout", {"prior", "kl_weight", *DROPOUT}),
        ("langevin", {"prior", "kl_weight", *CHAIN}),
        ("swa", {"prior", "kl_weight", "average_from", "average_every"}),
        ("ema", {"prior", "kl_weight", "average_decay"}),
        ("search", {*OF_SEARCH}),
        ("auto", {"prior", "kl_weight", "noise"}),
    ],
)
def test_the_knobs_of_a_learner_are_its_parameters(learner: str, used: set[str]) -> None:
    unused = {*parse_learner(learner).unused}
    assert {*PARAMETERS, *OF_SEARCH} - unused == used
    assert ("patience" in unused) == (learner in ("auto", "langevin"))


def test_knobs_make_the_learner_they_name() -> None:
    prior = {"prior": "gaussian:0.5", "kl_weight": "0.3"}
    point = learners.point(priors.gaussian(0.5), kl_weights.tempered(0.3))
    plans = {
        Plan(learner="point"): learners.point(),
        Plan(learner="point", **prior): point,
        Plan(learner="dropout", dropout=0.2, input_dropout=0.1): learners.dropout(0.2, 0.1),
        Plan(learner="swa", average_from=0.5, average_every=3, **prior): learners.swa(point, 0.5, 3),
        Plan(learner="ema", average_decay=0.9): learners.ema(learners.point(), 0.9),
        Plan(learner="langevin", prior="laplace", temperature=0.5, burn_in=0.1, thinning=2, on_disk=True): (
            learners.langevin(priors.laplace(), 0.5, 0.1, 2, True)
        ),
        Plan(learner="variational", prior="laplace", samples=2, antithetic=True): learners.variational(
            priors.laplace(), noise.local, 2, True, posteriors.mean_field(), kl_weights.tempered(0.1)
        ),
        Plan(learner="point", members=3, same_start=True): learners.ensemble(learners.point(), 3, False),
    }
    for plan, learner in plans.items():
        assert plan.build_learner(NET) == learner


@pytest.mark.parametrize(
    ("words", "knobs"),
    [
        ("dropout:0.2", {"dropout": 0.2}),
        ("dropout(rate=0.2,input_rate=0.1)", {"dropout": 0.2, "input_dropout": 0.1}),
        ("ema:decay=0.9", {"average_decay": 0.9}),
        ("point:laplace(0.5),0.3", {"prior": "laplace:0.5", "kl_weight": "0.3"}),
        ("variational:noise=shared,posterior=mean_field(layer)", {"noise": "shared", "posterior": "mean_field:layer"}),
    ],
)
def test_what_a_knob_sets_can_be_said_with_the_learner(words: str, knobs: dict[str, Any]) -> None:
    name = words.partition(":")[0].partition("(")[0]
    by_words = Plan.from_settings({"learner": words, "random": "weight"}).build_learner(NET)
    by_knobs = Plan(learner=name, random="weight", **knobs).build_learner(NET)
    assert repr(by_words) == repr(by_knobs)
    knob, value = next(iter(knobs.items()))
    with pytest.raises(BadInput, match=rf"{knob} sets {PARAMETERS[knob]} of the learner {name}, which .* sets too"):
        Plan(learner=words, **{knob: value}).require_used()


def test_an_average_is_of_points_unless_words_name_another_learner() -> None:
    plan = Plan(learner="swa:learner=dropout(0.2),every=3")
    assert plan.build_learner(NET) == learners.swa(learners.dropout(0.2), every=3)
    with pytest.raises(BadInput, match="prior is of no use to the learner swa; leave it out"):
        Plan(learner="swa:learner=dropout(0.2)", prior="laplace").require_used()
    with pytest.raises(BadInput, match="keeps its way in a way of its own"):
        Plan(learner="swa:learner=ema").build_learner(NET)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("shrunk", r"'shrunk' does not fit the learner shrunk \(missing .*'strength'\); it takes: strength, centre"),
        ("shrunk:strnegth=2", "'strnegth'.*; it takes: strength, centre"),
        ("shrunk:1,2,3,4,5", "too many positional arguments"),
        ("dropout:two", "'dropout:two' does not fit the learner dropout: "),
        ("dropout:2", "rate must lie between 0 and 1"),
        ("langevin:thinning=0", "thinning must be at least 1"),
        ("point:lapalce", "there is no prior 'lapalce'; did you mean 'laplace'"),
        ("point:kl_weight=0.1", "kl_weight weighs a prior, and the learner point has none"),
        ("shrunken:2", "there is no learner 'shrunken:2'; did you mean 'shrunk'"),
        ("search:100", "there is no learner 'search:100'; did you mean 'search'"),
        ("ensemble:point", "there is no learner 'ensemble:point'; there is: auto, dropout"),
    ],
)
def test_words_that_make_no_learner_are_refused(words: str, message: str, shrunk: None) -> None:
    with pytest.raises(BadInput, match=message):
        Plan(learner=words).build_learner(NET)


def test_a_learner_of_ones_own_has_the_knobs_that_mean_the_same(shrunk: None) -> None:
    plan = Plan.from_settings({"learner": "shrunk:strength=2", "kl_weight": "0.3"})
    assert plan.build_learner(NET) == Shrunk(2, kl_weight=kl_weights.tempered(0.3))
    assert Plan(learner="shrunk(2,rate=0.3)", members=3).build_learner(NET) == learners.ensemble(Shrunk(2, rate=0.3), 3)
    assert plan.build_rate() == rates.cosine(1e-3)
    with pytest.raises(BadInput, match="samples is of no use to the learner shrunk; leave it out"):
        Plan(learner="shrunk:2", samples=3).require_used()
    with pytest.raises(BadInput, match=r"dropout is of no use to the learner shrunk; write shrunk:rate=0\.3"):
        Plan(learner="shrunk:2", dropout=0.3).require_used()
    with pytest.raises(BadInput, match="prior is of no use to the learner shrunk"):
        Plan(learner="shrunk:2", prior="laplace").require_used()


def test_a_required_parameter_is_set_by_the_knob_of_its_name_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def sghmc(
        prior: Any, rate: float, input_rate: float, start_at: float, every: int, decay: float, burn_in: float
    ) -> Any:
        return prior, rate, input_rate, start_at, every, decay, burn_in

    monkeypatch.setitem(learners.TABLE, "sghmc", sghmc)
    assert parse_learner("sghmc").knobs == {"prior": "prior", "burn_in": "burn_in"}
    with pytest.raises(BadInput, match=r"'sghmc' does not fit the learner sghmc \(missing .*'rate'"):
        Plan(learner="sghmc").build_learner(NET)
    with pytest.raises(BadInput, match=r"dropout is of no use to the learner sghmc; write sghmc:rate=0\.3"):
        Plan(learner="sghmc", dropout=0.3).require_used()
    words = "sghmc:rate=0.1,input_rate=0.2,start_at=0.3,every=4,decay=0.5"
    learner: Any = Plan(learner=words, prior="laplace", burn_in=0.6).build_learner(NET)
    assert learner == (priors.laplace(), 0.1, 0.2, 0.3, 4, 0.5, 0.6)


def test_arguments_are_members_of_their_parameters_rooms(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_mode(mode: Any = None) -> Any:
        return mode

    monkeypatch.setitem(learners.TABLE, "of_mode", of_mode)
    learner: Any = Plan(learner="of_mode:mode=dropout").build_learner(NET)
    assert learner == "dropout"
    with pytest.raises(BadInput, match="there is no noise 'dropout'; there is: flipout, local, shared"):
        Plan(learner="variational:noise=dropout").build_learner(NET)
    with pytest.raises(BadInput, match="there is no learner 'droput'; did you mean 'dropout'"):
        Plan(learner="swa:learner=droput").build_learner(NET)
    averaged = Plan(learner="swa:learner=dropout(0.2,prior=laplace)").build_learner(NET)
    assert averaged == learners.swa(learners.dropout(0.2, prior=priors.laplace()))


def test_a_learner_that_does_not_tell_its_parameters_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(learners.TABLE, "opaque", dict)
    with pytest.raises(BadInput, match="the learner opaque is <class 'dict'>, which does not tell its parameters"):
        Plan(learner="opaque").build_learner(NET)


@dataclass(frozen=True)
class Descent:
    """Gradient descent as an optimiser of one's own."""

    momentum: float = 0.0

    def start(self, setup: Any) -> Any:
        return optimisers.sgd(self.momentum).start(setup)


def test_an_optimiser_of_ones_own_is_reached_by_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(optimisers, "TABLE", dict(optimisers.TABLE))
    optimisers.register("descent", Descent)
    optimisers.register("averaged", torch.optim.ASGD)
    built: Any = Plan(optimiser="descent:momentum=0.5").build_optimiser()
    assert built == Descent(0.5)
    make: Any = Plan(optimiser="averaged:alpha=0.5").build_optimiser()
    assert type(make([nn.Parameter(torch.zeros(1))], lr=0.1)) is torch.optim.ASGD
    rows = load_training_data({"x": np.arange(50.0), "y": np.arange(50.0) / 7}, "y")
    shared = {"net": "mlp:4", "learner": "point", "epochs": 2, "draws": 2}
    means = [
        learn(
            rows, Plan.from_settings({**shared, "optimiser": words}), tmp_path / words, progress=False
        ).belief.posterior.mean
        for words in ("sgd", "descent")
    ]
    assert torch.equal(*means)
    for words, message in {
        "descnt": "there is no optimiser 'descnt'; did you mean 'descent'",
        "descent:0.5": "name an optimiser's settings",
        "descent:mometum=0.5": "does not fit the optimiser descent .*; it takes: momentum",
        "averaged:alhpa=0.5": "makes no optimiser",
        "langevin": "there is no optimiser 'langevin'.*: adam, adamw, sgd, rmsprop, adagrad, descent, averaged$",
    }.items():
        with pytest.raises(BadInput, match=message):
            Plan(optimiser=words).build_optimiser()


def test_a_learner_of_ones_own_is_trained_by_words(shrunk: None, tmp_path: Path) -> None:
    x = np.linspace(-2, 2, 60)
    rows = load_training_data({"x": x, "y": 3 * x + np.random.default_rng(0).normal(size=60)}, "y")

    def weights_of(strength: float) -> torch.Tensor:
        plan = Plan.from_settings(
            {"net": "mlp:4", "learner": f"shrunk:{strength}", "lr": 0.05, "epochs": 60, "draws": 2}
        )
        learn(rows, plan, tmp_path / str(strength), progress=False)
        run = open_run(tmp_path / str(strength))
        assert run.plan == plan
        return run.belief.posterior.mean[: run.belief.posterior.random]

    assert weights_of(30.0).norm() < 0.1 * weights_of(0.1).norm()


def test_a_plugin_brings_its_learner_and_its_likelihood(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "doxa_shrunk.py").write_text(
        "from doxa import learners, likelihoods\n"
        "class Noisy(likelihoods.gaussian_per_input):\n"
        "    pass\n"
        "learners.register('of_plugin', learners.point)\n"
        "likelihoods.register('noisy', Noisy)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    point = metadata.EntryPoint("shrunk", "doxa_shrunk", "doxa.plugins")
    monkeypatch.setattr(metadata, "entry_points", lambda *, group: [point] if group == point.group else [])
    for room in (learners, likelihoods):
        monkeypatch.setattr(room, "TABLE", dict(room.TABLE))
    monkeypatch.delitem(sys.modules, "doxa_shrunk", raising=False)
    plan = Plan(learner="of_plugin", likelihood="noisy")
    assert plan.outputs_per_target == 2
    assert plan.build_learner(NET) == learners.point()
    rows = load_training_data({"x": np.arange(50.0), "y": np.arange(50.0) / 7}, "y")
    assert type(plan.build_likelihood(rows)).__name__ == "Noisy"
    assert isinstance(sys.modules.pop("doxa_shrunk"), ModuleType)
