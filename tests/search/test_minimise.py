"""Searching a vector: ask and tell, minimise and maximise, and what they say to bad input."""

from __future__ import annotations

import functools
import math
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import doxa
from doxa.search import Search, Settings, functions, maximise, minimise, plain, scores, shaping, variance
from doxa.storage.sealed import read, write
from doxa.terminal.progress import format_metrics


@pytest.mark.parametrize("name", functions.TABLE)
def test_no_argument_is_needed_to_solve_a_function_of_two_numbers(name: str) -> None:
    f = functions.TABLE[name]
    result = minimise(f, f.start)
    assert result.value < 1e-8
    assert min(math.dist(result.best.tolist(), minimum) for minimum in f.minima) < 1e-3
    assert float(f(result.best)) == result.value


def test_one_vector_at_a_time_and_many_at_once_are_the_same_search() -> None:
    single, batched = (
        minimise(functions.himmelblau, [0, 0], generations=20, batched=is_batched) for is_batched in (False, True)
    )
    assert torch.equal(single.path, batched.path)
    assert single.trajectory == batched.trajectory
    assert single.path.shape == (21, 2)
    assert {"generation", "value", "lowest", "scale", "gradient"} <= {*single.trajectory[0]}


@pytest.mark.parametrize("per", ["weight", "network"])
def test_norms_of_both_slopes_are_told(per: str) -> None:
    search = Search([1.0, -2.0], Settings(scale=0.5, per=per, shaping=shaping.raw, size=400))
    distribution = search.distribution
    points = search.ask()
    values = functions.sphere(points)
    row = search.tell(values)
    by_mean, by_log = scores(distribution, (points - torch.tensor([1.0, -2.0])) / 0.5)
    assert row["gradient"] == pytest.approx(float((values @ by_mean / 400).norm()), rel=1e-6)
    assert row["scale_gradient"] == pytest.approx(float((values @ by_log / 400).norm()), rel=1e-6)


def test_a_generation_in_a_line_has_fitness_scale_and_both_norms() -> None:
    row = minimise(functions.sphere, [1.0, 2.0], generations=1).trajectory[0]
    line = format_metrics(row, "value")
    for name in ("value", "scale", "gradient", "scale_gradient"):
        assert f"{row[name]:.2g}"[:3] in line


