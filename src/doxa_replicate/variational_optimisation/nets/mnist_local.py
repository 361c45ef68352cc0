"""The experiment that was left undone: local reparameterisation in variational optimisation, on MNIST."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import doxa
from doxa import search
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import format_with_error
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.variational_optimisation.nets.trials import NetTrial, SearchLength, TrialComparison, dense_net

HIDDEN, SCALE = (100, 100), 0.05
NET = partial(dense_net, HIDDEN)


def build_trials(options: ReplicationOptions) -> dict[str, NetTrial]:
    def build_learner(estimator: Any) -> Any:
        return search.learner(estimator, size=int(options.by_size(20, 100)), scale=SCALE)

    return {
        "local": NetTrial("MNIST, local", build_learner(search.local()), NET, (1e-3, 3e-3, 1e-2)),
        "weight space": NetTrial("MNIST, weight space", build_learner(search.weight_space()), NET, (1e-3, 3e-3, 1e-2)),
        "back-propagation": NetTrial("MNIST, back-propagation", doxa.learners.point(), NET, (1e-3, 3e-3, 1e-2)),
    }


def build_comparison(options: ReplicationOptions) -> TrialComparison:
    long_length, short_length = (
        options.by_size((20, 64, 5), (10_000, 128, 250)),
        options.by_size((10, 64, 5), (2_500, 128, 250)),
    )
    return TrialComparison(
        "MNIST", "mnist", build_trials(options), SearchLength(*long_length), SearchLength(*short_length)
    )


def run(options: ReplicationOptions) -> Numbers:
    seeds, comparison = options.seed_list(1, 3), build_comparison(options)
    return {
        "settings": {
            "net": [784, *HIDDEN, 10],
            "scale": SCALE,
            "length": vars(comparison.length),
            "rates": "cosine, down to 0",
        },
        "seeds": seeds,
        "trials": {name: comparison.summarise_trial(options, name, seeds) for name in comparison.trials},
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    trials = result["numbers"]["trials"]

    def line(name: str, outcome: Mapping[str, Any], by_time: bool) -> ChartLine:
        last_generation, seconds = outcome["curve"][-1][0], outcome["seconds"]["mean"]
        seconds_per_generation = seconds / last_generation if by_time else 1.0
        return ChartLine(
            name, [p[0] * seconds_per_generation for p in outcome["curve"]], [p[1] for p in outcome["curve"]]
        )

    searched = {name: outcome for name, outcome in trials.items() if name != "back-propagation"}
    rows = [
        [
            name,
            f"{outcome['rate']['best']:g}",
            format_with_error(outcome["accuracy"], 2),
            format_with_error(outcome["nll"], 4),
            f"{outcome['seconds']['mean']:.0f}",
        ]
        for name, outcome in trials.items()
    ]
    points_ahead = trials["local"]["accuracy"]["mean"] - trials["weight space"]["accuracy"]["mean"]
    caption = f"Local perturbations end {points_ahead:.2f} points ahead of those of the weights."
    return [
        Chart(
            "By generations",
            caption,
            "generation",
            "test accuracy, %",
            [line(name, outcome, False) for name, outcome in trials.items()],
        ),
        Chart(
            "By time",
            "The same searches, against the seconds that they took.",
            "seconds",
            "test accuracy, %",
            [line(name, outcome, True) for name, outcome in searched.items()],
        ),
        ResultTable("Test rows", ("how", "rate", "accuracy %", "NLL", "seconds"), rows),
    ]


ARTEFACT = Artefact(
    name="variational-optimisation/mnist-local",
    order=14,
    group="nets",
    title="MNIST by local perturbations: the experiment that was left undone",
    requirements=("VO-31",),
    run=run,
    reference={"document": "nothing: local reparameterisation is derived, and its trial left to others"},
    left_open=(
        "net, population, scale, batch: 784-100-100-10, N = 100, σ = 0.05, 128 rows, 10,000 generations of Adam",
        "the learning rate of each: of three, by rows held out after a quarter of the generations, with another seed",
    ),
    departures={"quick": ("3,000 rows, 20 generations of 20 perturbations",)},
    durations=("some seconds", "six minutes on a GPU"),
    show=show,
)
