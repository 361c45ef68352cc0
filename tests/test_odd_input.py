"""Input that is odd rather than broken: taken as meant, or refused in words; never quietly something else."""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

import doxa
from doxa import BadInput, learners, likelihoods, noise, posteriors, priors
from doxa.engine.feed import InMemoryFeed
from doxa.weights.layout import fresh_weights, lay_out
from zoo import CASES

X = torch.randn(20, 4, generator=torch.Generator().manual_seed(1))
Y = torch.randint(0, 3, (20,), generator=torch.Generator().manual_seed(2))
VARIATIONAL = learners.variational(priors.gaussian(1.0))


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 3))


def fit(module: nn.Module | None = None, data=(X, Y), **more) -> doxa.Belief:
    settings = {"learner": VARIATIONAL, "likelihood": likelihoods.categorical(), "epochs": 2, "batch_size": 8, **more}
    return doxa.fit(net() if module is None else module, data, **settings)


def test_a_run_with_other_random_weights_is_not_resumed(tmp_path) -> None:
    fit(checkpoint=tmp_path, random=lambda name, p: name.startswith("0."))
    for chooser in (lambda name, p: name.startswith("2."), None):
        with pytest.raises(BadInput, match="other weights were random or frozen"):
            fit(checkpoint=tmp_path, random=chooser, resume=True, epochs=3)


def test_an_optimiser_with_other_settings_is_not_resumed(tmp_path) -> None:
    fit(checkpoint=tmp_path, optimiser=partial(torch.optim.SGD, momentum=0.9))
    with pytest.raises(BadInput, match="momentum"):
        fit(checkpoint=tmp_path, optimiser=partial(torch.optim.SGD, momentum=0.1), resume=True, epochs=3)


def test_a_loader_over_other_labels_is_not_resumed(tmp_path) -> None:
    def loader(y: Tensor) -> DataLoader:
        return DataLoader(TensorDataset(X, y), batch_size=8, shuffle=True)

    fit(data=loader(Y), checkpoint=tmp_path)
    with pytest.raises(BadInput, match="other settings"):
        fit(data=loader(Y.flip(0)), checkpoint=tmp_path, resume=True, epochs=3)
    assert len(fit(data=loader(Y), checkpoint=tmp_path, resume=True, epochs=3).record.history) == 3


def test_targets_keep_their_precision_under_autocast() -> None:
    """1000.3 is 1000 in bfloat16: the residual of a net that outputs about 0 must know the difference."""
    y = torch.full((20, 1), 1000.3)
    module = nn.Linear(4, 1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        belief = fit(module, (X, y), likelihood=likelihoods.gaussian(1000.0), learner=learners.point())
    assert belief.likelihood.check(belief.predict(X).outputs[0], y).dtype == torch.float32


class Pooling(nn.Module):
    """Loses the rows."""

    def __init__(self, keep: bool) -> None:
        super().__init__()
        self.layer, self.keep = nn.Linear(4, 3), keep

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x).mean(0, keepdim=self.keep) if self.keep else self.layer(x).mean()


@pytest.mark.parametrize("keep", [True, False])
def test_a_net_that_loses_the_rows_is_refused(keep: bool) -> None:
    with pytest.raises(BadInput, match="first axis must be the rows"):
        fit(Pooling(keep), (X, torch.randn(20, 3)), likelihood=likelihoods.gaussian(1.0))


def test_numpy_numbers_are_plain_numbers(tmp_path) -> None:
    plain = fit(seed=3, checkpoint=tmp_path / "a")
    from_numpy = fit(seed=np.int64(3), epochs=np.int64(2), batch_size=np.int32(8), checkpoint=tmp_path / "b")
    assert torch.equal(plain.posterior.mean, from_numpy.posterior.mean)
    assert (tmp_path / "a/belief.doxa").read_bytes() == (tmp_path / "b/belief.doxa").read_bytes()


@pytest.mark.parametrize(
    ("match", "more"),
    [
        ("epochs must be a whole number", {"epochs": 2.5}),
        ("batch_size must be a whole number", {"batch_size": 2.5}),
        ("seed must be a whole number", {"seed": "3"}),
        ("validation_samples must be at least 1", {"validation_samples": 0}),
        ("autocast must be a floating-point", {"autocast": torch.int32}),
        ("autocast must be a floating-point", {"autocast": "bf16"}),
        ("learning rate at step 0 is -1", {"lr": lambda moment: -1.0}),
        ("optimiser must be one of doxa.optimisers, or make", {"optimiser": "adam"}),
        ("learner must be one of doxa.learners", {"learner": learners.point}),
        ("likelihood must be one of doxa.likelihoods", {"likelihood": likelihoods.categorical}),
        ("likelihood must be one of doxa.likelihoods", {"likelihood": "categorical"}),
        ("cannot be used here", {"device": "nonsense"}),
        ("at least one", {"validation": DataLoader(TensorDataset(X[:0], Y[:0]))}),
    ],
)
def test_settings_of_the_wrong_kind_are_refused(match: str, more: dict) -> None:
    with pytest.raises(BadInput, match=match):
        fit(**more)


