"""Table 3: test error on MNIST, twelve nets, as the document trains them and as validation rows would have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Ask, Claim, Numbers
from doxa_replicate.over_seeds import error, mean, summary, with_error
from doxa_replicate.show import Shown, Table
from doxa_replicate.weight_uncertainty.digits.cells import Cell, cells
from doxa_replicate.weight_uncertainty.digits.choice import choice, chosen
from doxa_replicate.weight_uncertainty.digits.models import (
    AS_WRITTEN,
    BATCH,
    MODELS,
    TABLE,
    WIDTHS,
    draws,
    sized,
    weights,
)

DOCUMENT = {
    "gaussian": (1.31, 1.19, 1.35),
    "mixture": (1.42, 1.42, 1.45),
    "plain": (1.95, 1.68, 1.83),
    "dropout": (1.27, 1.41, 1.37),
}
ORIGINAL = {
    "gaussian": (1.82, 1.99, 2.02),
    "mixture": (1.36, 1.34, 1.32),
    "plain": (1.83, 1.84, 1.88),
    "dropout": (1.51, 1.33, 1.36),
}
NEAR = 0.2  # points
BEATS_PLAIN = Claim(
    "C-WU-11", "A belief errs less on MNIST than a plain net", "error of the belief, prior N(0, 1), below at each width"
)
AS_DROPOUT = Claim(
    "C-WU-12",
    "A belief is comparable with dropout",
    f"errors of the belief, prior N(0, 1), and of dropout within {NEAR:g} points at each width",
)
BEATS_MIXTURE = Claim(
    "C-WU-13",
    "A single Gaussian as prior beats the scale mixture, against the original paper",
    "error with N(0, 1) below that with the mixture at each width",
)
SCORES = ("error", "nll", "ece")
Rows = dict[str, dict[str, Any]]


def run(ask: Ask) -> Numbers:
    columns = {
        "as written": {f"{name}, {width}": row(cells(ask, name, width)) for name in TABLE for width in WIDTHS},
        "chosen": {f"{name}, {width}": row(chosen(ask, name, width)) for name in TABLE for width in WIDTHS},
    }
    written = columns["as written"]
    seeds = written["plain, 400"]["seeds"]

    def gaps(one: str, other: str) -> dict[str, list[float]]:
        return {
            str(width): [a - b for a, b in zip(each(written, one, width), each(written, other, width), strict=True)]
            for width in WIDTHS
        }

    by_plain, by_dropout, by_mixture = (
        gaps("gaussian", "plain"),
        gaps("gaussian", "dropout"),
        gaps("gaussian", "mixture"),
    )
    return {
        "settings": {
            "as_written": sized(ask, AS_WRITTEN).told(),
            "batch": BATCH,
            "draws": draws(ask),
            "start": "means uniform on (−0.2, 0.2), rho on (−5, −4), as written; torch's own means where chosen",
            "inputs": "pixels / 255",
        },
        "seeds": seeds,
        "columns": columns,
        "choices": {f"{name}, {width}": choice(ask, name, width) for name in TABLE for width in WIDTHS},
        "verdicts": [
            BEATS_PLAIN.judged(
                all(mean(v) < 0 for v in by_plain.values()),
                {width: mean(v) for width, v in by_plain.items()},
                worst(by_plain),
                seeds,
                "as written; belief less plain net, points, by width",
            ),
            AS_DROPOUT.judged(
                all(abs(mean(v)) <= NEAR for v in by_dropout.values()),
                {width: mean(v) for width, v in by_dropout.items()},
                worst(by_dropout),
                seeds,
                "as written; belief less dropout, points, by width",
            ),
            BEATS_MIXTURE.judged(
                all(mean(v) < 0 for v in by_mixture.values()),
                {width: mean(v) for width, v in by_mixture.items()},
                worst(by_mixture),
                seeds,
                "as written; N(0, 1) less mixture, points, by width",
            ),
        ],
    }


def row(found: Sequence[Cell]) -> dict[str, Any]:
    """The scores of a net, mean and standard error over seeds."""
    named = {key: [cell["test"][key] for cell in found] for key in (*SCORES, "brier")}
    return {
        **{key: summary(v) | {"each": v} for key, v in named.items()},
        "train_nll": mean([cell["train_nll"] for cell in found]),
        "seeds": [cell["seed"] for cell in found],
    }


def each(rows: Rows, name: str, width: int) -> list[float]:
    found: list[float] = rows[f"{name}, {width}"]["error"]["each"]
    return found


def worst(gaps: Mapping[str, Sequence[float]]) -> float:
    """The largest of some standard errors."""
    return max(error(v) or 0.0 for v in gaps.values())


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    columns = found["numbers"]["columns"]
    best = {
        (column, width): min(TABLE, key=lambda name: rows[f"{name}, {width}"]["error"]["mean"])
        for column, rows in columns.items()
        for width in WIDTHS
    }
    return [
        *(_table(column, own, best) for column, own in columns.items()),
        Table("What was chosen, by validation NLL", ("net", "units", *CHOICE), _choices(found["numbers"]["choices"])),
    ]


def _table(column: str, own: Rows, best: Mapping[tuple[str, int], str]) -> Table:
    rows = []
    for name in TABLE:
        for k, width in enumerate(WIDTHS):
            of, mark = own[f"{name}, {width}"], "**" * (best[column, width] == name)
            rows.append(
                [
                    MODELS[name].title,
                    str(width),
                    f"{weights(width) / 1e6:.1f} M",
                    f"{ORIGINAL[name][k]:.2f}",
                    f"{DOCUMENT[name][k]:.2f}",
                    f"{mark}{with_error(of['error'], 2)}{mark}",
                    f"{of['nll']['mean']:.3f}",
                    f"{of['ece']['mean']:.2f}",
                ]
            )
    heads = ("net", "units", "weights", "original %", "document %", "error %", "NLL", "ECE %")
    says = "Errors ± standard error over seeds; the lowest of each width in bold."
    return Table(f"Test rows, {column}", heads, rows, says=says)


CHOICE = ("epochs", "KL weight", "scale at the start", "validation NLL", "validation error %", "validation ECE %")


def _choices(choices: Mapping[str, Any]) -> list[list[str]]:
    rows = []
    for key, own in choices.items():
        name, _, width = key.partition(", ")
        best = own["tried"][own["best"]]
        believes = MODELS[name].believes
        rows.append(
            [
                MODELS[name].title,
                width,
                str(best["epochs"]),
                f"{best['kl_weight']:g}" if believes else "–",
                f"{best['scale']:g}" if believes else "–",
                f"{best['nll']:.4f}",
                f"{best['error']:.2f}",
                f"{best['ece']:.2f}",
            ]
        )
    return rows


ARTEFACT = Artefact(
    name="weight-uncertainty/table-3",
    place=20,
    group="mnist",
    title="Test error on MNIST: beliefs with two priors, plain nets and dropout, at three widths",
    rows=("WU-42", "WU-44", "WU-45", "WU-46", "WU-47", "WU-48"),
    run=run,
    claims=(BEATS_PLAIN, AS_DROPOUT, BEATS_MIXTURE),
    reference={
        "note": "errors of the original paper and of the document stand in the table below; the document's own text "
        "errs about its table: single Gaussians beat mixtures by 10 to 23 hundredths of a point, not 10 to 20; in the "
        "original paper mixtures win by 46 to 70, not 60 to 70; and its Gaussian does not beat the original's mixture "
        "at 1,200 units",
    },
    left_open=(
        "how pixels are scaled: from 0 to 1",
        "the rows learned from: all 60,000 as written; for choosing 50,000, and 10,000 to choose by",
        "learning rate of plain nets and of dropout: that of the beliefs",
        "how the KL is spread over minibatches: evenly",
    ),
    departures={
        "quick": ("2,000 training and 1,000 test rows, 24 to 40 units, 4 epochs, one seed",),
        "full": (
            "in the chosen column start and length of a belief's training are chosen at 400 units and taken over by "
            "the wider nets; the mixture is the best of its grid, found at 400 units",
            "what is chosen lies at an edge of what was tried: of beliefs, whose scale and length had two values each, "
            "the larger scale; of plain nets and of dropout the fewest epochs",
        ),
    },
    takes=("a minute", "40 minutes on a GPU"),
    show=show,
)
