"""Figure 22: accuracy under attack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import format_number, mean, standard_error
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.weight_uncertainty.digits.score_tables import infinity_note
from doxa_replicate.weight_uncertainty.digits.trainings.choice import cells_by_column
from doxa_replicate.weight_uncertainty.digits.trainings.models import COMPARED_MODELS, MODELS

LEAST_ACCURACY = 80.0
ROBUST = Claim(
    "C-WU-20",
    "A belief stands adversarial examples better",
    "fall of accuracy at radius 0.05: belief below dropout below plain net; at 0.10 the belief is right on at least "
    f"{LEAST_ACCURACY:g} %",
)
TITLES = {"transfer": "gradients of another net", "white_box": "gradients of the net itself"}


def run(options: ReplicationOptions) -> Numbers:
    columns = cells_by_column(options, COMPARED_MODELS)
    as_written = columns["as written"]
    seeds = [cell["seed"] for cell in as_written["plain"]]
    falls = {
        name: [c["transfer"]["0.05"]["error"] - c["transfer"]["0"]["error"] for c in model_cells]
        for name, model_cells in as_written.items()
    }
    belief_accuracy = [100 - c["transfer"]["0.1"]["error"] for c in as_written["gaussian"]]
    falls_ordered = mean(falls["gaussian"]) < mean(falls["dropout"]) < mean(falls["plain"])
    return {
        "settings": {"units": 1200, "source": "LeNet-5" if options.full else "a small CNN", "pixels": "kept in [0, 1]"},
        "seeds": seeds,
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
            ROBUST.judge(
                falls_ordered and mean(belief_accuracy) >= LEAST_ACCURACY,
                {f"fall, {name}": mean(v) for name, v in falls.items()} | {"belief at 0.10": mean(belief_accuracy)},
                max(standard_error(v) or 0.0 for v in falls.values()),
                seeds,
                "as written; points of accuracy, gradients of a LeNet-5",
            )
        ],
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
    return [*charts, ResultTable("Scores", headers, rows, text_columns=2, caption=infinity_note(rows))]


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
    },
    left_open=(
        "the net whose gradients are used: a LeNet-5, five epochs",
        "whether pixels are kept in range: they are",
        "the net's own gradients, as control: 2,000 rows, 20 draws",
    ),
    durations=("some seconds", "22 minutes on a GPU, its nets shared with table 3"),
    show=show,
)
