"""Bad input: each a clear error that says how to mend it, and nothing is lost."""

from __future__ import annotations

import errno
import math
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, SubsetRandomSampler, TensorDataset

import doxa
from doxa import BadInput, BrokenFile, Diverged, DoxaError, kl_weights, learners, likelihoods, noise, posteriors, priors
from doxa.engine.feed import InMemoryFeed

ROWS, SIZE, CLASSES = 20, 4, 3
CHECKPOINT, PREVIOUS, BELIEF = "checkpoint.doxa", "checkpoint-previous.doxa", "belief.doxa"


def net(outputs: int = CLASSES) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(SIZE, 5), nn.ReLU(), nn.Linear(5, outputs))


def rows(number: int = ROWS, seed: int = 1) -> tuple[Tensor, Tensor]:
    source = torch.Generator().manual_seed(seed)
    return torch.randn(number, SIZE, generator=source), torch.randint(0, CLASSES, (number,), generator=source)


X, Y = rows()
VARIATIONAL = learners.variational(priors.gaussian(1.0))


def fit(module: nn.Module | None = None, data: Any = None, **more) -> doxa.Belief:
    settings = {"learner": VARIATIONAL, "likelihood": likelihoods.categorical(), "epochs": 1, "batch_size": 8, **more}
    return doxa.fit(net() if module is None else module, (X, Y) if data is None else data, **settings)


@contextmanager
def untouched(module: nn.Module) -> Iterator[None]:
    """The net, its modes and gradients, torch's generator and the Ctrl-C handler are after as they were before."""
    state = {k: v.clone() for k, v in module.state_dict().items()}
    modes = [m.training for m in module.modules()]
    handler, generator = signal.getsignal(signal.SIGINT), torch.get_rng_state()
    yield
    assert all(torch.equal(v, state[k]) for k, v in module.state_dict().items())
    assert [m.training for m in module.modules()] == modes
    assert all(p.grad is None for p in module.parameters())
    assert signal.getsignal(signal.SIGINT) is handler
    assert torch.equal(torch.get_rng_state(), generator)


def refuse(match: str, module: nn.Module | None = None, data: Any = None, kind: type = BadInput, **more) -> None:
    """`fit` refuses in words that match, and touches nothing."""
    module = net() if module is None else module
    module.train()
    next(iter(module.children()), module).eval()
    assert issubclass(kind, DoxaError)
    with untouched(module), pytest.raises(kind, match=match):
        fit(module, data, **more)


@pytest.fixture(scope="module")
def learned() -> doxa.Belief:
    return fit()


@pytest.fixture(scope="module")
def newer() -> doxa.Belief:
    return fit(seed=1)


def test_errors_are_of_one_family_and_of_python_s_own_kinds() -> None:
    assert issubclass(BadInput, ValueError)
    assert issubclass(Diverged, ArithmeticError)
    assert issubclass(BrokenFile, OSError)
    assert issubclass(doxa.Interrupted, KeyboardInterrupt)
    assert all(issubclass(kind, DoxaError) for kind in (BadInput, Diverged, BrokenFile, doxa.Interrupted))


# Inputs.


def test_fit_refuses_inputs_the_net_cannot_take() -> None:
    refuse(r"cannot run on x \(3, 7\)", data=(torch.randn(ROWS, 7), Y))
    refuse(r"cannot run on x .*int64", data=(torch.ones(ROWS, SIZE).long(), Y))
    refuse(r"cannot run on x\['y'\]", data=({"y": X}, Y))
    refuse(r"cannot run on x\[0\] .* x\[1\]", data=((X, X), Y))


def test_a_loader_of_wrong_inputs_is_refused_too() -> None:
    refuse(r"cannot run on x \(3, 7\)", data=DataLoader(TensorDataset(torch.randn(ROWS, 7), Y), batch_size=8))


