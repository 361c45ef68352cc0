"""The training loop: what goes in reaches the learner, what is learned comes out, and stopping loses nothing."""

from __future__ import annotations

import math
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import doxa
from doxa import kl_weights, learners, likelihoods, noise, posteriors, priors, rates
from doxa.contracts import Moment
from doxa.errors import Interrupted
from doxa.gradients.variational import VariationalGradient
from doxa.predict.sweep import PredictionRequest, sweep
from doxa.weights.layout import lay_out
from training_context import single_net_problem, step_context, step_gradients

ROWS = 40
SOURCE = torch.Generator().manual_seed(5)
X = torch.randn(ROWS, 4, generator=SOURCE)
Y = (X[:, 0] + 0.5 * X[:, 1] > 0).long() + (X[:, 2] > 1).long()
TARGET = X @ torch.tensor([[1.0], [-0.5], [0.3], [0.0]]) + 0.1 * torch.randn(ROWS, 1, generator=SOURCE)
CLASSIFY, REGRESS = likelihoods.categorical(), likelihoods.gaussian(0.3)
GAUSSIAN = priors.gaussian(1.0)
VARIATIONAL = learners.variational(GAUSSIAN)


def mlp() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))


class Halting(nn.Module):
    """The same net, which sends this process Ctrl-C in its n-th training pass, `times` times."""

    def __init__(self, pass_number: int = -1, times: int = 1) -> None:
        super().__init__()
        self.net, self.left, self.times = mlp(), pass_number, times

    def forward(self, x: Tensor) -> Tensor:
        self.left -= self.training
        if self.left == 0 and self.training:
            for _ in range(self.times):
                signal.raise_signal(signal.SIGINT)
        return self.net(x)


def fit(net: nn.Module | None = None, data=None, **more) -> doxa.Belief:
    settings = {"learner": VARIATIONAL, "likelihood": CLASSIFY, "epochs": 3, "batch_size": 16, "lr": 0.01, **more}
    return doxa.fit(mlp() if net is None else net, (X, Y) if data is None else data, **settings)


def weight(belief: doxa.Belief, name: str) -> Tensor:
    return belief.layout.views(belief.posterior.mean)[name]


# Optimisers and learning rates.

OPTIMISERS = {
    "sgd": partial(torch.optim.SGD, momentum=0.9),
    "adamw": torch.optim.AdamW,
    "rmsprop": partial(torch.optim.RMSprop, momentum=0.5, centered=True),
    "adagrad": torch.optim.Adagrad,
    "nadam": torch.optim.NAdam,
    "amsgrad": partial(torch.optim.Adam, amsgrad=True),
}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_every_optimiser_learns_and_resumes_to_the_same_bytes(name: str, tmp_path: Path) -> None:
    rate = rates.cosine(0.005 if name == "rmsprop" else 0.05)
    run = partial(fit, optimiser=OPTIMISERS[name], epochs=8, lr=rate)
    whole = run(Halting(), checkpoint=tmp_path / "whole")
    assert whole.record.history[-1]["nll"] < whole.record.history[0]["nll"] - 0.1
    for stop in (2 + 4, 2 + 6):
        with pytest.raises(Interrupted):
            run(Halting(stop), checkpoint=tmp_path / "cut", resume=True)
    run(Halting(), checkpoint=tmp_path / "cut", resume=True)
    for file in ("belief.doxa", "checkpoint.doxa"):
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "cut" / file).read_bytes()


class Spy(torch.optim.SGD):
    """Notes the rate it is given at every step."""

    seen: list[float] = []

    def step(self, closure=None):
        self.seen.append(self.param_groups[0]["lr"])
        return super().step(closure)


@pytest.mark.parametrize("rate", [rates.cosine(0.1, warmup=1), rates.step(0.1, 1), rates.cyclical(0.1, 0.01, 2)])
def test_the_schedule_reaches_the_optimiser_at_every_step(rate, monkeypatch) -> None:
    monkeypatch.setattr(Spy, "seen", [])
    belief = fit(epochs=4, lr=rate, optimiser=Spy)
    expected = [rate(Moment(k, 12, k % 3, 3)) for k in range(12)]
    assert len(set(expected)) > 2
    assert Spy.seen == expected
    assert [row["lr"] for row in belief.record.history] == expected[2::3]


