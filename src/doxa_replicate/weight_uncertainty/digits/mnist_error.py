"""Table 3: test error on MNIST, twelve nets, as the document trains them and as validation rows would have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doxa_replicate.columns import AS_RUN, AS_WRITTEN, CHOSEN
from doxa_replicate.contract import FAIL, OPEN, PASS, Artefact, Claim, Numbers, ReplicationOptions, Verdict
from doxa_replicate.over_seeds import format_number, format_with_error
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.verdicts import Evidence, paired
from doxa_replicate.weight_uncertainty.digits.published import DOCUMENT_ERROR, FIFTY_DRAWS_ERROR, ORIGINAL_ERROR
from doxa_replicate.weight_uncertainty.digits.score_tables import score_row
from doxa_replicate.weight_uncertainty.digits.trainings.cells import cells, cells_as_run
from doxa_replicate.weight_uncertainty.digits.trainings.choice import choose_recipe, chosen_cells, knobs_at_edge
from doxa_replicate.weight_uncertainty.digits.trainings.models import (
    MODELS,
    POINT_MODELS,
    TABLE_MODELS,
    WIDTHS,
    weight_count,
)
from doxa_replicate.weight_uncertainty.digits.trainings.settings import training_settings

MAX_GAP, MATCH = 0.2, 0.12  # points: of a belief beside dropout, and of a row beside the document's
BEATS_PLAIN = Claim(
    "C-WU-11",
    "A belief errs less on MNIST than a plain net",
    "error of the belief, prior N(0, 1), less that of the plain net: below 0 at each width",
)
AS_GOOD_AS_DROPOUT = Claim(
    "C-WU-12",
    "A belief is comparable with dropout",
    f"error of the belief, prior N(0, 1), less that of dropout: within {MAX_GAP:g} points at each width",
)
BEATS_MIXTURE = Claim(
    "C-WU-13",
    "A single Gaussian as prior beats the scale mixture, against the original paper",
    "error with N(0, 1) less that with the mixture: below 0 at each width",
)
Rows = dict[str, dict[str, Any]]


def run(options: ReplicationOptions) -> Numbers:
    keys = [(name, width) for name in TABLE_MODELS for width in WIDTHS]
    columns = {
        AS_RUN: {f"{name}, {width}": _row_as_run(options, name, width) for name, width in keys},
        AS_WRITTEN: {f"{name}, {width}": score_row(cells(options, name, width)) for name, width in keys},
        CHOSEN: {f"{name}, {width}": score_row(chosen_cells(options, name, width)) for name, width in keys},
    }
    seeds = columns[AS_RUN]["plain, 400"]["seeds"]
    return {
        "settings": {
            **training_settings(options, keys),
            "epochs as run": "600; of plain nets and dropout with 400 and 800 units 300",
        },
        "seeds": seeds,
        "columns": columns,
        "stored": {f"{name}, {width}": score_row(cells_as_run(options, name, width), "stored") for name, width in keys},
        "beside_document": {
            f"{name}, {width}": _beside_document(columns[AS_RUN], name, width).as_dict()
            for name, width in keys
            if name not in POINT_MODELS
        },
        "choices": {f"{name}, {width}": _rounded(choose_recipe(options, name, width)) for name, width in keys},
        "verdicts": [verdict for column, rows in columns.items() for verdict in _judge_errors(rows, seeds, column)],
    }


def _beside_document(rows: Rows, name: str, width: int) -> Evidence:
    """The errors less the document's, or what 50 draws of its own net give where that is known: within 0.12 points."""
    k = WIDTHS.index(width)
    read_again = FIFTY_DRAWS_ERROR.get(name, (None,) * len(WIDTHS))[k]
    document = DOCUMENT_ERROR[name][k] if read_again is None else read_again
    return Evidence([error - document for error in errors_by_seed(rows, name, width)], -MATCH, MATCH)


def _rounded(choice: Mapping[str, Any]) -> dict[str, Any]:
    """A choice with scores of four significant digits: there are dozens."""
    tried = [
        {key: float(f"{value:.4g}") if isinstance(value, float) else value for key, value in row.items()}
        for row in choice["tried"]
    ]
    return {"tried": tried, "best": choice["best"]}


def _row_as_run(options: ReplicationOptions, name: str, width: int) -> dict[str, Any]:
    """As run: plain nets and dropout of 400 and 800 units are those of 300 epochs."""
    at_half = name in POINT_MODELS and width != WIDTHS[-1]
    return score_row(cells_as_run(options, name, width), "halfway" if at_half else None)