def test_predict_refuses_inputs_the_net_cannot_take(learned: doxa.Belief) -> None:
    for predict in (learned.predict, learned.predict_at_mean):
        with untouched(learned.net), pytest.raises(BadInput, match=r"cannot run on x \(3, 7\)"):
            predict(torch.zeros(3, 7))
        with pytest.raises(BadInput, match="no rows"):
            predict(X[:0])
        with pytest.raises(BadInput, match=r"1 values .* the first at \[2, 1\]"):
            predict(torch.where(torch.arange(ROWS * SIZE).reshape(ROWS, SIZE) == 9, math.nan, X))
        with pytest.raises(BadInput, match=r"x is torch.float64 but .* torch.float32.*x.to\(torch.float32\)"):
            predict(X.double())
    with pytest.raises(BadInput, match="samples must be at least 1"):
        learned.predict(X, samples=0)


def test_numbers_of_rows_must_agree() -> None:
    refuse("x has 20 rows but y has 19", data=(X, Y[:19]))
    refuse(r"x\[1\] has 19 rows but x\[0\] has 20", data=((X, X[:19]), Y))
    refuse(r"x\['b'\] has 19 rows but x\['a'\] has 20", data=({"a": X, "b": X[:19]}, Y))
    refuse("validation: x has 20 rows but y has 19", validation=(X, Y[:19]))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite_are_counted_and_found(value: float) -> None:
    bad = X.clone()
    bad[2, 1] = bad[5, 0] = bad[5, 3] = value
    refuse(r"x holds 3 values that are NaN or infinite, the first at \[2, 1\]; drop or fill", data=(bad, Y))
    refuse(r"x holds 3 values .*\[2, 1\]", data=(bad.double().numpy(), Y))
    refuse(r"x holds 3 values .*\[2, 1\]", validation=(bad, Y))
    refuse(r"x\['b'\] holds 3 values", data=({"a": X, "b": bad}, Y))
    refuse(r"y holds 3 values .*\[2, 1\]", net(SIZE), (X, bad), likelihood=likelihoods.gaussian(1.0))
    # A later batch of a loader is only met on the way.
    refuse(r"x holds 3 values .*\[2, 1\]", data=DataLoader(TensorDataset(torch.cat([X, bad]), Y.repeat(2)), ROWS))


def test_empty_data_is_refused() -> None:
    refuse("no rows", data=(X[:0], Y[:0]))
    refuse("no rows", data=(torch.tensor(1.0), Y))
    refuse("no rows", data=(X, Y[:0]))
    refuse("y has shape .* no rows", data=(X, torch.tensor(1)))
    refuse("x is empty", data=({}, Y))
    refuse("DataLoader is empty", data=DataLoader(TensorDataset(X[:0], Y[:0]), batch_size=8))


def test_data_must_be_a_pair_of_numbers() -> None:
    refuse(r"data must be a pair \(x, y\).*got Tensor", data=X)
    refuse("got TensorDataset", data=TensorDataset(X, Y))
    refuse(r"pair \(x, y\)", data=(X, Y, Y))
    refuse("x is a ndarray that is no numeric array", data=(np.array(["a"] * ROWS), Y))
    refuse("x is a list that is no numeric array", data=([[1.0, 2.0], [3.0]], Y))
    refuse(r"pairs \(x, y\)", data=DataLoader(TensorDataset(X, Y, Y), batch_size=8))
    refuse(r"validation must be a pair", validation=X)


def test_arrays_of_another_precision_are_cast_and_learn_the_same() -> None:
    """A numpy array has the precision numpy gave it; a tensor's dtype is its owner's decision."""
    from_arrays = fit(data=(X.double().numpy(), Y.numpy().astype("uint8")))
    assert torch.equal(from_arrays.posterior.mean, fit().posterior.mean)
    refuse(r"x is torch.float64 but the net's weights are torch.float32", data=(X.double(), Y))
    refuse("y is torch.float64", net(SIZE), (X, X.double()), likelihood=likelihoods.gaussian(1.0))
    refuse("x is torch.float32 but the net's weights are torch.float64", net().double())