@pytest.mark.parametrize(
    ("match", "make"),
    [
        ("prior must be one of doxa.priors", lambda: learners.variational(None)),
        ("prior must be one of doxa.priors", lambda: learners.variational(priors.gaussian)),
        ("noise must be one of doxa.noise", lambda: learners.variational(priors.gaussian(), "local")),
        ("kl_weight must be one of", lambda: learners.variational(priors.gaussian(), kl_weight=0.1)),
        ("samples must be a whole number", lambda: learners.variational(priors.gaussian(), samples=2.5)),
    ],
)
def test_members_of_the_wrong_room_are_refused(match: str, make) -> None:
    with pytest.raises(BadInput, match=match):
        make()


@pytest.mark.parametrize("name", ["centre", "scale"])
def test_a_prior_of_another_length_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match=f"prior's {name} has shape"):
        fit(learner=learners.variational(priors.gaussian(**{name: torch.ones(7)})))


def test_a_net_is_no_torch_module() -> None:
    with pytest.raises(BadInput, match="torch module"):
        doxa.fit(None, (X, Y), learner=VARIATIONAL, likelihood=likelihoods.categorical())


def test_batch_norm_needs_two_rows() -> None:
    module = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    with pytest.raises(BadInput, match="single row"):
        fit(module, batch_size=1)


def test_learning_inside_no_grad_works() -> None:
    with torch.no_grad():
        inside = fit()
    assert torch.equal(inside.posterior.mean, fit().posterior.mean)


class Scaled(nn.Module):
    """A parameter without axes, and a submodule that is called likelihood."""

    def __init__(self) -> None:
        super().__init__()
        self.gain, self.likelihood = nn.Parameter(torch.tensor(1.0)), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.gain * self.likelihood(x)


def test_odd_names_and_shapes_of_parameters_work(tmp_path) -> None:
    belief = fit(Scaled(), learner=learners.variational(priors.gaussian(1.0), noise.shared))
    belief.save(tmp_path / "b.doxa")
    again = doxa.load(tmp_path / "b.doxa", Scaled())
    assert torch.equal(again.predict(X, 3).outputs, belief.predict(X, 3).outputs)
    assert belief.signal_to_noise()["gain"].shape == ()


def test_a_net_with_one_number_a_row_learns_its_noise() -> None:
    class Squeezed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x)[:, 0]

    belief = fit(Squeezed(), (X, torch.randn(20)), likelihood=likelihoods.gaussian_learned())
    draws = belief.predict(X, 3)
    assert draws.mean.shape == draws.std.shape == draws.quantile(0.9).shape == draws.entropy().shape == (20,)
    assert draws.mutual_information().isfinite().all()


def test_masked_classes_have_finite_information() -> None:
    outputs = torch.randn(4, 5, 3)
    outputs[..., 2] = -torch.inf
    draws = doxa.Draws(outputs, likelihoods.categorical(), {})
    assert draws.entropy().isfinite().all()
    assert draws.mutual_information().isfinite().all()


@pytest.mark.parametrize("q", [-0.1, 0.0, 1.0, 2.0])
def test_quantiles_of_a_real_target_lie_inside(q: float) -> None:
    with pytest.raises(BadInput, match="between 0 and 1"):
        doxa.Draws(torch.randn(4, 5, 1), likelihoods.gaussian(1.0), {}).quantile(q)


def test_predict_blames_its_own_settings() -> None:
    belief = fit()
    for settings, match in (({"rows": 0}, "rows must be at least 1"), ({"samples": 2.5}, "samples must be a whole")):
        with pytest.raises(BadInput, match=match):
            belief.predict(X, **settings)


def test_a_file_for_a_checkpoint_folder_is_noticed_at_once(tmp_path) -> None:
    (tmp_path / "run").write_text("mine")
    with pytest.raises(BadInput, match="must be a folder"):
        fit(checkpoint=tmp_path / "run")
    assert (tmp_path / "run").read_text() == "mine"


def test_a_validation_loader_moves_no_generator() -> None:
    loader = DataLoader(TensorDataset(X, Y), batch_size=8, shuffle=True)
    before = torch.get_rng_state()
    fit(validation=loader)
    assert torch.equal(torch.get_rng_state(), before)


