"""The same library on a GPU: every net and noise, exact resume, and agreement with the CPU."""

from __future__ import annotations

import warnings
from functools import partial

import pytest
import torch

import doxa
from doxa import flat, learners, likelihoods, noise, priors
from doxa.engine import run as run_module
from doxa.errors import Interrupted
from doxa.posteriors.dropout import Dropout, Masked
from doxa.random.philox import Stream, fill_dropout_mask, fill_normals, fill_signs, fill_uniform, random_order
from doxa.runs import Plan, learn, load_training_data, open_run, predict_table
from doxa.weights.layout import fresh_weights, lay_out
from laws.test_learners import LEARNERS, small, wrapped
from test_native import PAIRS, prior_gradients, rows
from zoo import CASES

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")


@pytest.mark.parametrize("autocast", [None, torch.bfloat16])
@pytest.mark.parametrize("kind", noise.TABLE)
@pytest.mark.parametrize("name", CASES)
def test_learns_on_the_device_and_moves_to_the_cpu(
    name: str, kind: str, autocast: torch.dtype | None, tmp_path
) -> None:
    case = CASES[name]
    learner = learners.variational(priors.gaussian(1.0), noise.TABLE[kind])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        belief = doxa.fit(
            case.net(),
            case.data(24),
            learner=learner,
            likelihood=likelihoods.categorical(),
            epochs=3,
            batch_size=8,
            device="cuda",
            autocast=autocast,
        )
    assert belief.posterior.mean.is_cuda
    x = case.inputs(5)
    cuda_outputs = belief.predict_at_mean(x).outputs.cpu()
    assert belief.predict(x, 3, autocast=autocast).outputs.isfinite().all()
    belief.save(tmp_path / "b.doxa")
    on_cpu = doxa.load(tmp_path / "b.doxa", case.net(), device="cpu")
    torch.testing.assert_close(on_cpu.predict_at_mean(x).outputs, cuda_outputs, rtol=5e-3, atol=5e-3)
    torch.testing.assert_close(belief.to("cpu").predict_at_mean(x).outputs, cuda_outputs, rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize("name", LEARNERS)
def test_resumed_equals_uninterrupted_on_the_device(name: str, tmp_path) -> None:
    small(LEARNERS[name], tmp_path / "whole", net=wrapped(), device="cuda")
    passes = getattr(LEARNERS[name], "members", 1) * getattr(LEARNERS[name], "samples", 1)
    with pytest.raises(Interrupted):
        small(LEARNERS[name], tmp_path / "cut", net=wrapped(4 + 5 * passes), device="cuda")
    small(LEARNERS[name], tmp_path / "cut", net=wrapped(), resume=True, device="cuda")
    assert (tmp_path / "whole/belief.doxa").read_bytes() == (tmp_path / "cut/belief.doxa").read_bytes()


@pytest.mark.parametrize("kind", noise.TABLE)
def test_conjugate_regression_on_the_device(kind: str) -> None:
    """Means within 0.1 posterior standard deviations and scales within 10 % of 1/√Λᵢᵢ after a short run."""
    from laws.test_learners import NOISE, PRIOR, linear, regression, settling

    x, y, mean, precision = regression()
    learner = learners.variational(
        priors.gaussian(PRIOR),
        noise.TABLE[kind],
        samples=8,
        antithetic=True,
        posterior=doxa.posteriors.mean_field(scale=0.06),
    )
    belief = doxa.fit(
        linear(),
        (x, y),
        learner=learner,
        likelihood=likelihoods.gaussian(NOISE),
        epochs=1000,
        batch_size=len(x),
        lr=settling,
        optimiser=torch.optim.SGD,
        device="cuda",
    )
    q = belief.to("cpu").posterior
    deviation = torch.linalg.inv(precision).diagonal().sqrt()
    assert float(((q.mean - mean) / deviation).abs().max()) < 0.1
    assert float((q.scale * precision.diagonal().sqrt() - 1).abs().max()) < 0.1


def test_a_vector_prior_follows_the_net_to_the_device() -> None:
    case = CASES["mlp"]
    net = case.net()
    count = sum(p.numel() for p in net.parameters())
    for prior in (priors.gaussian(torch.ones(count), centre=net), priors.laplace(1.0, centre=torch.zeros(count))):
        learner = learners.variational(prior, noise.local)
        belief = doxa.fit(
            net, case.data(), learner=learner, likelihood=likelihoods.categorical(), epochs=1, device="cuda"
        )
        assert belief.prior.centre.is_cuda
        assert belief.predict(case.inputs(3), 2).outputs.isfinite().all()


def test_a_net_that_recomputes_is_refused_on_the_device_too() -> None:
    class Recomputing(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.body = torch.nn.Linear(6, 6), torch.nn.Linear(6, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.utils.checkpoint.checkpoint(self.body, self.first(x), use_reentrant=False)

    with pytest.raises(doxa.BadInput, match="activation checkpointing"):
        doxa.fit(
            Recomputing(),
            CASES["mlp"].data(),
            learner=learners.point(),
            likelihood=likelihoods.categorical(),
            device="cuda",
        )


@pytest.mark.parametrize("learner", ["auto", "variational", "dropout"])
def test_a_table_is_learned_on_the_device_and_asked_anywhere(learner: str, tmp_path) -> None:
    rows = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    table = {"a": rows[:, 0].numpy(), "b": rows[:, 1].numpy(), "y": (rows[:, 0] - rows[:, 2] / 9).numpy()}
    plan = Plan(net="mlp:16", learner=learner, epochs=20, members=2, draws=10, device="cuda")
    run = learn(load_training_data(table, "y"), plan, tmp_path / "r", progress=False)
    assert run.result()["scores"]["rmse"]["value"] < 1
    cuda_mean = predict_table(open_run(tmp_path / "r", "cuda"), table, samples=20)["mean"]
    cpu_mean = predict_table(open_run(tmp_path / "r", "cpu"), table, samples=20)["mean"]
    assert abs(cuda_mean - cpu_mean).max() < 0.5  # other draws, the same belief


@pytest.mark.parametrize("name", LEARNERS)
def test_captured_is_eager_to_the_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recorded step runs the kernels of the written one: no bit differs."""
    x, y = torch.randn(96, 6), torch.randint(0, 3, (96,))

    def learned() -> doxa.Belief:
        torch.manual_seed(0)
        return doxa.fit(
            doxa.nets.mlp(6, (20, 20), 3),
            (x, y),
            learner=LEARNERS[name],
            likelihood=likelihoods.categorical(),
            epochs=6,
            batch_size=20,
            device="cuda",
            progress=False,
        )

    captured = learned()
    monkeypatch.setattr(run_module, "make_recording", lambda *_: None)
    torch.testing.assert_close(captured.posterior.mean, learned().posterior.mean, rtol=0, atol=0)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_fleet_on_the_device_is_its_members_alone_and_resumes_to_the_byte(name: str, tmp_path) -> None:
    x, y = torch.randn(96, 6), torch.randint(0, 3, (96,))
    torch.manual_seed(0)
    keys = {"likelihood": likelihoods.categorical(), "batch_size": 20, "device": "cuda", "progress": False}
    fleet_learners, net = [LEARNERS[name]] * 3, doxa.nets.mlp(6, (20, 20), 3)
    whole = doxa.fleet(
        net, (x, y), learners=fleet_learners, seeds=[1, 2, 3], epochs=6, checkpoint=tmp_path / "whole", **keys
    )
    for belief, seed in zip(whole, (1, 2, 3), strict=True):
        alone = doxa.fit(net, (x, y), learner=LEARNERS[name], seed=seed, epochs=6, **keys)
        torch.testing.assert_close(belief.posterior.mean, alone.posterior.mean, rtol=1e-4, atol=1e-5)
    doxa.fleet(net, (x, y), learners=fleet_learners, seeds=[1, 2, 3], epochs=3, checkpoint=tmp_path / "cut", **keys)
    doxa.fleet(
        net,
        (x, y),
        learners=fleet_learners,
        seeds=[1, 2, 3],
        epochs=6,
        checkpoint=tmp_path / "cut",
        resume=True,
        **keys,
    )
    for k in range(3):
        file = f"belief-{k}.doxa"
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "cut" / file).read_bytes()


@pytest.mark.parametrize(("pullback", "kind"), PAIRS)
def test_the_triton_step_is_torch_s(pullback, kind) -> None:
    """Gradients and Adam's steps, three nets wide, beside the CPU's."""
    results_by_device = []
    for device in ("cpu", "cuda"):
        mean, rho, gradient, second_gradient, epsilon, by_mean, by_rho = (r.to(device) for r in rows(7, 40_001))
        second_gradient = gradient if kind is flat.PriorGradientKind.MIXTURE else second_gradient
        prior_gradients_on_cpu = prior_gradients(kind, 40_001)
        moved = [
            None if t is None else t.to(device)
            for t in (
                prior_gradients_on_cpu.coefficients,
                prior_gradients_on_cpu.centres,
                prior_gradients_on_cpu.precisions,
            )
        ]
        weights, rates = torch.tensor([0.3, 1e-3, 1.0], device=device), torch.tensor([0.01, 0.1, -1.0], device=device)
        inputs = flat.GaussianGradientInputs(
            mean, rho, gradient, second_gradient, epsilon, pullback, weights, flat.PriorGradients(kind, *moved)
        )
        flat.fill_gradients(inputs, by_mean, by_rho)
        gradients = [by_mean.cpu(), by_rho.cpu()]
        moments = flat.Moments.initial(mean), flat.Moments.initial(rho)
        for number in (1, 2):
            flat.gaussian_adam(inputs, *moments, rates, flat.bias_corrections(number), flat.decays())
        results_by_device.append([*gradients, mean.cpu(), rho.cpu()])
    for ours, theirs in zip(*results_by_device, strict=True):
        far = (ours - theirs).abs() > 2e-5 + 2e-5 * theirs.abs()
        assert int(far.sum()) <= 1e-3 * ours.numel()


@pytest.mark.parametrize("start", [0, 1023, 2**40 + 3])
def test_the_streams_are_the_cpu_s(start: int) -> None:
    seeds = torch.tensor([12345, 2**62 + 7, 9])
    cpu_numbers, cuda_numbers = torch.empty(3, 40_001), torch.empty(3, 40_001, device="cuda")
    for fill, exact in (
        (partial(fill_normals, start=start), False),
        (fill_signs, True),
        (partial(fill_dropout_mask, rate=0.3), True),
        (fill_uniform, True),
    ):
        fill(cpu_numbers, Stream(seeds, 2**31 + 5, 3))
        fill(cuda_numbers, Stream(seeds.cuda(), 2**31 + 5, 3))
        torch.testing.assert_close(cuda_numbers.cpu(), cpu_numbers, rtol=0, atol=0 if exact else 2e-6)
    assert torch.equal(random_order(Stream(seeds.cuda(), 4), 1000).cpu(), random_order(Stream(seeds, 4), 1000))


@pytest.mark.parametrize("decays", [(0.9, 0.999), (0.9, 0.9999), (0.999, 0.999999)])
def test_the_triton_adam_loses_no_digit_of_its_decays(decays: tuple[float, float]) -> None:
    gradient = torch.tensor([[3.0, -0.25, 1e-3, 7.0]], device="cuda")
    exact = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([exact], 1e-3, betas=decays)
    x = torch.zeros_like(gradient)
    moments = flat.Moments.initial(x)
    for number in range(1, 8):
        exact.grad = gradient[0].double().cpu()
        optimiser.step()
        flat.adam(
            x,
            gradient,
            moments,
            torch.tensor([1e-3], device="cuda"),
            flat.bias_corrections(number, *decays[:2]),
            flat.decays(*decays),
        )
        assert float((x[0].double().cpu() / exact.detach() - 1).abs().max()) < 1e-6


def test_an_expanded_gradient_is_read_as_it_stands() -> None:
    x = torch.zeros(1, 5000, device="cuda")
    gradient, rates = torch.full((1, 1), 0.5, device="cuda").expand(1, 5000), torch.tensor([0.1], device="cuda")
    flat.adam(x, gradient, flat.Moments.initial(x), rates, flat.bias_corrections(1), flat.decays())
    torch.testing.assert_close(x, torch.full_like(x, -0.1))


def test_members_start_as_on_the_cpu() -> None:
    """Fresh weights, uniform starts and the masks of dropout: the same numbers on both."""
    net = CASES["mlp"].net()
    layout, start = lay_out(net)
    cpu_start = fresh_weights(net, layout, start, (4,))
    cuda_start = fresh_weights(net.cuda(), layout, start.cuda(), (4,))
    assert torch.equal(cuda_start.cpu(), cpu_start)
    family = doxa.posteriors.mean_field(rho=(-5, -4), mean=(-0.2, 0.2))
    for ours, theirs in zip(
        *(vars(family.start(layout, s, (1,))).values() for s in (cpu_start, cuda_start)), strict=True
    ):
        assert ours is theirs is None or torch.equal(ours, theirs.cpu())
    (slot, *_) = layout.random_slots
    masked = (Masked(slot.start, slot.shape, 1, 1, 0.4),)
    pairs = zip(*(Dropout(s, layout.random, masked).draws(3, (2,)) for s in (cpu_start, cuda_start)), strict=True)
    assert all(torch.equal(ours.weights, theirs.weights.cpu()) for ours, theirs in pairs)