# Targets, for each likelihood.


@pytest.mark.parametrize(
    ("likelihood", "outputs", "y", "match"),
    [
        (likelihoods.categorical(), 3, torch.zeros(ROWS, 2).long(), r"targets have shape \(20, 2\).*\('rows',\)"),
        (likelihoods.categorical(), 3, torch.nn.functional.one_hot(Y, 3), r"targets have shape \(20, 3\)"),
        (likelihoods.categorical(), 3, Y.float(), r"targets are torch.float32.*y.long\(\)"),
        (likelihoods.categorical(), 3, Y > 0, r"targets are torch.bool.*y.long\(\)"),
        (likelihoods.categorical(), 3, Y + 1, "labels run from 1 to 3, but the net has 3 outputs: they must be 0 … 2"),
        (likelihoods.categorical(), 3, Y - 1, "labels run from -1 to 1"),
        (likelihoods.bernoulli(), 2, torch.ones(ROWS), r"targets have shape \(20,\).*\('rows', 2\)"),
        (likelihoods.bernoulli(), 2, torch.ones(ROWS, 3), r"targets have shape \(20, 3\)"),
        (likelihoods.bernoulli(), 1, torch.full((ROWS,), 2.0), "targets run from 2 to 2; bernoulli takes only 0 and 1"),
        (likelihoods.bernoulli(), 1, torch.full((ROWS,), 0.5), "only 0 and 1"),
        *[
            (likelihood, outputs, y, match)
            for likelihood, outputs in (
                (likelihoods.gaussian(1.0), 2),
                (likelihoods.gaussian_learned(), 2),
                (likelihoods.gaussian_per_input(), 4),
            )
            for y, match in (
                (torch.ones(ROWS), r"targets have shape \(20,\).*\('rows', 2\)"),
                (torch.ones(ROWS, 3), r"targets have shape \(20, 3\).*\('rows', 2\)"),
                (torch.ones(ROWS, 2).long(), r"targets are torch.int64; regression needs real numbers: y.float\(\)"),
            )
        ],
        (likelihoods.gaussian_per_input(), 3, torch.ones(ROWS, 2), "D locations, then D raw scales"),
    ],
)
def test_targets_a_likelihood_cannot_use(likelihood, outputs: int, y: Tensor, match: str) -> None:
    refuse(match, net(outputs), (X, y), likelihood=likelihood)
    refuse(match, net(outputs), DataLoader(TensorDataset(X, y), ROWS), likelihood=likelihood)
    good = {"Categorical": Y, "Bernoulli": torch.ones(ROWS, outputs)}.get(type(likelihood).__name__)
    if good is not None:
        refuse(match, net(outputs), (X, good), likelihood=likelihood, validation=(X, y))


# The number of rows that the KL is weighed against.


class Stream(IterableDataset):
    def __init__(self, number: int) -> None:
        self.number = number

    def __iter__(self):
        return ((X[i % ROWS], Y[i % ROWS]) for i in range(self.number))


def test_a_stream_without_length_needs_its_size() -> None:
    refuse("size=", data=DataLoader(Stream(ROWS), batch_size=8))
    belief = fit(data=DataLoader(Stream(ROWS), batch_size=8), size=ROWS)
    assert belief.record.settings["size"] == ROWS
    assert belief.record.settings["steps"] == 3
    dropping = fit(data=DataLoader(Stream(ROWS), batch_size=8, drop_last=True), size=ROWS)
    assert dropping.record.settings["steps"] == 2