def test_another_seed_is_another_search_and_the_same_seed_is_the_same() -> None:
    first, again, other = (minimise(functions.sphere, [1.0, 2.0], generations=5, seed=s).path for s in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_highest_is_spelled_out() -> None:
    result = maximise(lambda w: 3 - w.square().sum(), np.array([1.0, -2.0]))
    assert math.isclose(result.value, 3, abs_tol=1e-9)
    assert "highest" in result.trajectory[-1]
    assert "lowest" not in result.trajectory[-1]


def test_steps_and_kinks_are_no_obstacle() -> None:
    result = minimise(lambda w: float((w * 4).round().abs().sum()), [3.0, -2.0])
    assert result.value == 0


def test_values_that_are_no_number_count_as_the_worst() -> None:
    def f(w: Tensor) -> Tensor:
        value = (w - 0.5).square().sum()
        return value if w[0] < 2 else torch.tensor(math.nan)

    assert minimise(f, [1.5, 1.5]).value < 1e-8


def test_ask_and_tell_go_on_where_a_state_was_taken() -> None:
    def run_steps(search_: Search, steps: int) -> Search:
        for _ in range(steps):
            search_.tell(functions.rosenbrock(search_.ask()))
        return search_

    settings = Settings(optimiser=lambda groups: torch.optim.Adam(groups), lr=0.05, scale_lr=0.01)
    uninterrupted = run_steps(Search([-1.0, 1.0], settings, seed=3), 30)
    half = run_steps(Search([-1.0, 1.0], settings, seed=3), 15)
    state = half.state()
    run_steps(half, 5)  # a state stays as it was taken, whoever goes on from it
    for resumed in (half, Search([-1.0, 1.0], settings, seed=3)):
        resumed.load(state)
        run_steps(resumed, 15)
        assert torch.equal(uninterrupted.mean, resumed.mean)
        assert torch.equal(uninterrupted.distribution.scale, resumed.distribution.scale)


def test_a_scale_that_is_to_stay_stays_and_decay_draws_to_zero() -> None:
    still = Search([1.0, 1.0], Settings(scale=0.3, scale_lr=0.0, per="network", lr=0.1, decay=0.5))
    still.tell(torch.zeros(still.population.size))
    assert torch.equal(still.distribution.scale, torch.tensor([0.3], dtype=torch.float64).log().exp())
    torch.testing.assert_close(still.mean, torch.full((2,), 0.95, dtype=torch.float64))


DECAYING = {
    "AdamW": functools.partial(torch.optim.AdamW, weight_decay=0.5),
    "SGD": functools.partial(torch.optim.SGD, weight_decay=0.5),
    "Rprop": torch.optim.Rprop,  # which takes steps at a rate of 0, too
}


@pytest.mark.parametrize("optimiser", DECAYING.values(), ids=DECAYING.keys())
def test_an_optimiser_that_decays_weights_leaves_scales_that_are_to_stay(optimiser: Any) -> None:
    search = Search([1.0, 1.0], Settings(scale=0.05, scale_lr=0.0, lr=0.1, optimiser=optimiser))
    before = search.coordinate.clone()
    for _ in range(20):
        search.tell(functions.sphere(search.ask()))
    assert torch.equal(search.coordinate, before)
    assert not torch.equal(search.mean, torch.ones(2, dtype=torch.float64))


def test_scales_move_by_their_slopes_alone_whatever_an_optimiser_decays() -> None:
    def run_search(decay: float) -> Tensor:
        make = functools.partial(torch.optim.SGD, weight_decay=decay)
        search = Search([1.0, 1.0], Settings(scale=0.05, lr=0.0, scale_lr=0.1, optimiser=make))
        for _ in range(10):
            search.tell(functions.sphere(search.ask()))
        return search.coordinate

    assert torch.equal(run_search(0.5), run_search(0.0))


def test_a_variance_that_was_stepped_below_zero_grows_again_at_the_next_step() -> None:
    settings = Settings(per="network", coordinate=variance, lr=0.0, scale_lr=50.0, shaping=shaping.z_score)
    search = Search([0.0, 0.0], settings)
    search.tell(search.ask().square().sum(1))  # near is good: the variance is to fall, by far more than there is
    assert 0 < float(search.coordinate) < 1e-11
    assert search.distribution.scale.item() == pytest.approx(1e-6)
    search.optimiser.param_groups[1]["lr"] = 1e12  # a natural gradient of a variance is about as small as itself
    search.tell(-search.ask().square().sum(1))
    assert search.distribution.scale.item() > 1e-2


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: minimise(functions.sphere, []), "at least one number"),
        (lambda: minimise(functions.sphere, [[1.0]]), r"shape \(1, 1\)"),
        (lambda: minimise(functions.sphere, [math.nan]), "NaN or infinity"),
        (lambda: minimise(functions.sphere, 3.0), "must be a vector"),
        (lambda: minimise(lambda w: w, [1.0, 2.0]), "one vector must give one number"),
        (lambda: minimise(lambda w: w.sum(), [1.0, 2.0], batched=True), "must give N values"),
        (lambda: minimise(lambda w: "low", [1.0]), "must give numbers"),
        (lambda: minimise(functions.sphere, [1.0], size=7), "in pairs"),
        (lambda: minimise(functions.sphere, [1.0], scale=-1.0), "scale must be a positive"),
        (lambda: minimise(functions.sphere, [1.0], per="layer"), 'per must be "weight"'),
        (lambda: minimise(functions.sphere, [1.0], lr=math.inf), "lr must be a finite"),
        (lambda: Search([1.0]).tell([1.0]), "one for each of the 50 points"),
        (lambda: Search([1.0]).tell(["low"] * 50), "values must be numbers"),
        (lambda: minimise(functions.sphere, [1.0], shaping=lambda v: v[:3]), r"a weight for each of 50 .* gave \(3,\)"),
        (lambda: minimise(functions.sphere, [1.0], shaping=list), "it gave list"),
        (lambda: minimise("sphere", [1.0]), "f must be a function of a vector"),
        (lambda: maximise("sphere", [1.0]), "f must be a function of a vector"),
        (lambda: minimise(functions.sphere, [1.0], seed=None), "seed must be a whole number; got None"),
        (lambda: minimise(functions.sphere, [1.0], seed="x"), "seed must be a whole number; got 'x'"),
        (lambda: Search([1.0], seed=1.5), "seed must be a whole number; got 1.5"),
        (lambda: Search([1.0], {"scale": 2.0}), "settings must be a doxa.search.Settings; got a dict"),
        (lambda: minimise(functions.sphere, [1.0], tolerance="x"), "tolerance must be a finite number from 0 up"),
        (lambda: minimise(functions.sphere, [1.0], tolerance=-1), "tolerance must be a finite number from 0 up"),
        (lambda: minimise(functions.sphere, [1.0], tolerance=math.nan), "tolerance must be a finite number from 0 up"),
        (lambda: minimise(functions.sphere, [1.0], lr="fast"), "lr must be a finite number from 0 up; got 'fast'"),
        (lambda: minimise(functions.sphere, [1.0], shaping="ranks"), r"shaping must be one of.*centred_ranks"),
        (lambda: minimise(functions.sphere, [1.0], gradient="plain"), "gradient must be one of doxa.search: natural"),
        (lambda: minimise(functions.sphere, [1.0], coordinate="variance"), "coordinate must be doxa.search.log_scale"),
        (lambda: minimise(functions.sphere, [1.0], optimiser="adam"), "optimiser must make a torch optimiser"),
        (lambda: minimise(functions.sphere, [1.0], optimiser=lambda g: g), "optimiser must make a torch optimiser"),
        (
            lambda: minimise(functions.sphere, [1.0], refreshing=0.1),
            "no setting 'refreshing' of a search; did you mean 'refresh'.*there is: scale, per, .*adapts, seed, gen",
        ),
        (lambda: minimise(functions.rosenbrock, [3.0]), "rosenbrock is a function of at least 2 numbers"),
        (lambda: minimise(functions.himmelblau, [3.0] * 3), "himmelblau is a function of exactly 2 numbers"),
        (lambda: Search([1.0]).tell([1.0], [1]), "True or False for each of the 50 points"),
    ],
)
def test_bad_input_is_named(call: Any, says: str) -> None:
    with pytest.raises(doxa.BadInput, match=says):
        call()


