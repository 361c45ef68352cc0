"""Does local reparameterisation learn sooner with plain gradient descent, where Adam hides it?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import doxa
from doxa.errors import Diverged
from doxa.predict.belief import Belief
from doxa_replicate.columns import AS_RUN, AS_WRITTEN, columns
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions, Verdict
from doxa_replicate.over_seeds import mean, summary
from doxa_replicate.parts import cached_part
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.verdicts import Evidence
from doxa_replicate.weight_uncertainty.curve.bands import curves_chart
from doxa_replicate.weight_uncertainty.curve.losses import LOSS_OF_COLUMN
from doxa_replicate.weight_uncertainty.curve.measures import running_mean, thin_curve, variance_of_differences
from doxa_replicate.weight_uncertainty.curve.trainings.fleets import free_energies, last_losses, train_beliefs
from doxa_replicate.weight_uncertainty.curve.trainings.recipes import (
    BATCH,
    HALVED_TWICE,
    NOISE,
    RECIPE_AS_RUN,
    TRAIN_SIZE,
    CurveRecipe,
    CurveSetting,
    curve_size,
    epochs_at_size,
    seeds,
)
from doxa_replicate.weight_uncertainty.matmul import training_matmul

OPTIMISERS = ("Adam", "SGD")
NOISES = ("shared", "local")
LEAST_SAVED, LEAST_SHARE = 0.10, 0.5
CHOICE_SEEDS = (100, 101, 102)  # of the runs that a rate is chosen by, none of which is judged
HIDDEN_BY_ADAM = Claim(
    "C-WU-25",
    "Local reparameterisation is no faster because Adam does not mind the scale of gradients",
    "share of the epochs saved by local noise until the slower noise's final loss is reached: with SGD above "
    f"{LEAST_SAVED:g}, with Adam below it; what SGD says is left out where it does not come half as far as Adam",
)


class Contest:
    """How both noises are compared in a column: rates of each optimiser, one draw or several, and how long."""

    def __init__(
        self,
        recipe: CurveRecipe,
        rates: Mapping[str, Sequence[float]],
        epochs: int,
        samples: int,
        prior: int,
        sgd_scale: float = 1.0,
    ) -> None:
        self.recipe, self.rates, self.epochs, self.samples, self.prior = recipe, rates, epochs, samples, prior
        self.sgd_scale = sgd_scale  # what a rate for a summed loss is of one for its mean

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "recipe": {k: v for k, v in self.recipe.as_dict().items() if k not in ("rate", "epochs")}}


CONTESTS = {
    AS_RUN: Contest(RECIPE_AS_RUN, {"Adam": (1e-5,), "SGD": (1e-5,)}, 1000, 5, 0, sgd_scale=BATCH),
    AS_WRITTEN: Contest(
        HALVED_TWICE,
        {"Adam": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2), "SGD": (1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3)},
        1500,
        1,
        1,
    ),
}


def run(options: ReplicationOptions) -> Numbers:
    numbers = {column: _column(options, column) for column in CONTESTS}
    return {
        "settings": {
            "net": f"1-{curve_size(options).width}-{curve_size(options).width}-1, ReLU",
            "batch": BATCH,
            "likelihood": NOISE,
            "matmul": training_matmul(options),
        }
        | {column: contest.as_dict() for column, contest in CONTESTS.items()},
        "seeds": seeds(options),
        "columns": numbers,
        "verdicts": [_judge(each, seeds(options), column) for column, each in numbers.items()],
    }


def _column(options: ReplicationOptions, column: str) -> dict[str, Any]:
    rows = {name: _compare(options, column, name) for name in OPTIMISERS}
    saved = {name: [_share_saved(epochs) for epochs in row["epochs"]] for name, row in rows.items()}
    drops = {name: max(first_loss(row) - end for end in row["final"].values()) for name, row in rows.items()}
    return {
        "rows": rows,
        "saved": {name: summary(v) | {"each": v} for name, v in saved.items()},
        "sgd_share": drops["SGD"] / drops["Adam"],
    }


def _share_saved(epochs: Mapping[str, int] | None) -> float | None:
    """The share of the shared noise's epochs that local noise saves; None of a seed that diverged with either."""
    return None if epochs is None else 1 - epochs["local"] / epochs["shared"]


def _compare(options: ReplicationOptions, column: str, name: str) -> dict[str, Any]:
    """Both noises with an optimiser, each at its rate: the only one, or the best on seeds that are not judged."""
    rates, tried, losses = CONTESTS[column].rates[name], {}, {}
    for noise in NOISES:
        if len(rates) > 1:
            tried[noise] = _cached_losses(
                options, column, name, noise, rates, options.by_size(CHOICE_SEEDS[:1], CHOICE_SEEDS)
            )
        rate = best_rate(tried[noise]) if len(rates) > 1 else f"{rates[0]:g}"
        by_rate = _cached_losses(options, column, name, noise, (float(rate),), seeds(options))
        if rate not in by_rate:
            raise Diverged(f"{name} with {noise} noise and a rate of {rate} diverged with every seed")
        losses[noise] = rate, by_rate[rate]
    finals = {noise: final_losses(by_rate) for noise, by_rate in tried.items()}
    by_seed = {noise: curves for noise, (_, curves) in losses.items()}
    return {
        "rates": {noise: rate for noise, (rate, _) in losses.items()},
        "tried": finals,
        **compare_noises(by_seed, seeds(options)),
    }