def test_a_size_that_contradicts_the_data_is_refused() -> None:
    refuse("size=500, but the data has 20 rows", size=500)
    loader = DataLoader(TensorDataset(X, Y), batch_size=8)
    refuse("size=500, but the DataLoader has 20 rows", data=loader, size=500)
    refuse("size='20'", data=loader, size="20")
    refuse("size=0", data=DataLoader(Stream(ROWS), batch_size=8), size=0)
    refuse("gave 2 batches in epoch 1; 3 were expected", data=DataLoader(Stream(10), batch_size=8), size=ROWS)
    refuse("gave not one batch", data=DataLoader(Stream(0), batch_size=8), size=ROWS)


def test_a_sampler_of_fewer_rows_needs_the_size_said() -> None:
    loader = DataLoader(TensorDataset(X, Y), batch_size=8, sampler=SubsetRandomSampler(range(12)))
    refuse("draws 12 rows an epoch from a dataset of 20.*size=", data=loader)
    assert fit(data=loader, size=12).record.settings["size"] == 12
    assert fit(data=loader, size=ROWS).record.settings["size"] == ROWS


def test_batches_that_a_data_set_has_ready_are_no_rows() -> None:
    """Three batches are not three rows: the KL would weigh many times what it should."""
    ready = DataLoader([(X[k::3], Y[k::3]) for k in range(3)], batch_size=None)
    refuse("dataset is made of batches.*size=", data=ready)
    assert fit(data=ready, size=ROWS).record.settings["size"] == ROWS


# Nets.


class Tuple(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(SIZE, CLASSES)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.layer(x), x


def test_nets_that_cannot_be_learned_are_refused() -> None:
    refuse("no trainable parameter.*requires_grad", net().requires_grad_(False))
    refuse("no trainable parameter", nn.Flatten())
    refuse("mix dtypes.*float32.*float64.*net.float", nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 3).double()))
    refuse("returned a tuple; Doxa needs one tensor", Tuple())
    refuse("chosen to be random", random=lambda name, parameter: False)