def test_seeds_of_any_whole_kind_are_the_same_seed() -> None:
    paths = [minimise(functions.sphere, [1.0, 2.0], seed=s, generations=2).path for s in (3, np.int64(3))]
    assert torch.equal(*paths)


@pytest.mark.parametrize("here", [[1, 0, 1, 1, 0, 1], [1, 0, 1, 1, 1, 1]], ids=["two pairs torn", "one pair torn"])
def test_a_baseline_does_not_take_strangers_for_a_pair(here: list[int]) -> None:
    search = Search([1.0, 2.0], Settings(size=6, baseline=True, shaping=shaping.raw))
    arrived = torch.tensor(here).bool()
    with pytest.raises(doxa.BadInput, match="lost one of their two points"):
        search.tell(functions.sphere(search.ask())[arrived], arrived)
    pairs = torch.tensor([1, 1, 0, 0, 1, 1]).bool()
    assert search.tell(functions.sphere(search.ask())[pairs], pairs)["generation"] == 1


def test_nothing_to_compare_is_an_error_that_says_so() -> None:
    with pytest.raises(doxa.Diverged, match="not finite at any of 50"):
        minimise(lambda w: math.inf, [1.0])


def test_a_search_goes_on_where_it_was_saved_to_the_same_bits(tmp_path: Path) -> None:
    options: dict[str, Any] = {"optimiser": torch.optim.Adam, "lr": 0.05, "scale_lr": 0.01, "tolerance": 0.0}
    uninterrupted = minimise(functions.rosenbrock, [-1.0, 1.0], generations=30, **options)
    minimise(functions.rosenbrock, [-1.0, 1.0], generations=12, checkpoint=tmp_path, checkpoint_every=5, **options)
    resumed = minimise(functions.rosenbrock, [-1.0, 1.0], generations=30, checkpoint=tmp_path, resume=True, **options)
    assert torch.equal(uninterrupted.path, resumed.path)
    assert torch.equal(uninterrupted.best, resumed.best)
    assert uninterrupted.trajectory == resumed.trajectory


def test_a_saved_search_is_not_overwritten_and_not_mixed_up(tmp_path: Path) -> None:
    minimise(functions.sphere, [1.0], generations=3, checkpoint=tmp_path)
    with pytest.raises(doxa.BadInput, match="already holds a run"):
        minimise(functions.sphere, [1.0], generations=3, checkpoint=tmp_path)
    with pytest.raises(doxa.BadInput, match="seed: 0 there, 1 here"):
        minimise(functions.sphere, [1.0], generations=3, checkpoint=tmp_path, resume=True, seed=1)