def _cached_losses(
    options: ReplicationOptions,
    column: str,
    name: str,
    noise: str,
    rates: Sequence[float],
    belief_seeds: Sequence[int],
) -> dict[str, Any]:
    contest, loss = CONTESTS[column], LOSS_OF_COLUMN[column]
    settings = contest.as_dict() | {
        "optimiser": name,
        "noise": noise,
        "loss": loss,
        "width": curve_size(options).width,
        "epochs": epochs_at_size(options, contest.epochs),
        "rates": list(rates),
        "seeds": list(belief_seeds),
        "matmul": training_matmul(options),
        "device": options.device or "cpu",
    }
    part = f"regression-{name.lower()}-{noise}-{column}".replace(" ", "-")
    make = partial(train_rates, options, contest, name, noise, loss, rates, belief_seeds)
    return cached_part(options, part, settings, make)


def _judge(numbers: Mapping[str, Any], belief_seeds: Sequence[int], column: str) -> Verdict:
    contest = CONTESTS[column]
    setting = f"{contest.samples} draws a step, constant rates, each noise at the rate chosen on other seeds"
    evidence = evidence_of_saving({name: v["each"] for name, v in numbers["saved"].items()}, numbers["sgd_share"])
    return HIDDEN_BY_ADAM.decide(evidence, belief_seeds, column, setting)


def evidence_of_saving(saved: Mapping[str, Sequence[float | None]], sgd_share: float) -> dict[str, Evidence]:
    """Epochs saved with either optimiser; SGD's are no evidence where it does not come far enough to be compared."""
    with_sgd = saved["SGD"] if sgd_share >= LEAST_SHARE else []
    return {
        "saved with Adam": Evidence(saved["Adam"], below=LEAST_SAVED),
        "saved with SGD": Evidence(with_sgd, above=LEAST_SAVED),
    }


def first_loss(row: Mapping[str, Any]) -> float:
    """The loss in the first epoch, the higher of both noises'."""
    return max(points[0][1] for points in row["curves"].values())


def train_rates(
    options: ReplicationOptions,
    contest: Contest,
    name: str,
    noise: str,
    loss: str,
    rates: Sequence[float],
    belief_seeds: Sequence[int],
) -> dict[str, Any]:
    """Losses by rate and seed; what diverges is left out."""
    options.say(f"regression, {name} with {noise} noise: rates {', '.join(f'{r:g}' for r in rates)}")
    setting = CurveSetting((contest.prior,), local=noise == "local")
    learner = setting.build_learner(contest.samples, contest.recipe)
    pairs = [(rate, seed) for rate in rates for seed in belief_seeds]
    epochs, is_sgd = epochs_at_size(options, contest.epochs), name == "SGD"
    try:
        beliefs: Sequence[Belief | None] = train_beliefs(
            options,
            contest.recipe,
            [learner] * len(pairs),
            [seed for _, seed in pairs],
            doxa.likelihoods.gaussian(NOISE),
            lr=[rate * contest.sgd_scale if is_sgd else rate for rate, _ in pairs],
            optimiser=doxa.optimisers.sgd() if is_sgd else None,
            epochs=epochs,
        )
    except Diverged as error:
        beliefs = error.beliefs
    losses_by_rate: dict[str, Any] = {}
    for (rate, seed), belief in zip(pairs, beliefs, strict=True):
        if belief is not None and len(belief.record.history) == epochs:
            losses_by_rate.setdefault(f"{rate:g}", {})[f"{seed}"] = _losses(belief, loss)
    return losses_by_rate


def _losses(belief: Belief, loss: str) -> dict[str, Any]:
    """What a run came by: the column's loss and its misfit alone, smoothed, and how far the loss jumped."""
    values = last_losses(belief) if loss == "last_loss" else free_energies(belief)
    data_term = [TRAIN_SIZE * row["nll"] for row in belief.record.history]
    return {
        "loss": [float(v) for v in running_mean(values)],
        "data": [float(v) for v in running_mean(data_term)],
        "last": values[-1],
        "differences": variance_of_differences(values)["all"],
    }


def final_losses(by_rate: Mapping[str, Any]) -> dict[str, float]:
    """The mean loss at the end by rate, over the seeds that did not diverge."""
    return {rate: mean([curve["loss"][-1] for curve in by_seed.values()]) for rate, by_seed in by_rate.items()}


