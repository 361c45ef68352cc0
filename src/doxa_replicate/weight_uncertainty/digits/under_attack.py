"""Figure 22: accuracy under attack."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from doxa_replicate.columns import AS_RUN, AS_WRITTEN, CHOSEN
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions, Verdict
from doxa_replicate.over_seeds import format_number, mean
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.verdicts import Evidence, combined, paired, unanimous
from doxa_replicate.weight_uncertainty.digits.score_tables import infinity_note
from doxa_replicate.weight_uncertainty.digits.trainings.attacks import (
    AUTHORS_IMAGES,
    AUTHORS_RADII,
    SOURCE_WORDS,
    SOURCES,
)
from doxa_replicate.weight_uncertainty.digits.trainings.choice import cells_by_column
from doxa_replicate.weight_uncertainty.digits.trainings.judging import Cell, authors_draws
from doxa_replicate.weight_uncertainty.digits.trainings.models import COMPARED_MODELS, MODELS, draw_count
from doxa_replicate.weight_uncertainty.digits.trainings.settings import training_settings

# Right at radii of 0, 0.05, 0.10 and 0.25, in per cent: the authors' own nets of 1,200 units.
DOCUMENT_ACCURACY = {
    "gaussian": (100.0, 98.54, 84.18, 11.1),
    "mixture": (100.0, 97.66, 82.71, 10.1),
    "plain": (100.0, 88.18, 47.95, 1.1),
    "dropout": (100.0, 93.65, 57.23, 1.9),
}
LEAST_ACCURACY = 80.0
ROBUST = Claim(
    "C-WU-20",
    "A belief stands adversarial examples better",
    "fall of accuracy at radius 0.05, the belief's less dropout's and dropout's less the plain net's: below 0; "
    f"accuracy of the belief at 0.10: above {LEAST_ACCURACY:g} %; as run with the gradients of three nets, on training "
    "images that are not kept in range: it holds, or fails, where it does so with each of them",
)
TITLES = {"transfer": "gradients of another net", "white_box": "gradients of the net itself"}


def run(options: ReplicationOptions) -> Numbers:
    columns = cells_by_column(options, (*COMPARED_MODELS, "mixture"))
    seeds = [cell["seed"] for cell in columns[AS_RUN]["plain"]]
    return {
        "settings": {
            "units": 1200,
            "sources": SOURCE_WORDS if options.full else "a small CNN",
            "pixels": "kept in [0, 1], and as run not",
            "images as run": f"the first {AUTHORS_IMAGES:,} training rows, and the first {AUTHORS_IMAGES:,} test rows",
            **training_settings(options, [(name, 1200) for name in (*COMPARED_MODELS, "mixture")]),
            "draws": {"as run": authors_draws(options), "else": draw_count(options)},
        },
        "seeds": seeds,
        "as_run": {
            column: {name: _accuracies(model_cells) for name, model_cells in column_cells.items()}
            for column, column_cells in columns.items()
        },
        "attacks": {
            f"{TITLES[attack]}, {column}": {
                name: {
                    radius: {
                        key: mean([c[attack][radius][key] for c in model_cells]) for key in ("error", "nll", "ece")
                    }
                    for radius in model_cells[0][attack]
                }
                for name, model_cells in column_cells.items()
            }
            for attack in TITLES
            for column, column_cells in columns.items()
        },
        "verdicts": [
            _judge(
                columns[AS_RUN],
                seeds,
                AS_RUN,
                {
                    source: partial(_accuracy_as_run, attack=f"{source}, training, not kept in range")
                    for source in SOURCES
                },
            ),
            *(
                _judge(columns[column], seeds, column, {"LeNet-5": _accuracy_of_transfer})
                for column in (AS_WRITTEN, CHOSEN)
            ),
        ],
    }


def _accuracies(model_cells: Sequence[Cell]) -> dict[str, dict[str, float]]:
    """Accuracies in per cent by attack as run and radius, means over seeds."""
    return {
        attack: {radius: mean([cell["as run"][attack][radius] for cell in model_cells]) for radius in by_radius}
        for attack, by_radius in model_cells[0]["as run"].items()
    }


def _accuracy_as_run(cell: Cell, radius: str, attack: str) -> float:
    accuracy: float = cell["as run"][attack][radius]
    return accuracy


def _accuracy_of_transfer(cell: Cell, radius: str) -> float:
    return float(100 - cell["transfer"][radius]["error"])


def _judge(
    cells_by_model: Mapping[str, Sequence[Cell]],
    seeds: Sequence[int],
    column: str,
    accuracies: Mapping[str, Callable[[Cell, str], float]],
) -> Verdict:
    by_source = {source: _evidence(cells_by_model, accuracy) for source, accuracy in accuracies.items()}
    parts = {f"{source}, {name}": part for source, evidence in by_source.items() for name, part in evidence.items()}
    verdict = unanimous(combined(part.verdict for part in evidence.values()) for evidence in by_source.values())
    return {**ROBUST.decide(parts, seeds, column, "points of accuracy"), "verdict": verdict}


def _evidence(
    cells_by_model: Mapping[str, Sequence[Cell]], accuracy: Callable[[Cell, str], float]
) -> dict[str, Evidence]:
    """With the gradients of one net, how the three stand beside each other."""
    falls = {
        name: [accuracy(cell, "0") - accuracy(cell, "0.05") for cell in cells_by_model[name]]
        for name in COMPARED_MODELS
    }
    return {
        "belief less dropout": paired(falls["gaussian"], falls["dropout"], below=0.0),
        "dropout less plain net": paired(falls["dropout"], falls["plain"], below=0.0),
        "belief at 0.10": Evidence(
            [accuracy(cell, "0.1") for cell in cells_by_model["gaussian"]], above=LEAST_ACCURACY
        ),
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    attacks = result["numbers"]["attacks"]
    charts = [
        Chart(
            attack.capitalize(),
            _caption(by_model),
            "radius",
            "accuracy, %",
            [
                ChartLine(
                    MODELS[name].title, [float(r) for r in by_radius], [100 - v["error"] for v in by_radius.values()]
                )
                for name, by_radius in by_model.items()
            ],
            y_limits=(0, 100),
        )
        for attack, by_model in attacks.items()
    ]
    rows = [
        [attack, MODELS[name].title, radius, f"{v['error']:.2f}", format_number(v["nll"], 3), f"{v['ece']:.2f}"]
        for attack, by_model in attacks.items()
        for name, by_radius in by_model.items()
        for radius, v in by_radius.items()
    ]
    headers = ("attack", "net", "radius", "error %", "NLL", "ECE %")
    scores_table = ResultTable("Scores", headers, rows, text_columns=2, caption=infinity_note(rows))
    return [*_as_run(result["numbers"]), *charts, scores_table]


def _as_run(numbers: Mapping[str, Any]) -> list[PageElement]:
    """The attack as the authors made it, as far as it can be told: several nets' gradients, and both kinds of rows."""
    by_model = numbers.get("as_run", {}).get(AS_RUN)
    if by_model is None:
        return []
    rows = [
        [attack, MODELS[name].title, *(f"{accuracy:.1f}" for accuracy in by_attack[attack].values())]
        for attack in next(iter(by_model.values()))
        for name, by_attack in by_model.items()
    ]
    rows += [
        ["the document's", MODELS[name].title, *(f"{accuracy:.1f}" for accuracy in accuracies)]
        for name, accuracies in DOCUMENT_ACCURACY.items()
    ]
    headers = ("gradients of, rows, pixels", "net", *(f"at {radius:g}, %" for radius in AUTHORS_RADII))
    caption = "Accuracies with ten draws, means over seeds; nets trained as the authors trained them, 1,200 units."
    return [ResultTable("As run", headers, rows, text_columns=2, caption=caption)]