def test_a_schedule_may_be_any_function_of_the_moment() -> None:
    belief = fit(lr=lambda moment: 0.1 / (1 + moment.epoch))
    assert [row["lr"] for row in belief.record.history] == [0.1, 0.05, 0.1 / 3]


# Validation and early stopping.


def test_early_stopping_stops_and_keeps_the_best_epoch_s_posterior(tmp_path: Path) -> None:
    source = torch.Generator().manual_seed(1)
    random_labels = torch.randint(0, 3, (30,), generator=source)
    held_out = (torch.randn(30, 4, generator=source), random_labels)
    belief = fit(validation=held_out, patience=3, epochs=200, lr=0.05, validation_samples=4, checkpoint=tmp_path)
    scores = [row["validation_nll"] for row in belief.record.history]
    best = min(range(len(scores)), key=scores.__getitem__)
    assert len(scores) == best + 1 + 3 < 200
    request = PredictionRequest(belief.posterior, belief.buffers, held_out[0], (0, "validation"))
    (draws,) = sweep(belief.net, belief.layout, CLASSIFY, [request], 4)
    again = -(draws.log_prob(held_out[1]).logsumexp(0) - math.log(4)).mean()
    assert float(again) == scores[best]
    stopped_there = fit(validation=held_out, epochs=best + 1, lr=0.05, validation_samples=4)
    assert torch.equal(belief.posterior.mean, stopped_there.posterior.mean)
    loaded = doxa.load(tmp_path / "belief.doxa", mlp())
    assert torch.equal(loaded.posterior.mean, belief.posterior.mean)


def test_validation_is_never_learned_from() -> None:
    with_it, without = fit(validation=(X[:9], Y[:9])), fit()
    assert torch.equal(with_it.posterior.mean, without.posterior.mean)
    assert "validation_nll" not in without.record.history[0]


def test_validation_may_come_from_a_loader() -> None:
    arrays = fit(validation=(X[:25], Y[:25]))
    loader = fit(validation=DataLoader(TensorDataset(X[:25], Y[:25]), batch_size=7))
    assert arrays.record.history == loader.record.history


# What data may look like.


class Late(nn.Module):
    """Two inputs and their sum through one net."""

    def __init__(self) -> None:
        super().__init__()
        self.net = mlp()

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return self.net(left + 2 * right)


class Pairs(Dataset):
    def __init__(self, names: tuple[str, str] | None) -> None:
        self.names = names

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, i: int):
        halves = (X[i] / 3, X[i] / 3)
        return (halves if self.names is None else dict(zip(self.names, halves, strict=True))), Y[i]


def test_tuples_and_dicts_of_inputs_reach_the_net_by_place_and_by_name() -> None:
    whole = fit(data=(X / 3 + 2 * (X / 3), Y)).posterior.mean
    by_place = fit(Late(), ((X / 3, X / 3), Y))
    by_name = fit(Late(), ({"right": X / 3, "left": X / 3}, Y))
    torch.testing.assert_close(by_place.posterior.mean, whole, rtol=1e-5, atol=1e-6)
    assert torch.equal(by_name.posterior.mean, by_place.posterior.mean)
    a, b = by_place.predict((X, 0 * X), 3), by_name.predict({"right": 0 * X, "left": X}, 3)
    assert torch.equal(a.outputs, b.outputs)
    assert not torch.equal(a.outputs, by_name.predict({"left": 0 * X, "right": X}, 3).outputs)


def test_a_loader_teaches_what_arrays_teach() -> None:
    """All rows in one batch: the same sums in another order, so equal to rounding."""
    more = {"batch_size": ROWS, "epochs": 10}
    arrays = fit(**more).posterior.mean
    for data in (TensorDataset(X, Y), [(x, y) for x, y in zip(X, Y, strict=True)]):
        loaded = fit(data=DataLoader(data, batch_size=ROWS), **more).posterior.mean
        torch.testing.assert_close(loaded, arrays, rtol=1e-4, atol=1e-5)
    for names in (None, ("left", "right")):
        loaded = fit(Late(), DataLoader(Pairs(names), batch_size=ROWS), **more).posterior.mean
        torch.testing.assert_close(loaded, arrays, rtol=1e-4, atol=1e-5)