def test_pruning_again_keeps_what_was_pruned() -> None:
    belief = fit()
    twice = belief.prune(0.5).prune(0.75)
    assert torch.equal(twice.posterior.mean, belief.prune(0.75).posterior.mean)
    assert isinstance(twice.posterior, posteriors.MeanField)


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_net_that_recomputes_in_the_backward_pass_is_refused(reentrant: bool) -> None:
    class Recomputing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.body, self.head = nn.Linear(4, 5), nn.Linear(5, 5), nn.Linear(5, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(checkpoint(self.body, self.first(x), use_reentrant=reentrant))

    with pytest.raises(BadInput, match="activation checkpointing"):
        fit(Recomputing())


def test_each_member_of_an_ensemble_has_its_own_net() -> None:
    module = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3))
    belief = fit(module, learner=learners.ensemble(learners.point(), 3))
    outputs = belief.predict(X).outputs
    for k, draw in enumerate(belief.posterior.draws(1, (0,))):
        with torch.no_grad():
            torch.testing.assert_close(belief.plain(draw).eval()(X), outputs[k])
            torch.testing.assert_close(belief.plain(draw.weights, draw.component).eval()(X), outputs[k])
    for call in (belief.plain, lambda: belief.predict_at_mean(X)):
        with pytest.raises(BadInput, match="no member's"):
            call()


def test_a_fresh_member_starts_as_its_net_would() -> None:
    """A parent that zeroes a child's weights does so in every member."""

    class Zeroing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 3)
            self.reset_parameters()

        def reset_parameters(self) -> None:
            nn.init.zeros_(self.head.weight)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.body(x))

    module = Zeroing()
    layout, start = lay_out(module)
    fresh = layout.views(fresh_weights(module, layout, start, (1,)))
    assert torch.equal(fresh["head.weight"], torch.zeros(3, 4))
    assert not torch.equal(fresh["body.weight"], module.body.weight)


def test_an_optimiser_keeps_its_own_rate_unless_told() -> None:
    belief = fit(optimiser=partial(torch.optim.SGD, lr=0.25))
    assert belief.record.history[-1]["lr"] == 0.25
    assert fit(optimiser=torch.optim.SGD, lr=0.5).record.history[-1]["lr"] == 0.5
    assert fit().record.history[-1]["lr"] == 1e-3
    with pytest.raises(BadInput, match="given twice"):
        fit(optimiser=partial(torch.optim.SGD, lr=0.25), lr=0.5)


def test_members_see_a_loader_in_orders_of_their_own() -> None:
    loader = DataLoader(TensorDataset(X, Y), batch_size=8, shuffle=True)
    weights = fit(data=loader, learner=learners.ensemble(learners.point(), 2, restart=False)).posterior.weights
    assert not torch.equal(weights[0], weights[1])


def test_a_sampler_with_a_generator_of_its_own_resumes_to_the_same_bits(tmp_path) -> None:
    def loader() -> DataLoader:
        data = TensorDataset(X, Y)
        return DataLoader(data, batch_size=8, sampler=RandomSampler(data, generator=torch.Generator().manual_seed(5)))

    whole = fit(data=loader(), epochs=4, checkpoint=tmp_path / "whole")
    fit(data=loader(), epochs=2, checkpoint=tmp_path / "cut")
    cut = fit(data=loader(), epochs=4, checkpoint=tmp_path / "cut", resume=True)
    assert torch.equal(whole.posterior.mean, cut.posterior.mean)


def test_transposed_inputs_are_other_data() -> None:
    images = torch.randn(6, 3, 3)
    assert InMemoryFeed(images, Y[:6], 2).fingerprint() != InMemoryFeed(images.transpose(1, 2), Y[:6], 2).fingerprint()


def test_dropout_reaches_a_head_behind_a_recurrent_body() -> None:
    case = CASES["lstm"]
    belief = doxa.fit(
        case.net(), case.data(), learner=learners.dropout(0.5), likelihood=likelihoods.categorical(), epochs=1
    )
    assert belief.noise["head.weight"] == "dropout"


def test_particles_have_no_monte_carlo_error() -> None:
    verdict = doxa.judge(fit(learner=learners.ensemble(learners.point(), 4)), (X, Y))
    assert all(e.error == 0 for e in verdict.scores.values())
    assert doxa.judge(fit(), (X, Y), samples=4).scores["nll"].error > 0


def test_a_vector_prior_beside_a_centre_is_checked() -> None:
    with pytest.raises(BadInput, match="prior's scale has shape"):
        fit(learner=learners.variational(priors.gaussian(torch.ones(50), centre=net())))


def test_regression_information_does_not_depend_on_chunks(monkeypatch) -> None:
    draws = doxa.Draws(torch.randn(6, 30, 2), likelihoods.gaussian(0.5), {})
    whole = draws.mutual_information()
    monkeypatch.setattr(sys.modules["doxa.likelihoods.gaussian"], "NUMBERS_AT_ONCE", 1)
    torch.testing.assert_close(draws.mutual_information(), whole)