@pytest.mark.parametrize(
    ("seek", "start", "more", "says"),
    [
        (minimise, [1.0, 2.0, 3.0], {}, r"a vector of shape \[2\], and start here has 3 numbers"),
        (minimise, [1.0, 2.0], {"tolerance": 0.1}, "tolerance: 1e-09 there, 0.1 here"),
        (minimise, [1.0, 2.0], {"batched": True}, "batched: False there, True here"),
        (minimise, [1.0, 2.0], {"lr": 0.5}, "lr: 1.0 there, 0.5 here"),
        (maximise, [1.0, 2.0], {}, "seeks: lowest there, highest here"),
    ],
)
def test_a_search_goes_on_by_the_same_call_alone(seek: Any, start: Any, more: Any, says: str, tmp_path: Path) -> None:
    minimise(functions.sphere, [1.0, 2.0], generations=2, checkpoint=tmp_path)
    with pytest.raises(doxa.BadInput, match=says):
        seek(functions.sphere, start, generations=3, checkpoint=tmp_path, resume=True, **more)


def test_a_search_stopped_by_hand_is_saved_and_goes_on(tmp_path: Path) -> None:
    calls = []

    def f(w: Tensor) -> Tensor:
        calls.append(1)
        if len(calls) == 120:  # in the third generation of fifty
            signal.raise_signal(signal.SIGINT)
        return functions.sphere(w)

    with pytest.raises(doxa.Interrupted, match="stopped after generation 3 of 10"):
        minimise(f, [1.0, 2.0], generations=10, checkpoint=tmp_path, checkpoint_every=100)
    resumed = minimise(f, [1.0, 2.0], generations=10, checkpoint=tmp_path, resume=True)
    assert torch.equal(resumed.path, minimise(functions.sphere, [1.0, 2.0], generations=10).path)


WILD: dict[str, Any] = {"gradient": plain, "shaping": shaping.raw, "per": "network", "tolerance": 0.0}


@pytest.mark.parametrize("seek", [minimise, maximise])
def test_what_diverges_keeps_the_path_and_says_what_to_change(seek: Any) -> None:
    with pytest.raises(doxa.Diverged, match=r"Lower lr.*natural gradients.*z-score.*error's \.found") as error:
        seek(steep if seek is minimise else steep_down, [0.5, 0.5], lr=0.3, generations=500, **WILD)
    result = error.value.found
    assert len(result.trajectory) >= 2
    assert result.path.shape == (len(result.trajectory) + 1, 2)
    assert bool(result.path.isfinite().all())
    assert torch.equal(result.path[-1], result.mean)
    assert abs(result.value) == float(steep(result.best)) < 1
    assert (result.value > 0) is (seek is minimise)
    assert ("lowest" if seek is minimise else "highest") in result.trajectory[0]


def steep(w: Tensor) -> Tensor:
    return w.pow(4).sum()


def steep_down(w: Tensor) -> Tensor:
    return -steep(w)


MIXING = {"refresh": 0.2, "antithetic": False}  # which has old values to compare with where no new one is a number


@pytest.mark.parametrize(
    ("bad", "more"),
    [
        ("values", {}),
        ("values", {"optimiser": torch.optim.Adam}),
        ("values", {"adapts": True, "scale_lr": 0.2}),
        ("step", {}),
        ("step", {"optimiser": torch.optim.Adam}),
        ("step", {"adapts": True, "scale_lr": 0.2}),
        ("step", MIXING),
    ],
)
def test_a_generation_that_cannot_be_told_changes_nothing(bad: str, more: Any) -> None:
    undisturbed, search = (Search([1.0, 2.0], Settings(**more)) for _ in range(2))
    for _ in range(3):
        undisturbed.tell(functions.sphere(undisturbed.ask()))
        search.tell(functions.sphere(search.ask()))
    if bad == "values":
        with pytest.raises(doxa.Diverged, match="not finite at any"):
            search.tell(torch.full((search.pending_population.size,), math.nan))
    else:
        rate, search.optimiser.param_groups[0]["lr"] = search.optimiser.param_groups[0]["lr"], math.inf
        with pytest.raises(doxa.Diverged, match=r"beyond all numbers\. Lower lr"):
            search.tell(functions.sphere(search.ask()))
        search.optimiser.param_groups[0]["lr"] = rate
    for _ in range(3):
        undisturbed.tell(functions.sphere(undisturbed.ask()))
        search.tell(functions.sphere(search.ask()))
    assert torch.equal(undisturbed.mean, search.mean)
    assert torch.equal(undisturbed.coordinate, search.coordinate)