def test_every_row_is_seen_once_an_epoch_in_an_order_of_its_own() -> None:
    class Noting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.seen = nn.Linear(1, 3), []

        def forward(self, x: Tensor) -> Tensor:
            self.seen += x[:, 0].int().tolist()
            return self.layer(x / ROWS)

    net = Noting()
    number = torch.arange(ROWS).float()[:, None]
    # The fourth batch would be of one row, which has no batch statistics: it joins the third.
    assert fit(net, (number, Y), batch_size=13).record.settings["steps"] == 9
    epochs = [net.seen[5:][k * ROWS : (k + 1) * ROWS] for k in range(3)]
    assert [sorted(order) for order in epochs] == [list(range(ROWS))] * 3
    assert epochs[0] != epochs[1] != epochs[2]


def test_a_loader_that_draws_at_random_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    """Augmentation by torch's own generator, in this process; stopped twice in the middle of an epoch."""

    class Noisy(Dataset):
        def __len__(self) -> int:
            return ROWS

        def __getitem__(self, i: int) -> tuple[Tensor, Tensor]:
            return X[i] + torch.randn(4), Y[i]

    def run(folder: str, stop_at: int = -1) -> None:
        loader = DataLoader(Noisy(), batch_size=8, shuffle=True)
        fit(Halting(stop_at), loader, checkpoint=tmp_path / folder, resume=True)

    run("whole")
    for stop in (2 + 3, 2 + 4):
        with pytest.raises(Interrupted):
            run("cut", stop)
    run("cut")
    assert (tmp_path / "whole/belief.doxa").read_bytes() == (tmp_path / "cut/belief.doxa").read_bytes()


# Which weights are beliefs.


def test_only_the_chosen_weights_are_random() -> None:
    def last(name: str, parameter: nn.Parameter) -> bool:
        return name.startswith("2.")

    belief = fit(random=last, epochs=5, learner=learners.variational(GAUSSIAN, noise.local))
    assert belief.noise == {"2.weight": "local", "2.bias": "local", "0.weight": "point", "0.bias": "point"}
    assert belief.layout.random == belief.posterior.scale.numel() == 21
    assert belief.posterior.mean.numel() == 51
    drawn = [belief.layout.views(draw.weights) for draw in belief.posterior.draws(3, (0,))]
    for name in ("0.weight", "0.bias"):
        assert all(torch.equal(d[name], weight(belief, name)) for d in drawn)
        assert not torch.equal(weight(belief, name), mlp().get_parameter(name)), "a point, but a learned one"
    assert not torch.equal(drawn[0]["2.weight"], drawn[1]["2.weight"])
    # Its KL is that of the last layer alone.
    scale, mean = belief.posterior.scale, belief.posterior.mean[:21]
    kl = (-scale.log() + (scale.square() + mean.square()) / 2 - 0.5).sum()
    assert belief.record.history[-1]["kl"] == pytest.approx(float(kl), rel=1e-4)


@pytest.mark.parametrize("learner", [VARIATIONAL, learners.ensemble(learners.point(), 2)])
def test_frozen_parameters_stay_frozen_and_are_saved(learner, tmp_path: Path) -> None:
    net = mlp()
    net[0].requires_grad_(False)
    frozen = net[0].weight.clone()
    belief = fit(net, learner=learner)
    assert [s.name for s in belief.layout.slots] == ["2.weight", "2.bias"]
    assert not net[0].weight.requires_grad
    belief.save(tmp_path / "a.doxa")
    fresh_net = mlp()
    nn.init.zeros_(fresh_net[0].weight)
    loaded = doxa.load(tmp_path / "a.doxa", fresh_net)
    assert torch.equal(loaded.buffers[-1]["0.weight"], frozen)
    assert torch.equal(loaded.predict(X, 2).outputs, belief.predict(X, 2).outputs)
    draw, *_ = loaded.posterior.draws(1, (0,))
    assert torch.equal(loaded.plain(draw.weights, draw.component)[0].weight, frozen)