def _judge_errors(rows: Rows, seeds: Sequence[int], column: str) -> list[Verdict]:
    """The claims held against the errors: a belief beside a plain net, dropout and the mixture."""
    borders: dict[Claim, tuple[str, dict[str, float]]] = {
        BEATS_PLAIN: ("plain", {"below": 0.0}),
        AS_GOOD_AS_DROPOUT: ("dropout", {"above": -MAX_GAP, "below": MAX_GAP}),
        BEATS_MIXTURE: ("mixture", {"below": 0.0}),
    }
    return [
        claim.decide(
            {
                f"{width} units": paired(
                    errors_by_seed(rows, "gaussian", width), errors_by_seed(rows, other_model, width), **border
                )
                for width in WIDTHS
            },
            seeds,
            column,
            "points of error",
        )
        for claim, (other_model, border) in borders.items()
    ]


def errors_by_seed(rows: Rows, name: str, width: int) -> list[float]:
    errors: list[float] = rows[f"{name}, {width}"]["error"]["each"]
    return errors


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    columns = result["numbers"]["columns"]
    best = {
        (column, width): min(TABLE_MODELS, key=lambda name: rows[f"{name}, {width}"]["error"]["mean"])
        for column, rows in columns.items()
        for width in WIDTHS
    }
    return [
        *(_error_table(column, score_rows, best) for column, score_rows in columns.items()),
        *_document_table(result["numbers"].get("beside_document", {})),
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
                    _fifty_draws(name, k),
                    f"{mark}{format_with_error(scores['error'], 2)}{mark}",
                    format_with_error(scores["error_as_run"], 2) if "error_as_run" in scores else "–",
                    f"{scores['nll']['mean']:.3f}",
                    f"{scores['ece']['mean']:.2f}",
                ]
            )
    headers = (
        *("net", "units", "weights", "original %", "document %", "its nets, read again %"),
        *("error %", "with 10 draws %", "NLL", "ECE %"),
    )
    caption = (
        "Errors with 50 draws ± standard error over seeds, the lowest of each width in bold; beside the document's "
        "error that of its stored nets with 50 draws, where it can be read (of dropout, the net of 400 units)."
    )
    return ResultTable(f"Test rows, {column}", headers, rows, caption=caption)


def _document_table(gaps: Mapping[str, Any]) -> list[ResultTable]:
    """Whether the document's errors are re-created, row by row."""
    words = {PASS: "yes", FAIL: "no", OPEN: "seeds do not tell"}
    rows = []
    for key, gap in gaps.items():
        name, _, width = key.partition(", ")
        ends = [format_number(gap[end], 2) if gap[end] is not None else "–" for end in ("mean", "low", "high")]
        rows.append([MODELS[name].title, width, *ends, words[gap["verdict"]]])
    headers = ("net", "units", "less the document's", "from", "to", f"within {MATCH:g}")
    caption = (
        "Points of error with 50 draws, as run, and the 95 % interval; the document's nets read again where known."
    )
    return [ResultTable("Beside the document", headers, rows, caption=caption)] if rows else []


def _fifty_draws(name: str, k: int) -> str:
    errors = FIFTY_DRAWS_ERROR.get(name)
    return "–" if errors is None or errors[k] is None else f"{errors[k]:.2f}"


CHOICE_HEADERS = (
    "KL split",
    "epochs",
    "KL weight",
    "rate",
    "scale at the start",
    "at an edge",
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
                ("halving" if best.get("geometric") else "even") if is_belief else "–",
                str(best["epochs"]),
                f"{best['kl_weight']:g}" if is_belief else "–",
                f"{best['lr']:g}",
                f"{best['scale']:g}" if is_belief and best["scale"] is not None else "–",
                ", ".join(knobs_at_edge(choice)).replace("kl_weight", "KL weight") or "–",
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
        "at 1,200 units. Its code says more: errors are of ten draws on 9,984 test images, which also chose the prior; "
        "plain nets of 400 and 800 units have 300 epochs; “dropout, 400” is the net of 1,200 units, the real one errs "
        "on 1.53 %; no stored net has the 1.83 % of the plain one with 1,200 units",
    },
    left_open=(
        "how pixels are scaled: from 0 to 1, as the authors did",
        "the rows learned from: all 60,000 as written and as run; for choosing 50,000, and 10,000 to choose by",
        "learning rate of plain nets and of dropout: that of the beliefs, as the authors took it",
        "how the KL is spread over minibatches: evenly as written; as run the authors' way, the first of an epoch pays "
        "half of it, each next one half as much as the one before",
    ),
    departures={
        "quick": ("2,000 training and 1,000 test rows, 24 to 40 units, 4 epochs, one seed",),
        "full": (
            "as run: all test images, and the last, smaller minibatch of an epoch too, which the authors left out",
            "in the chosen column start and length of a belief's training with even shares are chosen at 400 units and "
            "taken over by the wider nets; the mixture is the best of its grid, found at 400 units",
        ),
    },
    durations=("a minute", "an hour on a GPU"),
    show=show,
)