class Breaks:
    """A sphere that is nowhere a number, or raises, after so many calls."""

    def __init__(self, calls: int, how: Any) -> None:
        self.calls, self.how = calls, how

    def __call__(self, w: Tensor) -> Any:
        self.calls -= 1
        return functions.sphere(w) if self.calls >= 0 else self.how()


def burnt() -> float:
    raise ZeroDivisionError("the oven is hot")


@pytest.mark.parametrize("how", [lambda: math.nan, lambda: math.inf, burnt, lambda: torch.ones(3)])
def test_whatever_ends_a_search_what_was_done_before_is_kept_and_goes_on(how: Any, tmp_path: Path) -> None:
    uninterrupted = minimise(functions.sphere, [1.0, 2.0], generations=12)
    # A generation is fifty calls: the eighth breaks, all of it.
    with pytest.raises((doxa.Diverged, ZeroDivisionError, doxa.BadInput)) as error:
        minimise(Breaks(350, how), [1.0, 2.0], generations=12, checkpoint=tmp_path, checkpoint_every=5)
    message = " ".join([str(error.value), *getattr(error.value, "__notes__", [])])
    assert len(error.value.found.trajectory) == 7  # type: ignore[union-attr]
    assert "7 of 12 generations were done before, and are kept in" in message
    resumed = minimise(functions.sphere, [1.0, 2.0], generations=12, checkpoint=tmp_path, resume=True)
    assert torch.equal(resumed.path, uninterrupted.path)
    assert resumed.trajectory == uninterrupted.trajectory
    assert torch.equal(resumed.best, uninterrupted.best)


def test_an_objective_that_breaks_at_the_last_mean_loses_nothing(tmp_path: Path) -> None:
    uninterrupted = minimise(functions.sphere, [1.0, 2.0], generations=3)
    with pytest.raises(ZeroDivisionError) as error:
        minimise(Breaks(150, burnt), [1.0, 2.0], generations=3, checkpoint=tmp_path)
    assert "3 of 3 generations were done before, and are kept in" in " ".join(error.value.__notes__)
    assert torch.equal(error.value.found.path, uninterrupted.path)  # type: ignore[attr-defined]
    resumed = minimise(functions.sphere, [1.0, 2.0], generations=3, checkpoint=tmp_path, resume=True)
    assert torch.equal(resumed.best, uninterrupted.best)


def test_a_last_mean_that_is_not_finite_is_not_the_best() -> None:
    result = minimise(Breaks(100, lambda: -math.inf), [1.0, 2.0], generations=2)
    assert math.isfinite(result.value)


def test_what_was_found_when_stopped_is_of_the_asked_direction() -> None:
    calls = []

    def f(w: Tensor) -> Tensor:
        calls.append(1)
        if len(calls) == 70:
            signal.raise_signal(signal.SIGINT)
        return 3 - functions.sphere(w)

    with pytest.raises(doxa.Interrupted) as stopped:
        maximise(f, [2.0, 1.0])
    result = stopped.value.belief
    assert result.value == float(3 - functions.sphere(result.best))
    assert result.trajectory[-1]["highest"] <= result.value <= 3


def test_a_file_of_another_kind_is_refused_and_left_alone(tmp_path: Path) -> None:
    x = torch.randn(16, 2)
    options: dict[str, Any] = {"learner": doxa.learners.point(), "likelihood": doxa.likelihoods.gaussian(1.0)}
    doxa.fit(doxa.nets.mlp(2, (3,), 2), (x, x), epochs=1, checkpoint=tmp_path, progress=False, **options)
    before = (tmp_path / "checkpoint.doxa").read_bytes()
    with pytest.raises(doxa.BadInput, match="already holds a run"):
        minimise(functions.sphere, [1.0], checkpoint=tmp_path)
    with pytest.raises(doxa.BrokenFile, match=r"holds a doxa\.training, not a doxa\.search: choose another"):
        minimise(functions.sphere, [1.0], checkpoint=tmp_path, resume=True)
    assert (tmp_path / "checkpoint.doxa").read_bytes() == before


def test_a_file_whose_parts_are_missing_is_named(tmp_path: Path) -> None:
    minimise(functions.sphere, [1.0], generations=1, checkpoint=tmp_path)
    path = tmp_path / "checkpoint.doxa"
    header, tensors = read(path, "doxa.search")
    del tensors["coordinate"]
    write(path, "doxa.search", {k: v for k, v in header.items() if k not in ("format", "version")}, tensors)
    with pytest.raises(doxa.BrokenFile, match="another version of Doxa"):
        minimise(functions.sphere, [1.0], generations=2, checkpoint=tmp_path, resume=True)