def test_a_tight_prior_around_a_pretrained_net_holds_the_posterior_there() -> None:
    pretrained = mlp()
    _, start = lay_out(pretrained)
    run = partial(fit, pretrained, (X, 2 - Y), epochs=40, lr=0.02)
    narrow = posteriors.mean_field(scale=2e-3)
    held = run(learner=learners.variational(priors.gaussian(1e-3, pretrained), posterior=narrow)).posterior
    free = run(learner=learners.variational(priors.gaussian(10.0, pretrained), posterior=narrow)).posterior
    assert float((held.mean - start).abs().max()) < 5e-3
    assert float((free.mean - start).abs().max()) > 0.1
    # A posterior held by its prior has the prior's scale.
    torch.testing.assert_close(held.scale, torch.full_like(held.scale, 1e-3), rtol=0.2, atol=0)


# Inside a step.


def test_batch_statistics_of_several_samples_take_their_mean() -> None:
    class Noting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.norm, self.out, self.seen = nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 3), []

        def forward(self, x: Tensor) -> Tensor:
            x = self.layer(x)
            self.seen.append(x.detach())
            return self.out(self.norm(x))

    torch.manual_seed(0)
    net = Noting()
    learner = learners.variational(GAUSSIAN, samples=3, posterior=posteriors.mean_field(scale=0.5))
    belief = fit(net, learner=learner, epochs=1, batch_size=ROWS)
    hidden = torch.stack(net.seen[2:5])  # [S, B, 5]
    assert len(net.seen) == 5
    assert float(hidden.mean(1).std(0).min()) > 0.01, "the samples differ"
    (buffers,) = belief.buffers
    torch.testing.assert_close(buffers["norm.running_mean"], 0.1 * hidden.mean(1).mean(0))
    torch.testing.assert_close(buffers["norm.running_var"], 0.9 + 0.1 * hidden.var(1).mean(0))
    assert int(buffers["norm.num_batches_tracked"]) == 1


def start_gradient(learner, net: nn.Module, x: Tensor, likelihood) -> VariationalGradient:
    """A training as `fit` would start it."""
    return learner.start(single_net_problem(net, x, likelihood), [learner])


@pytest.mark.parametrize("kind", noise.TABLE)
def test_antithetic_pairs_lower_the_variance_of_the_gradient(kind: str) -> None:
    """For a linear net and squared error the gradient of the mean is linear in the noise: a pair has none left."""

    def spread(antithetic: bool) -> float:
        learner = learners.variational(
            GAUSSIAN, noise.TABLE[kind], samples=2, antithetic=antithetic, posterior=posteriors.mean_field(scale=0.3)
        )
        torch.manual_seed(0)
        training = start_gradient(learner, nn.Linear(4, 1), X, REGRESS)
        gradients = [step_gradients(training, X, TARGET, step_context(step=k, weight=1 / ROWS))[0] for k in range(200)]
        return float(torch.stack(gradients).var(0).sum())

    single, paired = spread(False), spread(True)
    assert single > 0.01
    assert paired < 1e-6 * single


def test_antithetic_pairs_help_a_net_that_is_not_linear() -> None:
    def spread(antithetic: bool) -> float:
        learner = learners.variational(
            GAUSSIAN, samples=2, antithetic=antithetic, posterior=posteriors.mean_field(scale=0.1)
        )
        training = start_gradient(learner, mlp(), X, CLASSIFY)
        gradients = [step_gradients(training, X, Y, step_context(step=k, weight=1 / ROWS))[0] for k in range(300)]
        return float(torch.stack(gradients).var(0).sum())

    assert spread(True) < 0.5 * spread(False)