def test_a_fault_of_the_user_s_own_net_comes_through_and_nothing_is_touched() -> None:
    class Mine(Exception):
        pass

    class Faulty(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net, self.left = net(), 4

        def forward(self, x: Tensor) -> Tensor:
            self.left -= 1
            if self.left < 0:
                raise Mine("own words")
            return self.net(x)

    module = Faulty()
    with untouched(module), pytest.raises(Mine, match="own words"):
        fit(module)


# Settings.


def adam_of_another_kind(parameters: list[Tensor]) -> int:
    return 3


@pytest.mark.parametrize(
    ("match", "more"),
    [
        ("epochs.*at least 1", {"epochs": 0}),
        ("checkpoint_every.*at least 1", {"checkpoint_every": 0}),
        ("patience.*at least 1", {"patience": 0, "validation": (X, Y)}),
        (r"patience needs validation data.*validation=\(x, y\)", {"patience": 2}),
        ("batch_size must be at least 1, got 0", {"batch_size": 0}),
        ("rate must be a positive, finite number; got 0", {"lr": 0}),
        ("rate must be a positive", {"lr": -1.0}),
        ("rate must be a positive", {"lr": math.nan}),
        ("rate must be a positive.*'fast'", {"lr": "fast"}),
        ("optimiser must make a torch optimiser.*int", {"optimiser": adam_of_another_kind}),
        ("LBFGS.*no closure", {"optimiser": torch.optim.LBFGS}),
        ("resume=True needs.*checkpoint=", {"resume": True}),
    ],
)
def test_settings_of_fit_are_checked(match: str, more: dict[str, Any]) -> None:
    refuse(match, **more)


@pytest.mark.parametrize(
    ("match", "make"),
    [
        ("samples must be at least 1, got 0", lambda: learners.variational(priors.gaussian(), samples=0)),
        ("samples must be at most 32,767 a step", lambda: learners.variational(priors.gaussian(), samples=32_768)),
        ("pairs.*even, got 3", lambda: learners.variational(priors.gaussian(), samples=3, antithetic=True)),
        ("rate must lie between 0 and 1", lambda: learners.dropout(1.0)),
        ("input_rate must lie between", lambda: learners.dropout(0.5, input_rate=-0.1)),
        ("at least one member", lambda: learners.ensemble(learners.point(), 0)),
        ("one larger ensemble", lambda: learners.ensemble(learners.ensemble(learners.point()))),
        ("scale must be a positive, finite number; got 0", lambda: priors.gaussian(0)),
        ("scale must be", lambda: priors.gaussian(-1.0)),
        ("scale must be", lambda: priors.gaussian(math.nan)),
        ("scale must be", lambda: priors.gaussian(torch.tensor([1.0, 0.0]))),
        ("scale must be", lambda: priors.gaussian(torch.tensor([1.0, math.nan]))),
        ("scale must be", lambda: priors.gaussian("wide")),
        ("scale must be", lambda: priors.laplace(math.inf)),
        ("share must lie strictly between", lambda: priors.scale_mixture(1.0)),
        ("must be smaller than wide", lambda: priors.scale_mixture(0.5, 0.1, 1.0)),
        ("degrees must be", lambda: priors.student_t(0)),
        ("per must be", lambda: posteriors.mean_field(per="row")),
        ("scale must be", lambda: posteriors.mean_field(scale=0)),
        ("rho must be a pair", lambda: posteriors.mean_field(rho=(1.0, 0.0))),
        ("rho must be a pair", lambda: posteriors.mean_field(rho=(-1e4, 0.0))),
        ("mean must be a pair", lambda: posteriors.mean_field(mean=(0.0, 1e4))),
        ("scale must be", lambda: likelihoods.gaussian(0.0)),
        ("start must be", lambda: likelihoods.gaussian_learned(-1.0)),
        ("least must be", lambda: likelihoods.gaussian_per_input(0.0)),
        ("class_axis counts from the end", lambda: likelihoods.categorical(1)),
        ("temperature must be", lambda: kl_weights.tempered(0)),
        ("of must be a schedule", lambda: kl_weights.annealed(1, of=0.5)),
    ],
)
def test_parts_refuse_what_makes_no_sense(match: str, make) -> None:
    with pytest.raises(BadInput, match=match):
        make()


def test_a_prior_centred_on_another_net_is_refused() -> None:
    def centred(centre) -> dict[str, Any]:
        return {"learner": learners.variational(priors.gaussian(1.0, centre))}

    wide = nn.Sequential(nn.Linear(SIZE, 6), nn.ReLU(), nn.Linear(6, CLASSES))
    refuse(r"'0.weight' has shape \(6, 4\); the net's has \(5, 4\)", **centred(wide))
    refuse(r"'0.weight' has shape \(6, 4\)", **centred(wide.state_dict()))
    refuse("no weight named '0.weight'.*the net has one of shape", **centred(nn.Linear(SIZE, CLASSES)))


def test_dropout_that_reaches_nothing_is_refused() -> None:
    refuse("dropout reaches no weight", nn.Linear(SIZE, CLASSES), learner=learners.dropout(0.5))


# Runs that leave the finite numbers.


class Souring(nn.Module):
    """A net whose output turns into NaN at its n-th training pass."""

    def __init__(self, pass_number: int = -1) -> None:
        super().__init__()
        self.net, self.left = net(), pass_number

    def forward(self, x: Tensor) -> Tensor:
        self.left -= self.training
        return self.net(x) * (math.nan if self.left == 0 else 1.0)


LEARNERS = {
    "point": learners.point(priors.gaussian(1.0)),
    "variational": VARIATIONAL,
    "local": learners.variational(priors.gaussian(1.0), noise.local),
    "ensemble": learners.ensemble(learners.point(), 2),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_a_loss_that_is_no_number_names_its_step_and_the_last_checkpoint_stays(name: str, tmp_path: Path) -> None:
    run = partial(fit, learner=LEARNERS[name], checkpoint=tmp_path / "run")
    run(Souring(), epochs=1)
    before = {f.name: f.read_bytes() for f in (tmp_path / "run").iterdir()}
    # Two probing passes, and three to see whether an ensemble's members can run together; then the second step of the
    # second epoch, one pass for all members.
    module = Souring((5 if name == "ensemble" else 2) + 1 + 1)
    message = r"loss became nan at step 4 \(epoch 2\).*gradient of net.0.weight.*Lower lr.*last good checkpoint is in"
    with untouched(module), pytest.raises(Diverged, match=message) as caught:
        run(module, epochs=3, resume=True)
    assert str(tmp_path / "run") in str(caught.value)
    assert {f.name: f.read_bytes() for f in (tmp_path / "run").iterdir()} == before
    resumed = run(Souring(), epochs=3, resume=True)
    whole = fit(Souring(), learner=LEARNERS[name], epochs=3)
    assert torch.equal(resumed.posterior.mean, whole.posterior.mean)


class Runaway(torch.optim.SGD):
    """Plain SGD, until it is told to send the scales far away."""

    target: float | None = None

    def step(self, closure=None):
        super().step(closure)
        if self.target is not None:
            self.param_groups[0]["params"][1].data.fill_(self.target)


@pytest.mark.parametrize("kind", noise.TABLE)
@pytest.mark.parametrize("rho", [1e4, -1e4, math.inf, math.nan])
def test_scales_that_run_away_are_reported_and_the_last_checkpoint_stays(
    kind: str, rho: float, tmp_path: Path, monkeypatch
) -> None:
    learner = learners.variational(priors.gaussian(1.0), noise.TABLE[kind])
    run = partial(fit, learner=learner, optimiser=partial(Runaway, lr=0.1), checkpoint=tmp_path)
    run(epochs=1)
    before = (tmp_path / CHECKPOINT).read_bytes()
    monkeypatch.setattr(Runaway, "target", rho)
    module = net()
    with untouched(module), pytest.raises(Diverged, match=r"scales ran away: rho reaches|loss became"):
        run(module, epochs=2, resume=True)
    assert (tmp_path / CHECKPOINT).read_bytes() == before
    monkeypatch.setattr(Runaway, "target", None)
    assert math.isfinite(run(epochs=2, resume=True).record.history[-1]["kl"])


@pytest.mark.parametrize("epochs_before", [0, 1])
def test_a_fault_at_the_end_of_an_epoch_names_that_epoch(
    epochs_before: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One step is an epoch here: what it did to the scales is seen when the epoch ends."""
    keys = {"optimiser": partial(Runaway, lr=0.1), "batch_size": ROWS, "checkpoint": tmp_path}
    if epochs_before:
        fit(epochs=epochs_before, **keys)
    monkeypatch.setattr(Runaway, "target", 1e4)
    epoch = epochs_before + 1
    with pytest.raises(Diverged, match=rf"rho reaches 1e\+04 at step {epoch} \(epoch {epoch}\)"):
        fit(epochs=3, resume=epochs_before > 0, **keys)


def test_a_fleet_names_the_epoch_at_whose_end_a_member_diverged() -> None:
    with pytest.raises(Diverged, match=r"1: the scales ran away: rho reaches .* at step 1 \(epoch 1\)"):
        doxa.fleet(
            net(),
            (X, Y),
            learners=VARIATIONAL,
            likelihood=likelihoods.categorical(),
            epochs=2,
            batch_size=ROWS,
            optimiser=torch.optim.SGD,
            lr=[0.1, 1e20],
            progress=False,
        )


def test_a_rate_far_too_high_diverges_in_words() -> None:
    with pytest.raises(Diverged, match=r"step \d+ \(epoch \d+\).*Lower lr"):
        fit(optimiser=torch.optim.SGD, lr=1e20, epochs=20)


# Files.


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    fit(checkpoint=tmp_path / "run", epochs=2)
    return tmp_path / "run"


def contents(folder: Path) -> dict[str, bytes]:
    return {f.name: f.read_bytes() for f in folder.iterdir()}


def test_a_folder_with_a_run_is_not_overwritten(run_folder: Path) -> None:
    before = contents(run_folder)
    refuse("already holds a run; pass resume=True", checkpoint=run_folder)
    assert contents(run_folder) == before


def other_net() -> nn.Module:
    return nn.Sequential(nn.Linear(SIZE, 6), nn.ReLU(), nn.Linear(6, CLASSES))


@pytest.mark.parametrize(
    ("match", "more"),
    [
        (r"another net.*0.weight: file \(5, 4\), net \(6, 4\)", {"module": other_net()}),
        ("other settings.*learner:.*same call", {"learner": learners.point(priors.gaussian(1.0))}),
        ("other settings.*learner:", {"learner": learners.variational(priors.gaussian(2.0))}),
        ("other settings.*learner:", {"learner": learners.variational(priors.gaussian(1.0, centre=net()))}),
        (r"other settings \(seed: 0 there, 1 here\)", {"seed": 1}),
        ("other settings.*data:", {"data": rows(seed=2)}),
        ("other settings.*data:", {"data": (X.roll(1, 0), Y)}),
        ("other settings.*batch_size: 8 there, 9 here", {"batch_size": 9}),
        ("other settings.*lr:", {"lr": 0.5}),
        ("other settings.*optimiser:", {"optimiser": torch.optim.SGD}),
        ("other settings.*autocast:", {"autocast": torch.bfloat16}),
    ],
)
def test_a_run_is_not_resumed_as_another(match: str, more: dict[str, Any], run_folder: Path) -> None:
    before = contents(run_folder)
    refuse(match, checkpoint=run_folder, resume=True, **{"epochs": 2, **more})
    assert contents(run_folder) == before


def test_other_data_is_told_by_any_row_and_value() -> None:
    x, y = rows(3000)
    fingerprint = InMemoryFeed(x, y, 8).fingerprint()
    assert InMemoryFeed(x.clone(), y.clone(), 8).fingerprint() == fingerprint
    for row in (0, 1, 1234, 2999):
        changed, label = x.clone(), y.clone()
        changed[row, 2] += 1e-3
        label[row] += 1
        assert InMemoryFeed(changed, y, 8).fingerprint() != fingerprint
        assert InMemoryFeed(x, label, 8).fingerprint() != fingerprint
    swapped = x.clone()
    swapped[[5, 9]] = x[[9, 5]]
    assert InMemoryFeed(swapped, y, 8).fingerprint() != fingerprint


def test_data_of_every_dtype_and_of_very_many_rows_has_a_fingerprint() -> None:
    kinds = (torch.bool, torch.uint8, torch.int16, torch.bfloat16, torch.float32, torch.float64, torch.complex128)
    assert len({InMemoryFeed(torch.ones(9, 3).to(kind), Y[:9], 8).fingerprint() for kind in kinds}) == len(kinds)
    many = 2**24 + 4  # not all of these row numbers are float32 numbers
    assert InMemoryFeed(
        torch.ones(1, dtype=torch.int8).expand(many), torch.ones(1).bool().expand(many), 8
    ).fingerprint()


DAMAGES = {
    "cut short": lambda content: content[: len(content) // 2],
    "a flipped bit": lambda content: content[:-5] + bytes([content[-5] ^ 1]) + content[-4:],
    "empty": lambda content: b"",
    "text": lambda content: b"these are not the weights you are looking for\n" * 20,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused_and_left_as_it_is(damage: str, run_folder: Path) -> None:
    for name in (CHECKPOINT, PREVIOUS, BELIEF):
        (run_folder / name).write_bytes(DAMAGES[damage]((run_folder / name).read_bytes()))
    before = contents(run_folder)
    refuse("damaged", kind=BrokenFile, checkpoint=run_folder, resume=True, epochs=2)
    with pytest.raises(BrokenFile, match="damaged"):
        doxa.load(run_folder / BELIEF, net())
    assert contents(run_folder) == before


def test_a_belief_of_another_net_is_refused_by_name_and_shape(run_folder: Path) -> None:
    with pytest.raises(BadInput, match=r"0.weight: file \(5, 4\), net \(6, 4\).*build the net it was trained with"):
        doxa.load(run_folder / BELIEF, other_net())
    with pytest.raises(BadInput, match=r"1.weight: file none, net \(5,\)"):
        doxa.load(run_folder / BELIEF, nn.Sequential(nn.Linear(SIZE, 5), nn.BatchNorm1d(5), nn.Linear(5, CLASSES)))
    with pytest.raises(BrokenFile, match=r"holds a doxa.training, not a doxa.belief"):
        doxa.load(run_folder / CHECKPOINT, net())
    with pytest.raises(BrokenFile, match="is not a file"):
        doxa.load(run_folder / "nothing.doxa", net())


@contextmanager
def file_limit(size: int) -> Iterator[None]:
    """The kernel lets no file of this process grow beyond `size` bytes: a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_a_full_disk_leaves_the_old_file_and_no_other(learned: doxa.Belief, newer: doxa.Belief, tmp_path: Path) -> None:
    path = tmp_path / BELIEF
    learned.save(path)
    before = path.read_bytes()
    with file_limit(1024), pytest.raises(BrokenFile, match=r"could not write .*belief.doxa.*untouched"):
        newer.save(path)
    assert contents(tmp_path) == {BELIEF: before}
    with file_limit(1024), pytest.raises(BrokenFile, match="could not write") as caught:
        learned.save(tmp_path / "new.doxa")
    assert "untouched" not in str(caught.value)
    assert contents(tmp_path) == {BELIEF: before}


@pytest.mark.parametrize("function", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_save_that_fails_on_the_way_leaves_the_old_file_and_no_other(
    function: str, error: BaseException, learned: doxa.Belief, newer: doxa.Belief, tmp_path: Path, monkeypatch
) -> None:
    def fail(*args: Any) -> None:
        raise error

    learned.save(tmp_path / BELIEF)
    before = contents(tmp_path)
    monkeypatch.setattr(os, function, fail)
    with pytest.raises((BrokenFile, KeyboardInterrupt)) as caught:
        newer.save(tmp_path / BELIEF)
    monkeypatch.undo()
    if isinstance(error, OSError):
        assert "No space left on device" in str(caught.value)
    assert contents(tmp_path) == before


def test_a_disk_that_fills_up_while_learning_keeps_the_last_checkpoint(tmp_path: Path) -> None:
    fit(checkpoint=tmp_path, epochs=1)
    before, module = contents(tmp_path), net()
    with file_limit(1024), untouched(module), pytest.raises(BrokenFile, match=r"could not write.*untouched"):
        fit(module, checkpoint=tmp_path, epochs=3, resume=True)
    assert contents(tmp_path) == before
    resumed = fit(checkpoint=tmp_path, epochs=3, resume=True)
    assert torch.equal(resumed.posterior.mean, fit(epochs=3).posterior.mean)


def test_a_place_where_nothing_can_be_written_is_named(learned: doxa.Belief, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(BrokenFile, match="could not write"):
        learned.save(tmp_path / "file" / "belief.doxa")
    with pytest.raises(BrokenFile, match="could not write"):
        learned.save(tmp_path)
    assert contents(tmp_path) == {"file": b"mine"}


def test_loaders_leave_torch_s_generator_alone() -> None:
    class Noisy(Dataset):
        def __len__(self) -> int:
            return ROWS

        def __getitem__(self, i: int) -> tuple[Tensor, Tensor]:
            return X[i] + torch.randn(SIZE), Y[i]

    module = net()
    with untouched(module):
        fit(module, DataLoader(Noisy(), batch_size=8, shuffle=True))