def _caption(by_model: Mapping[str, Any]) -> str:
    return (
        "Right at 0.1: "
        + ", ".join(f"{MODELS[n].title} {100 - by_radius['0.1']['error']:.1f} %" for n, by_radius in by_model.items())
        + "."
    )


ARTEFACT = Artefact(
    name="weight-uncertainty/figure-22",
    order=29,
    group="mnist",
    title="Accuracy against the radius of a fast gradient sign attack",
    requirements=("WU-55", "WU-20"),
    run=run,
    claims=(ROBUST,),
    reference={
        "fall at 0.05, points": {"belief": 2, "plain": 12, "dropout": 6},
        "right at 0.10, %": {"belief": 84},
        "note": "every net of its authors is right on all 1,024 images that were attacked, which test images would not "
        "allow: they are training images, or were sorted out",
    },
    left_open=(
        "the net whose gradients are used, of which no code is left: as run three, the CNN of the document's "
        "reference, one of a single convolution as in an early state of its code, and a LeNet-5; else a LeNet-5, five "
        "epochs",
        "whether pixels are kept in range: as run both are shown, and judged where they are not; else they are",
        "the net's own gradients, as control: 2,000 rows, 20 draws",
    ),
    durations=("some seconds", "half an hour on a GPU, its nets shared with table 3"),
    show=show,
)
