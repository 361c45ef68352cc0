"""Figure 20: how many weights can go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions, Verdict
from doxa_replicate.over_seeds import mean, standard_error, summary
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.weight_uncertainty.digits.trainings.cells import FRACTIONS, Cell, cells
from doxa_replicate.weight_uncertainty.digits.trainings.choice import chosen_cells
from doxa_replicate.weight_uncertainty.digits.trainings.models import MODELS, WIDTHS

PRIORS = ("gaussian", "mixture")
INDEX_OF_95 = FRACTIONS.index(0.95)
MAX_RISE, MAX_SPREAD, TOLERATED_RISE = 0.3, 0.5, 1.0  # points
MOST_CAN_GO = Claim(
    "C-WU-17",
    "Ninety-five of a hundred weights can go",
    f"error rises by at most {MAX_RISE:g} points with 95 % pruned, all widths, all epochs; each prior is judged apart",
)
LONGER_IS_SAFER = Claim(
    "C-WU-18",
    "Longer training makes pruning safer",
    f"share that can be pruned for {TOLERATED_RISE:g} point of error: larger after all epochs than after half of "
    "them, at 1,200 "
    f"units with either prior; open where both stand {100 * FRACTIONS[-1]:g} %, the most that is tried",
)
ALIKE_EVERYWHERE = Claim(
    "C-WU-27",
    "Pruning acts alike across widths and priors",
    f"accuracies at 75 % and at 95 % pruned within {MAX_SPREAD:g} points over three widths and both priors",
)


def run(options: ReplicationOptions) -> Numbers:
    written_cells = {f"{name}, {width}": cells(options, name, width) for name in PRIORS for width in WIDTHS}
    recipe_cells = {f"{name}, 1200": chosen_cells(options, name, 1200) for name in PRIORS}
    seeds = [cell["seed"] for cell in written_cells["gaussian, 400"]]
    tolerated_shares = {
        name: {
            trained_for: [tolerated_share(cell[key]) for cell in written_cells[f"{name}, 1200"]]
            for trained_for, key in (("half", "halfway"), ("all", "pruned"))
        }
        for name in PRIORS
    }
    return {
        "settings": {"fractions": FRACTIONS, "ranked by": "|mean| / scale over all layers; biases are kept"},
        "seeds": seeds,
        "curves": {
            **{f"as written, {key}": pruning_curve(entry, "pruned") for key, entry in written_cells.items()},
            **{
                f"as written, {key}, half the epochs": pruning_curve(entry, "halfway")
                for key, entry in written_cells.items()
            },
            **{f"chosen, {key}": pruning_curve(entry, "pruned") for key, entry in recipe_cells.items()},
        },
        "tolerated": {
            name: {trained_for: summary(v) for trained_for, v in entry.items()}
            for name, entry in tolerated_shares.items()
        },
        "verdicts": [
            *_judge_rises(written_cells, seeds),
            _judge_length(tolerated_shares, seeds),
            _judge_spread(written_cells, seeds),
        ],
    }


def _judge_rises(written_cells: Mapping[str, Sequence[Cell]], seeds: Sequence[int]) -> list[Verdict]:
    """How much the error rises with 95 % pruned, prior by prior."""
    rises = {
        name: {
            str(width): [error_rise(cell["pruned"], 0.95) for cell in written_cells[f"{name}, {width}"]]
            for width in WIDTHS
        }
        for name in PRIORS
    }
    return [
        MOST_CAN_GO.judge(
            all(mean(v) <= MAX_RISE for v in entry.values()),
            {width: mean(v) for width, v in entry.items()},
            {width: standard_error(v) for width, v in entry.items()},
            seeds,
            f"as written, {MODELS[name].title}; rise of the error in points, by width",
        )
        for name, entry in rises.items()
    ]


def _judge_length(tolerated_shares: Mapping[str, Mapping[str, Sequence[float]]], seeds: Sequence[int]) -> Verdict:
    """Whether more can go after all epochs than after half of them."""
    return LONGER_IS_SAFER.judge(
        longer_is_safer(tolerated_shares.values()),
        {
            f"{name}, {trained_for}": mean(v)
            for name, entry in tolerated_shares.items()
            for trained_for, v in entry.items()
        },
        max(standard_error(v) or 0.0 for entry in tolerated_shares.values() for v in entry.values()),
        seeds,
        "as written; shares",
    )


def _judge_spread(written_cells: Mapping[str, Sequence[Cell]], seeds: Sequence[int]) -> Verdict:
    """How far the errors of widths and priors lie apart at a share pruned."""
    error_spreads = {}
    for fraction in (0.75, 0.95):
        errors = [mean([error_at(cell["pruned"], fraction) for cell in entry]) for entry in written_cells.values()]
        error_spreads[f"{fraction:g}"] = max(errors) - min(errors)
    return ALIKE_EVERYWHERE.judge(
        all(v <= MAX_SPREAD for v in error_spreads.values()),
        error_spreads,
        None,
        seeds,
        "as written; largest less smallest error in points, by the share pruned",
    )


def error_at(pruned: Mapping[str, Any], fraction: float) -> float:
    error: float = pruned["error"][list(pruned["fraction"]).index(fraction)]
    return error


def error_rise(pruned: Mapping[str, Any], fraction: float) -> float:
    """Points of error that a pruning costs."""
    return error_at(pruned, fraction) - error_at(pruned, 0.0)


def tolerated_share(pruned: Mapping[str, Any]) -> float:
    """The share that can go before the error has risen by a point, by straight lines between what was measured."""
    error_limit = error_at(pruned, 0.0) + TOLERATED_RISE
    points = list(zip(pruned["fraction"], pruned["error"], strict=True))
    for (f, e), (g, h) in pairwise(points):
        if h > error_limit:
            return float(f + (g - f) * (error_limit - e) / (h - e))
    return float(points[-1][0])


def longer_is_safer(shares_by_prior: Iterable[Mapping[str, Sequence[float]]]) -> bool | None:
    """Whether more can go after all epochs with every prior; None where nothing was tried that either cannot stand."""
    pairs = [(mean(shares["half"]), mean(shares["all"])) for shares in shares_by_prior]
    if any(after_all < after_half for after_half, after_all in pairs):
        return False
    largest_share = FRACTIONS[-1] - 1e-9
    return (
        None
        if any(after_half >= largest_share for after_half, _ in pairs)
        else all(after_half < after_all for after_half, after_all in pairs)
    )


def pruning_curve(cells_by_seed: Sequence[Cell], key: str) -> dict[str, Any]:
    """Scores against the share pruned, means over seeds."""
    prunings = [cell[key] for cell in cells_by_seed]
    return {
        "fraction": prunings[0]["fraction"],
        **{
            score: [mean([pruning[score][k] for pruning in prunings]) for k in range(len(FRACTIONS))]
            for score in ("error", "nll", "ece")
        },
        "se": [standard_error([pruning["error"][k] for pruning in prunings]) for k in range(len(FRACTIONS))],
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    curves = result["numbers"]["curves"]
    written = {k: v for k, v in curves.items() if k.startswith("as written")}
    all_epochs = {k.removeprefix("as written, "): v for k, v in written.items() if "half" not in k}
    widest = {k.removeprefix("as written, "): v for k, v in curves.items() if "1200" in k}
    errors = [
        [_model_title(name), *(f"{curve['error'][k]:.2f}" for k in range(len(FRACTIONS)))]
        for name, curve in curves.items()
    ]
    score_cells = [
        [
            _model_title(name),
            *(f"{curve[key][k]:.{places}f}" for key, places in (("nll", 3), ("ece", 2)) for k in (0, INDEX_OF_95)),
        ]
        for name, curve in curves.items()
    ]
    return [
        _chart("All epochs, every width and prior", all_epochs),
        _chart("1,200 units: half and all of the epochs, and the chosen recipe", widest),
        ResultTable("Test error in %, by the share pruned", ("net", *(f"{100 * f:g} %" for f in FRACTIONS)), errors),
        ResultTable("NLL and ECE", ("net", "NLL, whole", "NLL at 95 %", "ECE %, whole", "ECE % at 95 %"), score_cells),
    ]


def _chart(title: str, curves: Mapping[str, Any]) -> Chart:
    lines = [
        ChartLine(_model_title(name), [100 * f for f in curve["fraction"]], [100 - e for e in curve["error"]])
        for name, curve in curves.items()
    ]
    accuracy_text = ", ".join(
        f"{100 - curve['error'][INDEX_OF_95]:.2f} % ({_model_title(name)})" for name, curve in curves.items()
    )
    return Chart(
        title, f"Right with 95 % pruned: {accuracy_text}.", "pruned, %", "accuracy, %", lines, y_limits=(90, 100)
    )


def _model_title(name: str) -> str:
    for prior_name in PRIORS:
        name = name.replace(prior_name, MODELS[prior_name].title)
    return name


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-20",
    order=26,
    group="mnist",
    title="Accuracy against the share of weights pruned",
    requirements=("WU-53",),
    run=run,
    claims=(MOST_CAN_GO, LONGER_IS_SAFER, ALIKE_EVERYWHERE),
    reference={
        "document": "about 98.5 % right up to 95 % pruned; nets of 600 epochs stand more than those of 300",
        "note": "the original paper loses 0.05 points at 95 % and 0.15 at 98 %",
    },
    left_open=(
        "to which value a pruned weight is set: zero, mean and scale",
        "whether biases are pruned: they are kept",
    ),
    durations=("some seconds", "31 minutes on a GPU, its nets shared with table 3"),
    show=show,
)