@pytest.mark.parametrize("schedule", [kl_weights.geometric(), kl_weights.tempered(0.3), kl_weights.annealed(2)])
@pytest.mark.parametrize("prior", [GAUSSIAN, priors.student_t()])
def test_the_kl_of_a_batch_is_weighed_by_its_schedule_over_the_size_of_the_data(schedule, prior) -> None:
    """With the same draw, gradients under two schedules differ by (w₁ − w₂)/N ∇KL; a geometric epoch pays it once."""
    batches, size = 4, 1000

    def gradients(weights, moment: Moment) -> list[Tensor]:
        learner = learners.variational(prior, kl_weight=weights)
        training = start_gradient(learner, mlp().double(), X.double(), CLASSIFY)
        context = step_context((7,), moment.step, learner.kl_weight(moment) / size, X.double())
        return step_gradients(training, X.double(), Y, context)

    total = 0.0
    for i in range(batches):
        moment = Moment(i, 2 * batches, i, batches)
        w = schedule(moment)
        total += w
        once, scaled, twice = (gradients(s, moment) for s in (kl_weights.uniform(), schedule, kl_weights.tempered(2.0)))
        for uniform, scheduled, doubled in zip(once, scaled, twice, strict=True):
            slope = doubled - uniform  # ∇KL/N, or its one-draw estimate
            torch.testing.assert_close(scheduled - uniform, (w - 1) * slope, rtol=1e-6, atol=1e-10)
        if prior is GAUSSIAN:
            mean = lay_out(mlp().double())[1]
            torch.testing.assert_close(twice[0] - once[0], mean / size, rtol=1e-5, atol=1e-9)
    if isinstance(schedule, kl_weights.geometric):
        assert total == pytest.approx(batches)


# Noise that is learned.


def test_one_noise_for_all_rows_is_learned_as_the_spread_of_the_residuals() -> None:
    """By maximum likelihood the scale is the root mean square of the least-squares residuals, whatever the start."""
    source = torch.Generator().manual_seed(2)
    x = torch.randn(300, 3, generator=source)
    sd = torch.tensor([0.3, 2.0])
    y = x @ torch.randn(3, 2, generator=source) + sd * torch.randn(300, 2, generator=source)
    design = torch.cat([x, torch.ones(300, 1)], 1)
    torch.manual_seed(0)
    residuals = y - design @ torch.linalg.lstsq(design, y).solution
    belief = fit(
        nn.Linear(3, 2),
        (x, y),
        learner=learners.point(),
        likelihood=likelihoods.gaussian_learned(5.0),
        batch_size=300,
        epochs=700,
        lr=rates.cosine(0.05),
    )
    draws = belief.predict(x)
    expected = residuals.square().mean(0).sqrt()
    torch.testing.assert_close(draws.aleatoric, expected.expand_as(draws.aleatoric), rtol=5e-3, atol=0)
    assert belief.noise["likelihood:log_scale"] == "point"


def test_noise_of_the_likelihood_is_no_belief() -> None:
    torch.manual_seed(0)
    belief = fit(nn.Linear(4, 1), (X, TARGET), likelihood=likelihoods.gaussian_learned(0.5), epochs=40)
    draws = belief.predict(X, 4)
    scales = draws.likelihood.split(draws.outputs, draws.parameters)[1]
    assert float(scales.std(0).max()) == 0
    assert float(scales.mean()) != 0.5
    assert belief.layout.random == 5


def test_noise_of_each_input_is_learned() -> None:
    """sd(x) = softplus(x): a linear net can say it, and must."""
    source = torch.Generator().manual_seed(3)
    x = torch.rand(2000, 1, generator=source) * 4 - 2
    y = 1 - 2 * x + F.softplus(x) * torch.randn(2000, 1, generator=source)
    torch.manual_seed(1)
    belief = fit(
        nn.Linear(1, 2),
        (x, y),
        learner=learners.variational(priors.gaussian(3.0), noise.local),
        likelihood=likelihoods.gaussian_per_input(),
        batch_size=500,
        epochs=150,
        lr=rates.cosine(0.05),
    )
    grid = torch.linspace(-2, 2, 9)[:, None]
    draws = belief.predict(grid, 20)
    torch.testing.assert_close(draws.aleatoric, F.softplus(grid), rtol=0.1, atol=0)
    torch.testing.assert_close(draws.mean, 1 - 2 * grid, rtol=0, atol=0.15)


# Stopping by hand.


