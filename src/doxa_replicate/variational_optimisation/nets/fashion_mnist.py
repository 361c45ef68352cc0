"""Fashion-MNIST by values alone: local perturbations beside others and back-propagation, with steps and 0/1 loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import doxa
from doxa import search
from doxa_replicate.contract import Artefact, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import format_with_error
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.variational_optimisation.nets.trials import (
    NetTrial,
    SearchLength,
    StepActivation,
    TrialComparison,
    dense_net,
)

HIDDEN, SCALE = (100, 100), 0.05
LOWER_RATES, HIGHER_RATES = (
    (3e-4, 1e-3, 3e-3, 1e-2),
    (1e-3, 3e-3, 1e-2, 3e-2),
)  # rates, until the best has one on either side
RELU_NET, STEP_NET = partial(dense_net, HIDDEN), partial(dense_net, HIDDEN, StepActivation)


def build_trials(options: ReplicationOptions) -> dict[str, NetTrial]:
    def build_learner(**settings: Any) -> Any:
        return search.learner(size=int(options.by_size(20, 100)), scale=SCALE, **settings)

    zero_one = build_learner(minimise=search.zero_one)
    return {
        "local": NetTrial("local", build_learner(), RELU_NET),
        "local, step units": NetTrial("local, step units", build_learner(), STEP_NET),
        "local, 0/1 loss": NetTrial("local, 0/1 loss", zero_one, RELU_NET, LOWER_RATES),
        "local, step units, 0/1 loss": NetTrial("local, step units, 0/1 loss", zero_one, STEP_NET, LOWER_RATES),
        "weight space": NetTrial(
            "weight space", build_learner(estimator=search.weight_space()), RELU_NET, HIGHER_RATES
        ),
        "low rank": NetTrial("low rank", build_learner(estimator=search.low_rank()), RELU_NET, HIGHER_RATES),
        "back-propagation": NetTrial("back-propagation", doxa.learners.point(), RELU_NET, HIGHER_RATES),
        "back-propagation, step units": NetTrial(
            "back-propagation, step units", doxa.learners.point(), STEP_NET, (1e-3,)
        ),
    }


def run(options: ReplicationOptions) -> Numbers:
    length = SearchLength(*options.by_size((10, 64, 5), (400, 128, 50)))
    seeds, comparison = (
        options.seed_list(1, 3),
        TrialComparison("Fashion-MNIST", "fashion", build_trials(options), length, length),
    )
    return {
        "settings": {"net": [784, *HIDDEN, 10], "scale": SCALE, "length": vars(length), "rates": "cosine, down to 0"},
        "seeds": seeds,
        "trials": {name: comparison.summarise_trial(options, name, seeds) for name in comparison.trials},
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    trials = result["numbers"]["trials"]
    rows = [
        [
            name,
            f"{outcome['rate']['best']:g}",
            format_with_error(outcome["accuracy"], 2),
            format_with_error(outcome["nll"], 3),
            f"{outcome['seconds']['mean']:.0f}",
        ]
        for name, outcome in trials.items()
    ]
    lines = [
        ChartLine(name, [p[0] for p in outcome["curve"]], [p[1] for p in outcome["curve"]])
        for name, outcome in trials.items()
    ]
    points_behind = trials["back-propagation"]["accuracy"]["mean"] - trials["local"]["accuracy"]["mean"]
    caption = f"Local perturbations end {points_behind:.2f} points behind back-propagation."
    headers = ("how", "rate", "accuracy %", "NLL", "seconds")
    return [
        Chart("Test accuracy while learning", caption, "generation", "accuracy, %", lines),
        ResultTable("The net in the middle, on test rows", headers, rows),
    ]


ARTEFACT = Artefact(
    name="variational-optimisation/fashion-mnist",
    order=15,
    group="nets",
    title="Fashion-MNIST without gradients, and without anything that has one",
    requirements=("VO-42", "VO-01", "VO-10"),
    run=run,
    reference={"document": "nothing: that neither net nor objective needs a slope is said, and not shown"},
    left_open=(
        "net, population, scale, batch: 784-100-100-10, N = 100, σ = 0.05, 128 rows",
        "the learning rate of each: of three or four, by 10,000 rows held out of the training set, with another seed",
    ),
    departures={"quick": ("3,000 rows, 10 generations of 20 perturbations",)},
    durations=("some seconds", "ten minutes"),
    show=show,
)