def best_rate(by_rate: Mapping[str, Any]) -> str:
    """The rate that ends at the lowest loss, of those with which the fewest seeds diverged."""
    most_seeds = max(map(len, by_rate.values()))
    finals = final_losses({rate: by_seed for rate, by_seed in by_rate.items() if len(by_seed) == most_seeds})
    return min(finals, key=finals.__getitem__)


def compare_noises(chosen: Mapping[str, Any], belief_seeds: Sequence[int]) -> dict[str, Any]:
    """Where both noises end, and when each reaches the loss at which the slower one does, seed by seed."""
    over_seeds = {
        key: {noise: [curve[key] for curve in by_seed.values()] for noise, by_seed in chosen.items()}
        for key in ("last", "differences")
    }
    return {
        "final": {noise: mean([curve["loss"][-1] for curve in by_seed.values()]) for noise, by_seed in chosen.items()},
        **over_seeds,
        "epochs": epochs_to_slower_end(chosen, belief_seeds, "loss"),
        "epochs_of_data_term": epochs_to_slower_end(chosen, belief_seeds, "data"),
        "curves": {noise: thin_curve(next(iter(by_seed.values()))["loss"]) for noise, by_seed in chosen.items()},
    }


def epochs_to_slower_end(
    chosen: Mapping[str, Any], belief_seeds: Sequence[int], curve_name: str
) -> list[dict[str, int] | None]:
    """For each seed, when each noise first comes as low as the slower one at its end; None where one diverged."""
    epochs: list[dict[str, int] | None] = []
    for seed in map(str, belief_seeds):
        if not all(seed in by_seed for by_seed in chosen.values()):
            epochs.append(None)
            continue
        threshold = max(by_seed[seed][curve_name][-1] for by_seed in chosen.values())
        epochs.append(
            {
                noise: next(k + 1 for k, v in enumerate(by_seed[seed][curve_name]) if v <= threshold)
                for noise, by_seed in chosen.items()
            }
        )
    return epochs


# The last loss and the variance of its differences, of the authors' single runs.
AUTHORS = {
    "Adam, shared": (2412.3, 809.0),
    "Adam, local": (2389.5, 734.0),
    "SGD, shared": (2393.5, 214.0),
    "SGD, local": (2387.8, 543.0),
}


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    return [element for column, numbers in columns(result).items() for element in _show_column(column, numbers["rows"])]


def _show_column(column: str, comparisons: Mapping[str, Any]) -> list[PageElement]:
    rows = [
        [
            name,
            noise,
            comparison["rates"][noise],
            f"{comparison['final'][noise]:,.0f}",
            f"{mean([e[noise] for e in comparison['epochs'] if e is not None]):.0f}",
            f"{mean([e[noise] for e in comparison['epochs_of_data_term'] if e is not None]):.0f}",
        ]
        for name, comparison in comparisons.items()
        for noise in NOISES
    ]
    headers = ("optimiser", "noise", "rate", "final loss", "epochs to the slower one's", "of the data term alone")
    charts = [
        curves_chart(
            f"{name}, {column}", "Each noise at its own rate, first seed.", "nats", comparison["curves"], log_y=True
        )
        for name, comparison in comparisons.items()
    ]
    tables = [ResultTable(f"How soon, {column}", headers, rows, text_columns=2)]
    return [*charts, *tables, *([_authors_table(comparisons)] if column == AS_RUN else [])]


def _authors_table(comparisons: Mapping[str, Any]) -> ResultTable:
    rows = []
    for key, (last, differences) in AUTHORS.items():
        name, _, noise = key.partition(", ")
        ours = [mean(comparisons[name][part][noise]) for part in ("last", "differences")]
        rows.append([name, noise, f"{last:,.1f}", f"{ours[0]:,.1f}", f"{differences:.0f}", f"{ours[1]:.0f}"])
    headers = ("optimiser", "noise", "their last loss", "here", "their variance of differences", "here")
    caption = "Loss of the last minibatch, rate 1e-5, 1,000 epochs, σ = 1: one run each, mean over seeds here."
    return ResultTable("Beside the authors' runs", headers, rows, text_columns=2, caption=caption)


ARTEFACT = Artefact(
    name="weight-uncertainty/adam-and-sgd",
    order=18,
    group="regression",
    title="Local reparameterisation with Adam and with plain gradient descent",
    requirements=("WU-40",),
    run=run,
    claims=(HIDDEN_BY_ADAM,),
    reference={
        "document": "supposes that Adam hides what the lower variance gives; it did not run SGD",
        "note": "its authors did so afterwards, at a rate of 1e-5 with both, 1,000 epochs: SGD shows no gain either",
    },
    left_open=(
        "rates: as run 1e-5 of the summed loss; as written each noise and optimiser at the one of a grid that ends at "
        "the lowest free energy over three seeds that are not judged, of those with which the fewest diverge. Nothing "
        "else is chosen",
    ),
    departures={
        "full": (
            "as written one draw a step for the document's five, so that the noises differ the more; constant rates, "
            "since halving decides when a free energy comes to rest",
        )
    },
    durations=("some seconds", "five minutes on a GPU"),
    show=show,
)
