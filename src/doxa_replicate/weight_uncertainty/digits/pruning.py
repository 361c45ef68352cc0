"""Figure 20: how many weights can go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from doxa_replicate.columns import AS_RUN, AS_WRITTEN, CHOSEN
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions, Verdict
from doxa_replicate.over_seeds import mean, standard_error, summary
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.verdicts import Evidence, paired
from doxa_replicate.weight_uncertainty.digits.trainings.cells import cells, cells_as_run
from doxa_replicate.weight_uncertainty.digits.trainings.choice import chosen_cells
from doxa_replicate.weight_uncertainty.digits.trainings.judging import FRACTIONS, Cell
from doxa_replicate.weight_uncertainty.digits.trainings.models import MODELS, WIDTHS
from doxa_replicate.weight_uncertainty.digits.trainings.settings import training_settings

PRIORS = ("gaussian", "mixture")
# Right with a share pruned, in per cent: the authors' own nets of 600 epochs, and those they called of 300.
DOCUMENT_FRACTIONS = (0.0, 0.5, 0.75, 0.9, 0.95)
DOCUMENT_ACCURACY = {
    "gaussian, 400": (98.62, 98.62, 98.59, 97.67, 88.93),
    "gaussian, 800": (98.73, 98.79, 98.79, 98.46, 92.26),
    "gaussian, 1200": (98.66, 98.74, 98.75, 98.72, 98.11),
    "mixture, 400": (98.58, 98.57, 98.59, 98.26, 96.47),
    "mixture, 800": (98.63, 98.59, 98.65, 98.49, 98.03),
    "mixture, 1200": (98.69, 98.58, 98.71, 98.71, 98.46),
}
MAX_RISE, MAX_SPREAD, TOLERATED_RISE = 0.3, 0.5, 1.0  # points
MOST_CAN_GO = Claim(
    "C-WU-17",
    "Ninety-five of a hundred weights can go",
    f"rise of the error with 95 % pruned: below {MAX_RISE:g} points at each width, with all epochs; each prior is "
    "judged apart",
)
LONGER_IS_SAFER = Claim(
    "C-WU-18",
    "Longer training makes pruning safer",
    f"share that can be pruned for {TOLERATED_RISE:g} point of error, of nets with all epochs less the same nets with "
    "half of them: above 0 at 1,200 units with either prior",
)
ALIKE_EVERYWHERE = Claim(
    "C-WU-27",
    "Pruning acts alike across widths and priors",
    f"largest less smallest error of a seed's nets, three widths and both priors, with 75 % and with 95 % pruned: "
    f"below {MAX_SPREAD:g} points",
)


def run(options: ReplicationOptions) -> Numbers:
    keys = [(name, width) for name in PRIORS for width in WIDTHS]
    columns = {
        AS_RUN: {f"{name}, {width}": cells_as_run(options, name, width) for name, width in keys},
        AS_WRITTEN: {f"{name}, {width}": cells(options, name, width) for name, width in keys},
        CHOSEN: {f"{name}, {width}": chosen_cells(options, name, width) for name, width in keys},
    }
    seeds = [cell["seed"] for cell in columns[AS_RUN]["gaussian, 400"]]
    return {
        "settings": {
            "fractions": FRACTIONS,
            "ranked by": "|mean| / scale over all layers; biases are kept",
            **training_settings(options, keys),
        },
        "seeds": seeds,
        "curves": {
            f"{column}, {key}{suffix}": pruning_curve([_state(cell, state)["pruned"] for cell in entry])
            for column, entries in columns.items()
            for key, entry in entries.items()
            for state, suffix in (STATES if column == AS_RUN else STATES[:2])
        },
        "stored_at": {key: [cell["stored"]["epoch"] for cell in entry] for key, entry in columns[AS_RUN].items()},
        "tolerated": {
            column: {
                key: {
                    suffix.removeprefix(", ") or "all the epochs": summary(
                        [tolerated_share(_state(cell, state)["pruned"]) for cell in entry]
                    )
                    for state, suffix in STATES[:2]
                }
                for key, entry in entries.items()
            }
            for column, entries in columns.items()
        },
        "verdicts": [verdict for column, entries in columns.items() for verdict in _judge(entries, seeds, column)],
    }


# The states of a net that are pruned, and how they are called: at the end, half-way, and as the authors stored theirs.
STATES: tuple[tuple[str | None, str], ...] = (
    (None, ""),
    ("halfway", ", half the epochs"),
    ("stored", ", stored in the first half"),
)


def _state(cell: Cell, name: str | None) -> Cell:
    state: Cell = cell if name is None else cell[name]
    return state


def _judge(entries: Mapping[str, Sequence[Cell]], seeds: Sequence[int], column: str) -> list[Verdict]:
    rises = [
        MOST_CAN_GO.decide(
            {
                f"{MODELS[name].title}, {width} units": Evidence(
                    [error_rise(cell["pruned"], 0.95) for cell in entries[f"{name}, {width}"]], below=MAX_RISE
                )
                for width in WIDTHS
            },
            seeds,
            column,
            "points of error",
        )
        for name in PRIORS
    ]
    longer = LONGER_IS_SAFER.decide(
        {
            MODELS[name].title: paired(
                [tolerated_share(cell["pruned"]) for cell in entries[f"{name}, 1200"]],
                [tolerated_share(cell["halfway"]["pruned"]) for cell in entries[f"{name}, 1200"]],
                above=0.0,
            )
            for name in PRIORS
        },
        seeds,
        column,
        "shares",
    )
    spread = ALIKE_EVERYWHERE.decide(
        {
            f"{100 * fraction:g} % pruned": Evidence(error_spreads([*entries.values()], fraction), below=MAX_SPREAD)
            for fraction in (0.75, 0.95)
        },
        seeds,
        column,
        "points of error",
    )
    return [*rises, longer, spread]


def error_spreads(cells_by_net: Sequence[Sequence[Cell]], fraction: float) -> list[float]:
    """Seed by seed, how far the errors of several nets lie apart with a share pruned."""
    errors = [[error_at(cell["pruned"], fraction) for cell in model_cells] for model_cells in cells_by_net]
    return [max(of_seed) - min(of_seed) for of_seed in zip(*errors, strict=True)]


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


def pruning_curve(prunings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Scores against the share pruned, means over seeds."""
    return {
        "fraction": prunings[0]["fraction"],
        **{
            score: [mean([pruning[score][k] for pruning in prunings]) for k in range(len(FRACTIONS))]
            for score in ("error", "nll", "ece", "error_as_run")
        },
        "se": [standard_error([pruning["error"][k] for pruning in prunings]) for k in range(len(FRACTIONS))],
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    curves = result["numbers"]["curves"]
    column = AS_RUN if any(name.startswith(AS_RUN) for name in curves) else AS_WRITTEN
    of_column = {k.removeprefix(f"{column}, "): v for k, v in curves.items() if k.startswith(column)}
    all_epochs = {k: v for k, v in of_column.items() if k.count(",") == 1}
    widest = {k: v for k, v in of_column.items() if "1200" in k}
    fractions = next(iter(curves.values()))["fraction"]
    at_95 = fractions.index(0.95)
    errors = [[_model_title(name), *(f"{error:.2f}" for error in curve["error"])] for name, curve in curves.items()]
    score_cells = [
        [
            _model_title(name),
            *(f"{curve[key][k]:.{places}f}" for key, places in (("nll", 3), ("ece", 2)) for k in (0, at_95)),
        ]
        for name, curve in curves.items()
    ]
    return [
        _chart(f"Every width and prior, {column}", all_epochs),
        _chart(f"1,200 units on their way, {column}", widest),
        ResultTable("Test error in %, by the share pruned", ("net", *(f"{100 * f:g} %" for f in fractions)), errors),
        *_beside_document(of_column),
        ResultTable("NLL and ECE", ("net", "NLL, whole", "NLL at 95 %", "ECE %, whole", "ECE % at 95 %"), score_cells),
    ]


def _beside_document(curves: Mapping[str, Any]) -> list[ResultTable]:
    """The authors' own accuracies with ten draws, and ours."""
    rows = [
        [_model_title(key), who, *(f"{value:.2f}" for value in values)]
        for key, document in DOCUMENT_ACCURACY.items()
        if key in curves and "error_as_run" in curves[key]
        for who, values in (
            ("document", document),
            ("here", [100 - curves[key]["error_as_run"][curves[key]["fraction"].index(f)] for f in DOCUMENT_FRACTIONS]),
        )
    ]
    headers = ("net", "", *(f"{100 * f:g} %" for f in DOCUMENT_FRACTIONS))
    caption = "Accuracies in %, ten draws; the document's nets are one each, here means over seeds."
    return [ResultTable("Beside the authors' nets", headers, rows, text_columns=2, caption=caption)] if rows else []


def _chart(title: str, curves: Mapping[str, Any]) -> Chart:
    lines = [
        ChartLine(_model_title(name), [100 * f for f in curve["fraction"]], [100 - e for e in curve["error"]])
        for name, curve in curves.items()
    ]
    accuracy_text = ", ".join(
        f"{100 - curve['error'][curve['fraction'].index(0.95)]:.2f} % ({_model_title(name)})"
        for name, curve in curves.items()
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
        "note": "the original paper loses 0.05 points at 95 % and 0.15 at 98 %. The nets “of 300 epochs” were stored "
        "when the loss of an epoch's last minibatch was lowest, after 56 to 277 epochs: that sets them apart",
    },
    left_open=(
        "to which value a pruned weight is set: zero, mean and scale",
        "whether biases are pruned: they are kept",
    ),
    durations=("some seconds", "forty minutes on a GPU, its nets shared with table 3"),
    show=show,
)