def test_ctrl_c_without_a_folder_gives_what_was_learned() -> None:
    handler = signal.getsignal(signal.SIGINT)
    net = Halting(2 + 4)
    net.eval()
    with pytest.raises(Interrupted, match=r"step 4 of 9 \(epoch 2 of 3\).*no checkpoint folder.*\.belief") as caught:
        fit(net)
    belief = caught.value.belief
    assert signal.getsignal(signal.SIGINT) is handler
    assert not any(m.training for m in net.modules())
    assert belief.record.settings["steps"] == 4
    assert len(belief.record.history) == 1
    assert not torch.equal(belief.posterior.mean, lay_out(net)[1])
    assert belief.predict(X, 3).mean.shape == (ROWS, 3)


def test_ctrl_c_with_a_folder_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    with pytest.raises(Interrupted, match=r"saved in .*resume=True") as caught:
        fit(Halting(2 + 4), checkpoint=tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert (tmp_path / "checkpoint.doxa").exists()
    assert not (tmp_path / "belief.doxa").exists(), "it is not finished"
    resumed = fit(Halting(), checkpoint=tmp_path, resume=True)
    assert torch.equal(resumed.posterior.mean, fit(Halting()).posterior.mean)


def test_a_second_ctrl_c_stops_at_once_and_leaves_the_last_checkpoint(tmp_path: Path) -> None:
    fit(Halting(), checkpoint=tmp_path, epochs=1)
    before = (tmp_path / "checkpoint.doxa").read_bytes()
    with pytest.raises(KeyboardInterrupt) as caught:
        fit(Halting(2 + 2, times=2), checkpoint=tmp_path, resume=True)
    assert not isinstance(caught.value, Interrupted)
    assert (tmp_path / "checkpoint.doxa").read_bytes() == before


def test_training_works_in_another_thread() -> None:
    """Only the main thread may handle signals."""
    beliefs: list[doxa.Belief] = []
    thread = threading.Thread(target=lambda: beliefs.append(fit()))
    thread.start()
    thread.join()
    assert torch.equal(beliefs[0].posterior.mean, fit().posterior.mean)


def test_checkpoints_come_as_often_as_asked_and_a_longer_run_goes_on(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        fit(Halting(2 + 4), checkpoint=tmp_path / "a", checkpoint_every=5)
    written = []

    class Looking(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = mlp()

        def forward(self, x: Tensor) -> Tensor:
            written.append((tmp_path / "b/checkpoint.doxa").exists())
            return self.net(x)

    fit(Looking(), checkpoint=tmp_path / "b", checkpoint_every=2, epochs=3)
    assert written == [False] * (2 + 6) + [True] * 3
    longer = fit(Looking(), checkpoint=tmp_path / "b", checkpoint_every=2, epochs=5, resume=True)
    assert torch.equal(longer.posterior.mean, fit(epochs=5).posterior.mean)
    assert len(longer.record.history) == 5
    again = fit(Looking(), checkpoint=tmp_path / "b", checkpoint_every=2, epochs=5, resume=True)
    assert torch.equal(again.posterior.mean, longer.posterior.mean)


# What is shown.


def test_progress_is_silent_where_nobody_watches(capfd) -> None:
    fit(validation=(X, Y), progress=True)
    assert capfd.readouterr() == ("", "")


WATCHED = """
import sys, torch, doxa
from torch import nn
x, y = torch.randn(20, 4), torch.randint(0, 3, (20,))
def fit(progress):
    doxa.fit(nn.Linear(4, 3), (x, y), learner=doxa.learners.variational(doxa.priors.gaussian()), epochs=2,
        likelihood=doxa.likelihoods.categorical(), validation=(x, y), progress=progress)
fit(False)
print("now", file=sys.stderr, flush=True)
fit(True)
"""


def test_progress_shows_nll_kl_and_validation_on_a_terminal() -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    child = subprocess.Popen(
        [sys.executable, "-c", WATCHED],
        stdout=subprocess.PIPE,
        stderr=theirs,
        stdin=subprocess.DEVNULL,
        env=environment,
    )
    os.close(theirs)
    shown = b"".join(pieces(ours))
    os.close(ours)
    assert child.stdout is not None
    assert child.stdout.read() == b""
    assert child.wait() == 0, shown
    before, _, after = shown.decode().partition("now")
    assert before == ""
    assert "epoch 2/2" in after
    assert re.search(r"NLL \d+\.\d{4}  KL \d+  validation \d+\.\d{4}", after)


def pieces(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            return
        if not piece:
            return
        yield piece


# Precision.


@pytest.mark.parametrize("kind", noise.TABLE)
@pytest.mark.parametrize("whose", ["ours", "theirs"])
def test_half_precision_learns_nearly_the_same(kind: str, whose: str) -> None:
    """Weights stay in single precision; casts are made anew at every step, in the user's own autocast block too."""
    run = partial(fit, learner=learners.variational(GAUSSIAN, noise.TABLE[kind]), epochs=20, lr=0.02)
    full = run()
    if whose == "ours":
        half = run(autocast=torch.bfloat16)
    else:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            half = run()
    assert half.posterior.mean.dtype == torch.float32
    assert not torch.equal(half.posterior.mean, full.posterior.mean)
    moved = (full.posterior.mean - lay_out(mlp())[1]).norm()
    assert float((half.posterior.mean - full.posterior.mean).norm()) < 0.1 * float(moved)
    assert half.record.history[-1]["nll"] < half.record.history[0]["nll"] - 0.2
    assert half.predict(X, 3, autocast=torch.bfloat16).outputs.dtype == torch.float32


@pytest.mark.parametrize("kind", noise.TABLE)
def test_double_precision_nets_learn_in_double_precision(kind: str) -> None:
    learner = learners.variational(GAUSSIAN, noise.TABLE[kind])
    belief = fit(mlp().double(), (X.double(), Y), learner=learner, epochs=20, validation=(X.double(), Y))
    assert belief.posterior.mean.dtype == belief.posterior.scale.dtype == torch.float64
    assert belief.predict(X.double(), 3).mean.dtype == torch.float64
    assert belief.record.history[-1]["nll"] < belief.record.history[0]["nll"] - 0.1


def test_weights_that_cannot_have_the_noise_asked_for_are_named_once() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 3))
    with pytest.warns(UserWarning, match=r"one shared draw.*1.weight.*1.bias") as caught:
        belief = fit(net, learner=learners.variational(GAUSSIAN, noise.flipout))
    assert len(caught) == 1
    assert belief.noise["0.weight"] == "flipout"
    assert belief.noise["1.weight"].startswith("shared (")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(net)


def test_the_record_tells_how_a_belief_came_to_be() -> None:
    belief = fit(seed=3, lr=rates.step(0.1, 2))
    settings = belief.record.settings
    assert settings["seed"] == 3
    assert settings["size"] == ROWS
    assert settings["steps"] == 9
    assert settings["learner"]["prior"] == {"is": "Gaussian", "scale": 1.0, "centre": 0.0}
    assert settings["lr"] == {"is": "Step", "rate": 0.1, "every": 2, "factor": 0.5}
    assert settings["versions"]["torch"] == torch.__version__
    assert [sorted(row) for row in belief.record.history] == [["kl", "lr", "nll"]] * 3


# Watched.


def test_what_a_watch_sees_joins_the_history_and_changes_nothing(tmp_path: Path) -> None:
    epochs_seen: list[int] = []

    def watch(belief: doxa.Belief) -> dict[str, float]:
        epochs_seen.append(len(belief.record.history))
        return {"spread": float(belief.predict(X[:5], 3).std.mean())}

    watched, plain = fit(epochs=5, watch=watch, watch_every=2), fit(epochs=5)
    assert torch.equal(watched.posterior.mean, plain.posterior.mean)
    assert ["spread" in row for row in watched.record.history] == [False, True, False, True, False]
    assert epochs_seen == [2, 4]
    fit(epochs=3, watch=watch, watch_every=2, checkpoint=tmp_path)
    resumed = fit(epochs=5, watch=watch, watch_every=2, checkpoint=tmp_path, resume=True)
    assert resumed.record.history == watched.record.history
    with pytest.raises(doxa.BadInput, match="1 beliefs and gave 0 rows"):
        doxa.fleet(
            mlp(), (X, Y), learners=learners.point(), likelihood=CLASSIFY, watch=lambda beliefs: [], progress=False
        )
