"""Table 3: test error on MNIST, twelve nets, as the document trains them and as validation rows would have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions, Verdict
from doxa_replicate.over_seeds import format_with_error, mean, standard_error
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.weight_uncertainty.digits.published import DOCUMENT_ERROR, ORIGINAL_ERROR
from doxa_replicate.weight_uncertainty.digits.score_tables import score_row
from doxa_replicate.weight_uncertainty.digits.trainings.cells import cells
from doxa_replicate.weight_uncertainty.digits.trainings.choice import choose_recipe, chosen_cells
from doxa_replicate.weight_uncertainty.digits.trainings.models import (
    AS_WRITTEN,
    BATCH,
    MODELS,
    TABLE_MODELS,
    WIDTHS,
    draw_count,
    recipe_at_size,
    weight_count,
)

MAX_GAP = 0.2  # points
BEATS_PLAIN = Claim(
    "C-WU-11", "A belief errs less on MNIST than a plain net", "error of the belief, prior N(0, 1), below at each width"
)
AS_GOOD_AS_DROPOUT = Claim(
    "C-WU-12",
    "A belief is comparable with dropout",
    f"errors of the belief, prior N(0, 1), and of dropout within {MAX_GAP:g} points at each width",
)
BEATS_MIXTURE = Claim(
    "C-WU-13",
    "A single Gaussian as prior beats the scale mixture, against the original paper",
    "error with N(0, 1) below that with the mixture at each width",
)
Rows = dict[str, dict[str, Any]]


def run(options: ReplicationOptions) -> Numbers:
    columns = {
        "as written": {
            f"{name}, {width}": score_row(cells(options, name, width)) for name in TABLE_MODELS for width in WIDTHS
        },
        "chosen": {
            f"{name}, {width}": score_row(chosen_cells(options, name, width))
            for name in TABLE_MODELS
            for width in WIDTHS
        },
    }
    seeds = columns["as written"]["plain, 400"]["seeds"]
    return {
        "settings": {
            "as_written": recipe_at_size(options, AS_WRITTEN).as_dict(),
            "batch": BATCH,
            "draws": draw_count(options),
            "start": "means uniform on (−0.2, 0.2), rho on (−5, −4), as written; torch's own means where chosen",
            "inputs": "pixels / 255",
        },
        "seeds": seeds,
        "columns": columns,
        "choices": {
            f"{name}, {width}": choose_recipe(options, name, width) for name in TABLE_MODELS for width in WIDTHS
        },
        "verdicts": _judge_errors(columns["as written"], seeds),
    }


def _judge_errors(written: Rows, seeds: Sequence[int]) -> list[Verdict]:
    """The claims held against the errors as written: a belief beside a plain net, dropout and the mixture."""
    gaps_to_plain, gaps_to_dropout, gaps_to_mixture = (
        _error_gaps(written, "gaussian", other_model) for other_model in ("plain", "dropout", "mixture")
    )
    return [
        BEATS_PLAIN.judge(
            all(mean(v) < 0 for v in gaps_to_plain.values()),
            {width: mean(v) for width, v in gaps_to_plain.items()},
            largest_error(gaps_to_plain),
            seeds,
            "as written; belief less plain net, points, by width",
        ),
        AS_GOOD_AS_DROPOUT.judge(
            all(abs(mean(v)) <= MAX_GAP for v in gaps_to_dropout.values()),
            {width: mean(v) for width, v in gaps_to_dropout.items()},
            largest_error(gaps_to_dropout),
            seeds,
            "as written; belief less dropout, points, by width",
        ),
        BEATS_MIXTURE.judge(
            all(mean(v) < 0 for v in gaps_to_mixture.values()),
            {width: mean(v) for width, v in gaps_to_mixture.items()},
            largest_error(gaps_to_mixture),
            seeds,
            "as written; N(0, 1) less mixture, points, by width",
        ),
    ]


def _error_gaps(rows: Rows, model: str, other_model: str) -> dict[str, list[float]]:
    """By how many points a model errs more than another, by width and seed."""
    return {
        str(width): [
            a - b
            for a, b in zip(errors_by_seed(rows, model, width), errors_by_seed(rows, other_model, width), strict=True)
        ]
        for width in WIDTHS
    }


def errors_by_seed(rows: Rows, name: str, width: int) -> list[float]:
    errors: list[float] = rows[f"{name}, {width}"]["error"]["each"]
    return errors


def largest_error(gaps: Mapping[str, Sequence[float]]) -> float:
    """The largest of some standard errors."""
    return max(standard_error(v) or 0.0 for v in gaps.values())


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    columns = result["numbers"]["columns"]
    best = {
        (column, width): min(TABLE_MODELS, key=lambda name: rows[f"{name}, {width}"]["error"]["mean"])
        for column, rows in columns.items()
        for width in WIDTHS
    }
    return [
        *(_error_table(column, score_rows, best) for column, score_rows in columns.items()),
        ResultTable(
            "What was chosen, by validation NLL",
            ("net", "units", *CHOICE_HEADERS),
            _choice_rows(result["numbers"]["choices"]),
        ),
    ]


def _error_table(column: str, score_rows: Rows, best: Mapping[tuple[str, int], str]) -> ResultTable:
    rows = []
    for name in TABLE_MODELS:
        for k, width in enumerate(WIDTHS):
            scores, mark = score_rows[f"{name}, {width}"], "**" * (best[column, width] == name)
            rows.append(
                [
                    MODELS[name].title,
                    str(width),
                    f"{weight_count(width) / 1e6:.1f} M",
                    f"{ORIGINAL_ERROR[name][k]:.2f}",
                    f"{DOCUMENT_ERROR[name][k]:.2f}",
                    f"{mark}{format_with_error(scores['error'], 2)}{mark}",
                    f"{scores['nll']['mean']:.3f}",
                    f"{scores['ece']['mean']:.2f}",
                ]
            )
    headers = ("net", "units", "weights", "original %", "document %", "error %", "NLL", "ECE %")
    caption = "Errors ± standard error over seeds; the lowest of each width in bold."
    return ResultTable(f"Test rows, {column}", headers, rows, caption=caption)


CHOICE_HEADERS = (
    "epochs",
    "KL weight",
    "scale at the start",
    "validation NLL",
    "validation error %",
    "validation ECE %",
)


def _choice_rows(choices: Mapping[str, Any]) -> list[list[str]]:
    rows = []
    for key, choice in choices.items():
        name, _, width = key.partition(", ")
        best = choice["tried"][choice["best"]]
        is_belief = MODELS[name].is_belief
        rows.append(
            [
                MODELS[name].title,
                width,
                str(best["epochs"]),
                f"{best['kl_weight']:g}" if is_belief else "–",
                f"{best['scale']:g}" if is_belief else "–",
                f"{best['nll']:.4f}",
                f"{best['error']:.2f}",
                f"{best['ece']:.2f}",
            ]
        )
    return rows


ARTEFACT = Artefact(
    name="weight-uncertainty/table-3",
    order=20,
    group="mnist",
    title="Test error on MNIST: beliefs with two priors, plain nets and dropout, at three widths",
    requirements=("WU-42", "WU-44", "WU-45", "WU-46", "WU-47", "WU-48"),
    run=run,
    claims=(BEATS_PLAIN, AS_GOOD_AS_DROPOUT, BEATS_MIXTURE),
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
    durations=("a minute", "40 minutes on a GPU"),
    show=show,
)
