"""The compiled passes and what torch makes of the same equations: the same numbers to rounding."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import doxa
from doxa import flat, priors
from doxa import kernels as native
from doxa.kernels import cuda
from doxa.learners import variational
from doxa.noise import flipout, local, shared
from doxa.posteriors import mean_field
from doxa.random.keys import normal
from doxa.random.philox import (
    NumpyPhilox,
    Stream,
    box_muller,
    fill_dropout_mask,
    fill_normals,
    fill_signs,
    philox_words,
)
from for_processes import run_script
from training_context import single_net_problem

LENGTHS = [1, 15, 1023, 1024, 1025, 40_001]
compiled = pytest.mark.skipif(native.library() is None, reason="no C compiler here")


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Called, it takes the compiled passes away."""
    return lambda: monkeypatch.setattr(native, "library", lambda: None)


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_known_answers(
    counter: tuple[int, ...], key: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    """The answers its authors publish: all bits clear, all set, and the digits of π."""
    low, high = (signed(a | b << 32) for a, b in (counter[:2], counter[2:]))
    computed = philox_words(key[0] | key[1] << 32, torch.tensor([low]), torch.tensor([high]))
    assert tuple(int(w) for w in computed) == expected


@pytest.mark.parametrize("first", [0, 3, (1 << 32) // 256 - 1, 1 << 40])
@pytest.mark.parametrize("seed", [0, 12345, 2**62 + 12345, 2**63 - 1])
def test_numpy_s_words_are_torch_s(seed: int, first: int) -> None:
    """Across the 32 bits of a counter's lowest word too."""
    high = (7 << 32) + 2**31 + 5
    expected = philox_words(seed, torch.arange(first * 256, (first + 2) * 256), high)
    for ours, theirs in zip(NumpyPhilox(3).fill(seed, high, first, 2), expected, strict=True):
        assert torch.equal(torch.from_numpy(ours.astype("int64")), theirs)


def signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


SEEDS = torch.tensor([12345, 2**62 + 12345, 7])
STREAM = Stream(SEEDS, 2**31 + 5, 3)


def rows(count: int, length: int) -> list[Tensor]:
    """Rows of three members each, with a gap between one and the next."""
    padded_rows = [normal(3 * (length + 5), (k, "rows"), torch.zeros(1)).view(3, -1) for k in range(count)]
    return [m[:, 2 : 2 + length] for m in padded_rows]


@compiled
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("start", [0, 1, 1000, 2**40 + 3])
def test_normals_are_the_same_without_a_compiler(length: int, start: int, eager: Callable[[], None]) -> None:
    compiled_normals, expected = rows(2, length)
    fill_normals(compiled_normals, STREAM, start, -1.0)
    eager()
    fill_normals(expected, STREAM, start, -1.0)
    torch.testing.assert_close(compiled_normals, expected, rtol=2e-6, atol=2e-6)


@compiled
@pytest.mark.parametrize("length", [*LENGTHS, 32 * 1024 + 1])
@pytest.mark.parametrize("fill", [fill_signs, partial(fill_dropout_mask, rate=0.3)])
def test_signs_and_what_is_kept_are_the_same_without_a_compiler(
    length: int, fill: Callable[..., None], eager: Callable[[], None]
) -> None:
    compiled_numbers, expected = rows(2, length)
    fill(compiled_numbers, STREAM)
    eager()
    fill(expected, STREAM)
    assert torch.equal(compiled_numbers, expected)


def test_extreme_words_make_finite_normals() -> None:
    """The smallest radius word makes the largest number there is, the largest word none at all."""
    edge = torch.tensor([0, 1, 2, 0xFFFFFFFE, 0xFFFFFFFF])
    for angle in edge:
        for z in box_muller(edge, angle.expand(5)):
            assert bool(z.isfinite().all())
            assert float(z.abs().max()) < 6.67
    assert float(box_muller(edge[:1], edge[:1])[0]) == pytest.approx(math.sqrt(2 * math.log(2**32)), rel=1e-6)
    assert float(box_muller(edge[4:], edge[:1])[0]) == pytest.approx(0, abs=1e-3)


@compiled
def test_the_scale_is_the_softplus_of_rho() -> None:
    rho = torch.linspace(-79, 79, 20_001)[None]
    exact = F.softplus(rho.double(), threshold=100)
    assert float((flat.fill_scale(torch.empty_like(rho), rho).double() / exact - 1).abs().max()) < 5e-7
    inner = exact > 1e-17  # beyond, the square leaves the normal numbers of float32
    squared = flat.fill_scale(torch.empty_like(rho), rho, squared=True).double()
    assert float((squared / exact.square() - 1)[inner].abs().max()) < 1e-6
    edge = torch.tensor([[-1e4, -81.0, -80.0, 80.0, 81.0, 1e4, float("nan")]])
    (edge_scale,) = flat.fill_scale(torch.empty_like(edge), edge)
    assert torch.equal(edge_scale[:3], edge_scale[:1].expand(3))
    assert torch.equal(edge_scale[3:6], torch.full((3,), 80.0))
    assert bool(edge_scale[6].isnan())


@compiled
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("scale_from", ["rho", "scale", "both"])
@pytest.mark.parametrize("with_mean", [True, False])
def test_a_draw_is_the_same_without_a_compiler(
    length: int, scale_from: str, with_mean: bool, eager: Callable[[], None]
) -> None:
    mean, rho = rows(2, length)

    def drawn() -> list[Tensor | None]:
        w, scale, epsilon = rows(5, length)[2:]
        scale_or_none = None if scale_from == "rho" else scale.abs_()
        flat.draw(
            w,
            mean if with_mean else None,
            scale_or_none,
            epsilon,
            rho if scale_from != "scale" else None,
            STREAM,
            7,
            -1.0,
        )
        return [w, scale_or_none, epsilon]

    compiled_draw = drawn()
    eager()
    for ours, theirs in zip(compiled_draw, drawn(), strict=True):
        if ours is not None:
            torch.testing.assert_close(ours, theirs, rtol=2e-6, atol=4e-6)


def prior_gradients(kind: flat.PriorGradientKind, length: int) -> flat.PriorGradients:
    coefficients = torch.tensor([[0.5, 4.0, 400.0, -2.0], [0.0, 1.0, 1e6, 0.0], [-0.1, 0.5, 9.0, 1.0]])
    centres, precisions = rows(9, length)[7:]
    if kind is not flat.PriorGradientKind.LINEAR_PER_WEIGHT:
        return flat.PriorGradients(kind, coefficients)
    return flat.PriorGradients(kind, coefficients, centres, precisions.abs())


def pairwise_rows(length: int) -> list[tuple[Tensor, Tensor]]:
    a, b, c, d = rows(13, length)[9:]
    return [(a, b), (c, d)]


PAIRS = [
    (t, p)
    for t in flat.ScalePullback
    for p in flat.PriorGradientKind
    if p is not flat.PriorGradientKind.MIXTURE or t is flat.ScalePullback.TIMES_EPSILON
]


@compiled
@pytest.mark.parametrize("length", [1, 1025, 40_001])
@pytest.mark.parametrize(("pullback", "kind"), PAIRS)
def test_a_step_is_the_same_without_a_compiler(
    length: int, pullback: flat.ScalePullback, kind: flat.PriorGradientKind, eager: Callable[[], None]
) -> None:
    """Gradients, and where Adam takes them; a member at rest stays as it is."""

    def stepped() -> list[Tensor]:
        mean, rho, gradient, second_gradient, epsilon, by_mean, by_rho = rows(7, length)
        second_gradient = gradient if kind is flat.PriorGradientKind.MIXTURE else second_gradient
        weights, rates = torch.tensor([0.3, 1e-3, 1.0]), torch.tensor([0.01, 0.1, -1.0])
        inputs = flat.GaussianGradientInputs(
            mean, rho, gradient, second_gradient, epsilon, pullback, weights, prior_gradients(kind, length)
        )
        flat.fill_gradients(inputs, by_mean, by_rho)
        gradients = [by_mean.clone(), by_rho.clone()]
        moments = [flat.Moments(*(m.zero_() for m in pair)) for pair in pairwise_rows(length)]
        before = mean[2].clone(), rho[2].clone()
        for number in (1, 2):
            flat.gaussian_adam(inputs, *moments, rates, flat.bias_corrections(number), flat.decays())
        assert torch.equal(mean[2], before[0])
        assert torch.equal(rho[2], before[1])
        return [*gradients, mean, rho, *(t for m in moments for t in (m.mean, m.square))]

    compiled_step = stepped()
    eager()
    for ours, theirs in zip(compiled_step, stepped(), strict=True):
        # Adam's first steps are the gradient's sign: where that is a rounding error, so is the step.
        far = (ours - theirs).abs() > 2e-5 + 2e-5 * theirs.abs()
        assert int(far.sum()) <= 1e-3 * ours.numel()
        torch.testing.assert_close(ours, theirs, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("native_or_not", [pytest.param(True, marks=compiled), False])
def test_adam_is_torch_s(native_or_not: bool, eager: Callable[[], None]) -> None:
    if not native_or_not:
        eager()
    x = torch.randn(3, 1000, generator=torch.Generator().manual_seed(0))
    theirs = [x[k].clone().requires_grad_() for k in range(2)]
    optimisers = [torch.optim.Adam([p], lr) for p, lr in zip(theirs, (0.01, 0.1), strict=True)]
    moments, before = flat.Moments.initial(x), x[2].clone()
    for number in range(1, 30):
        gradient = normal(3000, (number,), x).view(3, 1000)
        for p, row, optimiser in zip(theirs, gradient, optimisers, strict=False):
            p.grad = row.clone()
            optimiser.step()
        flat.adam(x, gradient, moments, torch.tensor([0.01, 0.1, -1.0]), flat.bias_corrections(number), flat.decays())
    torch.testing.assert_close(x[:2], torch.stack([p.detach() for p in theirs]), rtol=1e-5, atol=3e-5)
    assert torch.equal(x[2], before)


@pytest.mark.parametrize("native_or_not", [pytest.param(True, marks=compiled), False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("decays", [(0.9, 0.999), (0.9, 0.9999), (0.999, 0.999999), (0.0, 0.0)])
def test_adam_loses_no_digit_of_its_decays(
    decays: tuple[float, float], dtype: torch.dtype, native_or_not: bool, eager: Callable[[], None]
) -> None:
    """1 − 0.999999, taken in float32, is wrong by a hundredth: the path along a constant gradient would show it."""
    if not native_or_not:
        eager()
    gradient = torch.tensor([[3.0, -0.25, 1e-3, 7.0]], dtype=dtype)
    exact = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([exact], 1e-3, betas=decays)
    x = torch.zeros(1, 4, dtype=dtype)
    moments = flat.Moments.initial(x)
    for number in range(1, 8):
        exact.grad = gradient[0].double()
        optimiser.step()
        flat.adam(
            x,
            gradient,
            moments,
            torch.tensor([1e-3], dtype=dtype),
            flat.bias_corrections(number, *decays[:2]),
            flat.decays(*decays),
        )
        assert float((x[0].double() / exact.detach() - 1).abs().max()) < 1e-6


def test_rows_that_repeat_one_number_are_no_kernel_s() -> None:
    """An expanded gradient has one number in memory: a kernel would read beyond it."""
    single_number = torch.full((1, 1), 0.5)
    assert native.kernel("doxa_adam", single_number.expand(1, 5)) is None
    assert not native._is_supported(single_number.expand(3, 5))
    assert native._is_supported(single_number.expand(3, 1)), "rows of one number have no stride to speak of"
    assert native._is_supported(torch.zeros(5).expand(3, 5)), "one row for all is dense"
    assert native._is_supported(torch.zeros(1, 0))
    assert not cuda._is_supported(single_number)
    x, moments = torch.zeros(1, 1000), flat.Moments.initial(torch.zeros(1, 1000))
    flat.adam(x, single_number.expand(1, 1000), moments, torch.tensor([0.1]), flat.bias_corrections(1), flat.decays())
    torch.testing.assert_close(x, torch.full((1, 1000), -0.1))


@pytest.mark.parametrize("native_or_not", [pytest.param(True, marks=compiled), False])
@pytest.mark.parametrize("kind", list(flat.PriorGradientKind))
@pytest.mark.parametrize("start", [0, 1, 1023, 2048 + 700])
@pytest.mark.parametrize("length", [1, 1025, 40_001])
def test_noise_that_is_made_again_is_the_noise_that_was_kept(
    length: int, start: int, kind: flat.PriorGradientKind, native_or_not: bool, eager: Callable[[], None]
) -> None:
    """Wherever in the stream a piece begins; the noise itself to the bit."""
    if not native_or_not:
        eager()
    regenerable_noise = flat.RegenerableNoise(STREAM, start, -1.0)
    results = []
    for stores_epsilon in (True, False):
        mean, rho, gradient, epsilon, by_mean, by_rho, by_scale = rows(7, length)
        fill_normals(epsilon, STREAM, start, -1.0)
        stored_epsilon, noise_recipe = (epsilon, None) if stores_epsilon else (None, regenerable_noise)
        weights, rates = torch.tensor([0.3, 1e-3, 1.0]), torch.tensor([0.01, 0.1, -1.0])
        weights_and_prior = weights, prior_gradients(kind, length)
        inputs = flat.GaussianGradientInputs(
            mean,
            rho,
            gradient,
            gradient,
            stored_epsilon,
            flat.ScalePullback.TIMES_EPSILON,
            *weights_and_prior,
            regenerable_noise=noise_recipe,
        )
        flat.fill_gradients(inputs, by_mean, by_rho)
        moments = flat.Moments.initial(mean), flat.Moments.initial(rho)
        flat.accumulate_gradients(
            gradient, gradient, stored_epsilon, rho, None, inputs.pullback, mean.clone(), by_scale, False, noise_recipe
        )
        flat.gaussian_adam(inputs, *moments, rates, flat.bias_corrections(1), flat.decays())
        results.append([by_scale, by_mean, by_rho, *(m.mean for m in moments)])
    (stored_noise, *stored_results), (regenerated_noise, *regenerated_results) = results
    assert torch.equal(stored_noise, regenerated_noise)
    for before, remade in zip(stored_results, regenerated_results, strict=True):
        # Where vectors begin differs, and so does which of them the compiler's own leftovers are.
        torch.testing.assert_close(remade, before, rtol=2e-6, atol=1e-6)


@compiled
@pytest.mark.parametrize("noise", [shared, flipout], ids=lambda n: n.name)
def test_the_noise_of_many_weights_is_made_again_and_teaches_the_same(
    noise: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = variational(priors.gaussian(1.0), noise)
    torch.manual_seed(0)
    net, data = doxa.nets.mlp(5, (30,), 2), (torch.randn(40, 5), torch.randint(0, 2, (40,)))
    problem = single_net_problem(net, torch.zeros(4, 5), doxa.likelihoods.categorical())
    keys = {"learner": learner, "likelihood": doxa.likelihoods.categorical(), "batch_size": 8, "progress": False}
    learned_posteriors = []
    for threshold, stores_epsilon in ((1 << 25, True), (1, False)):
        monkeypatch.setattr(sys.modules["doxa.gradients.variational"], "REGENERATE_NOISE_FROM", threshold)
        assert all(
            (segment.epsilon is not None) is stores_epsilon
            for segment in learner.start(problem, [learner]).leaves.segments
        )
        learned_posteriors.append(doxa.fit(net, data, **keys).posterior)
    torch.testing.assert_close(learned_posteriors[0].mean, learned_posteriors[1].mean, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(learned_posteriors[0].rho, learned_posteriors[1].rho, rtol=1e-5, atol=1e-6)


MIXTURES = [(0.25, 1.0, 1e-3), (0.5, 1.0, math.exp(-9)), (0.5, 10.0, math.exp(-7)), (0.5, 0.3, 1e-4), (0.75, 3.0, 1.0)]


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize("centre", [0.0, 0.25])
@pytest.mark.parametrize("native_or_not", [pytest.param(True, marks=compiled), False])
def test_the_mixture_s_slope_is_that_of_double_precision(
    mixture: tuple[float, float, float], centre: float, native_or_not: bool, eager: Callable[[], None]
) -> None:
    """Precisions of 1e6 and more beside one of 1: nothing of the smaller may be lost."""
    if not native_or_not:
        eager()
    w = centre + torch.cat([torch.linspace(-5, 5, 4001), torch.linspace(-0.01, 0.01, 4001)])
    prior = priors.scale_mixture(*mixture, centre=centre)
    exact = prior.grad_log_prob(w.double())
    torch.testing.assert_close(prior.grad_log_prob(w).double(), exact, rtol=3e-4, atol=1e-4)
    plain = (w - centre).abs() > 0.1
    torch.testing.assert_close(prior.grad_log_prob(w)[plain].double(), exact[plain], rtol=1e-5, atol=1e-5)


@compiled
def test_autograd_is_served_by_torch() -> None:
    """Where a graph is wanted, or a function is being transformed, the kernels step aside."""
    prior = priors.scale_mixture()
    w = torch.linspace(-1, 1, 11, requires_grad=True)
    assert prior.grad_log_prob(w).requires_grad
    expected = prior.grad_log_prob(w.detach())
    torch.testing.assert_close(torch.vmap(prior.grad_log_prob)(w.detach()[None])[0], expected)
    torch.testing.assert_close(
        torch.compile(prior.grad_log_prob, fullgraph=True, backend="eager")(w.detach()), expected
    )
    b = torch.ones(1, 11)
    y = (w * b).sum()
    fill_normals(b, Stream(torch.tensor([1])))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


@compiled
@pytest.mark.parametrize("noise", [shared, local, flipout], ids=lambda n: n.name)
@pytest.mark.parametrize("samples", [1, 2])
@pytest.mark.parametrize("per", ["weight", "layer"])
@pytest.mark.parametrize(
    "prior",
    [priors.gaussian(0.5), priors.laplace(0.5), priors.scale_mixture(0.5, 1.0, 0.1)],
    ids=lambda p: type(p).__name__,
)
def test_a_training_is_the_same_without_a_compiler(
    noise: object, samples: int, per: str, prior: object, eager: Callable[[], None]
) -> None:
    """A hundred steps: equal to rounding, as no bit of it depends on which form made the noise."""
    torch.manual_seed(0)
    x = torch.randn(64, 5)
    y = (x[:, 0] > 0).long()

    def train() -> doxa.Belief:
        torch.manual_seed(1)
        learner = variational(prior, noise, samples, posterior=mean_field(per))
        optimiser = lambda p: torch.optim.SGD(p, 0.05)  # noqa: E731
        return doxa.fit(
            doxa.nets.mlp(5, (30,), 2),
            (x, y),
            learner=learner,
            likelihood=doxa.likelihoods.categorical(),
            epochs=25,
            batch_size=16,
            optimiser=optimiser,
            progress=False,
        )

    compiled_posterior = train().posterior
    eager()
    expected = train().posterior
    for name in ("mean", "rho"):
        torch.testing.assert_close(getattr(compiled_posterior, name), getattr(expected, name), rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("native_or_not", [pytest.param(True, marks=compiled), False])
def test_threads_change_no_number(native_or_not: bool, eager: Callable[[], None]) -> None:
    if not native_or_not:
        eager()
    threads = torch.get_num_threads()
    try:
        normals_by_threads = []
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            normals_by_threads.append(normal(400_003, (8,), torch.zeros(1)))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(normals_by_threads[0], normals_by_threads[1])
    assert torch.equal(normals_by_threads[0], normals_by_threads[2])


SCRIPT = """
import torch
from doxa import kernels as native
tiny = torch.full((1000,), 1e-40)
print(native.library() is not None, float(tiny.sum()) > 0, float((tiny * 0.5).sum()) > 0)
"""


def outcome(tmp_path: Path, **changes: str) -> list[str]:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), native.INHERITED: "", **changes}
    done = run_script(SCRIPT, environment=environment)
    assert done.stderr == ""
    return done.stdout.split()


@compiled
def test_it_is_built_once_and_leaves_the_process_s_arithmetic_alone(tmp_path: Path) -> None:
    assert outcome(tmp_path) == ["True", "True", "True"], "denormal numbers must live on"
    built_files = sorted((tmp_path / "doxa" / "native").iterdir())
    assert [p.suffix for p in built_files] == [".so", ".sha256"]
    stamp = built_files[0].stat().st_mtime_ns
    assert outcome(tmp_path) == ["True", "True", "True"]
    assert built_files[0].stat().st_mtime_ns == stamp


def test_it_does_without_when_it_must(tmp_path: Path) -> None:
    assert outcome(tmp_path, DOXA_NATIVE="0")[0] == "False"
    assert outcome(tmp_path, PATH="", CC="")[0] == "False"


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@compiled
def test_a_broken_compiler_is_passed_over(tmp_path: Path) -> None:
    broken = script(tmp_path / "broken", "exit 1")
    assert outcome(tmp_path, CC=broken)[0] == "True", "there is another one"
    assert outcome(tmp_path, CC=broken, PATH="")[0] == "False"


@compiled
def test_a_compiler_that_takes_liberties_is_brought_to_order(tmp_path: Path) -> None:
    """Reassociation would break the rounding of exp; denormal numbers must not be flushed."""
    real = shutil.which("gcc") or shutil.which("cc")
    fast = script(tmp_path / "fast", f'exec {real} -ffast-math "$@"')
    assert outcome(tmp_path, CC=fast) == ["True", "True", "True"]
    stubborn = script(tmp_path / "stubborn", f'exec {real} "$@" -ffast-math')
    assert outcome(tmp_path, CC=stubborn, PATH="/nowhere")[0] == "False"


@compiled
def test_a_compiler_that_does_not_know_this_processor_still_serves(tmp_path: Path) -> None:
    real = shutil.which("gcc") or shutil.which("cc")
    old = script(tmp_path / "old", f'case "$*" in *march*) exit 1;; esac; exec {real} "$@"')
    assert outcome(tmp_path, CC=old, PATH=os.environ["PATH"])[0] == "True"


@compiled
def test_a_broken_library_in_the_cache_is_made_anew(tmp_path: Path) -> None:
    outcome(tmp_path)
    (library_file,) = (tmp_path / "doxa" / "native").glob("*.so")
    library_file.write_bytes(library_file.read_bytes()[:1000])
    assert outcome(tmp_path)[0] == "True"


@compiled
@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_no_home_no_cache_and_no_locale_are_no_trouble(locale: str, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    unset = {native.INHERITED: "", "LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for folders in ({"XDG_CACHE_HOME": str(blocked)}, {"XDG_CACHE_HOME": "", "HOME": str(blocked)}):
        environment = {**os.environ, **unset, **folders}
        command = [sys.executable, "-c", SCRIPT]  # Python asks for the locale when it starts
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert (done.stdout.split()[0], done.stderr) == ("True", "")


def test_words_in_the_source_change_no_fingerprint() -> None:
    """A checkpoint's owner is warned of other bits, not of better comments."""
    source = native.SOURCE.read_text()
    reworded = source.replace("/* ", "/* Put differently:\n * ")
    assert reworded != source
    assert native._without_comments(reworded) == native._without_comments(source)
    assert native._without_comments(source.replace("0.0873475f", "0.0873476f")) != native._without_comments(source)
