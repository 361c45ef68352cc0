"""MNIST by perturbations of the weights, in mirrored pairs and without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from doxa import search
from doxa_replicate.columns import AS_RUN, AS_WRITTEN, columns
from doxa_replicate.contract import Artefact, Claim, Numbers, ReplicationOptions
from doxa_replicate.over_seeds import format_with_error, summary
from doxa_replicate.show import Chart, ChartLine, PageElement, ResultTable
from doxa_replicate.variational_optimisation.nets.as_run import searches as as_run
from doxa_replicate.variational_optimisation.nets.as_run.searches import AuthorsSearch
from doxa_replicate.variational_optimisation.nets.pictures import load_images
from doxa_replicate.variational_optimisation.nets.trials import (
    NetTrial,
    SearchLength,
    choose_rate,
    dense_net,
    mean_curve,
    train_trial,
)
from doxa_replicate.verdicts import Evidence, paired

HIDDEN, SCALE, LEAST_ACCURACY, LEAST_GAIN = (100,), 0.05, 90.0, 1.0
LEARNS = Claim(
    "C-VO-7",
    "Search with mirrored pairs learns MNIST, and better than independent draws at equal evaluations",
    f"accuracy on test rows in per cent: with pairs above {LEAST_ACCURACY:g}, and above that of as many independent "
    f"draws, seed by seed, by more than {LEAST_GAIN:g}",
)
ANTITHETIC_BY_NAME = {"pairs": True, "independent": False}
AUTHORS = {  # accuracy and NLL of learned and of validation rows, over 30 seeds
    "100 in pairs": (0.969, 0.970, 0.104, 0.100),
    "100 independent": (0.945, 0.947, 0.198, 0.187),
    "50 independent": (0.835, 0.848, 0.543, 0.510),
}
PAIRS, AS_MANY = "100 in pairs", "100 independent"
SEARCHES_AS_RUN = {
    PAIRS: AuthorsSearch(variance_rate=0.05, iterations=1000),
    AS_MANY: AuthorsSearch(pairs=False, variance_rate=0.05, iterations=1000),
    "50 independent": AuthorsSearch(pairs=False, perturbations=50, variance_rate=0.05, iterations=1000),
}
EACH_ACCURACY = {AS_RUN: (PAIRS, AS_MANY), AS_WRITTEN: ("pairs", "independent")}
SETTING_OF_COLUMN = {
    AS_RUN: "the author's convolutional net after 1,000 iterations",
    AS_WRITTEN: "784-100-10 after 3,000 generations",
}


def run(options: ReplicationOptions) -> Numbers:
    by_column = {AS_RUN: _column_as_run(options), AS_WRITTEN: _column_as_written(options)}
    column_seeds = {AS_RUN: as_run.seeds(options), AS_WRITTEN: written_seeds(options)}
    return {
        "settings": {
            AS_RUN: as_run.settings(options),
            AS_WRITTEN: {
                "net": [784, *HIDDEN, 10],
                "scale": SCALE,
                "length": vars(search_length(options)),
                "population": options.by_size(20, 100),
            },
        },
        "seeds": column_seeds[AS_RUN],
        "columns": by_column,
        "verdicts": [
            LEARNS.decide(_evidence(numbers, column), column_seeds[column], column, SETTING_OF_COLUMN[column])
            for column, numbers in by_column.items()
        ],
    }


def written_seeds(options: ReplicationOptions) -> list[int]:
    return options.seed_list(1, 3)


def search_length(options: ReplicationOptions) -> SearchLength:
    return SearchLength(*options.by_size((20, 64, 5), (3000, 128, 100)))


def _column_as_run(options: ReplicationOptions) -> dict[str, Any]:
    kinds = {}
    for name, asked in SEARCHES_AS_RUN.items():
        records = [as_run.authors_search(options, name, asked, seed) for seed in as_run.seeds(options)]
        outcome = as_run.column_of(records)
        kinds[name] = {key: outcome[key] for key in ("curve", "lasted", "end")}
    return {"kinds": kinds}


def _column_as_written(options: ReplicationOptions) -> dict[str, Any]:
    rows, length = load_images(options, "MNIST"), search_length(options)
    kinds: dict[str, Any] = {}
    for name, antithetic in ANTITHETIC_BY_NAME.items():
        learner = search.learner(search.weight_space(antithetic), size=int(options.by_size(20, 100)), scale=SCALE)
        trial = NetTrial(f"MNIST, {name}", learner, partial(dense_net, HIDDEN), (1e-3, 3e-3, 1e-2))
        rate = choose_rate(options, f"mnist-{name}", trial, rows.learn, rows.choose, length)
        outcomes = [
            train_trial(options, f"mnist-{name}", trial, rate["best"], s, rows.train, rows.test, length)
            for s in written_seeds(options)
        ]
        kinds[name] = {
            "rate": rate,
            "curve": mean_curve(outcomes, range(5)),
            "end": {
                key: {"each": [outcome[key] for outcome in outcomes], **summary([outcome[key] for outcome in outcomes])}
                for key in ("accuracy", "nll", "learned_accuracy")
            },
        }
    return {"kinds": kinds}


def _evidence(numbers: Mapping[str, Any], column: str) -> dict[str, Evidence]:
    pairs, independent = (numbers["kinds"][name]["end"]["accuracy"]["each"] for name in EACH_ACCURACY[column])
    return {
        "accuracy with pairs": Evidence(pairs, above=LEAST_ACCURACY),
        "pairs less independent": paired(pairs, independent, above=LEAST_GAIN),
    }


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    elements: list[PageElement] = []
    for column, numbers in columns(result).items():
        # An earlier result has its ends beside its curves.
        kinds = {name: {"end": outcome, **outcome} for name, outcome in numbers["kinds"].items()}
        elements += _charts(kinds, column)
        elements.append(_authors_table(kinds) if column == AS_RUN else _table_as_written(kinds))
    return elements


def _charts(kinds: Mapping[str, Any], column: str) -> list[Chart]:
    def lines(test_column: int, learned_column: int) -> list[ChartLine]:
        return [
            ChartLine(f"{name}, {rows}", [p[0] for p in curve], [p[k] for p in curve], dashed=rows == "learned")
            for name, curve in ((name, outcome["curve"]) for name, outcome in kinds.items())
            for rows, k in (("test rows", test_column), ("learned", learned_column))
        ]

    ends = ", ".join(f"{name} {as_run.format_end(outcome['end']['accuracy'], 2)} %" for name, outcome in kinds.items())
    return [
        Chart(f"Accuracy, {column}", f"In the end: {ends}.", "generation", "accuracy, %", lines(1, 3)),
        Chart(f"NLL, {column}", "The mean over seeds.", "generation", "NLL, nats", lines(2, 4)),
    ]


def _authors_table(kinds: Mapping[str, Any]) -> ResultTable:
    rows = []
    for name, (learned, validation, learned_nll, validation_nll) in AUTHORS.items():
        end = kinds[name]["end"]
        rows.append(
            [name, "his figure", f"{100 * learned:.1f}", f"{100 * validation:.1f}", learned_nll, validation_nll]
        )
        keys = (("learned_accuracy", 2), ("accuracy", 2), ("learned_nll", 3), ("nll", 3))
        rows.append([name, "here", *(as_run.format_end(end[key], places) for key, places in keys)])
    return ResultTable(
        "After 1,000 iterations, as run",
        ("perturbations", "whose", "accuracy %, learned", "test rows", "NLL, learned", "test rows"),
        [[str(cell) for cell in row] for row in rows],
        text_columns=2,
        caption="Test rows are what the author calls validation. Of learned rows 10,000 here, as one batch.",
    )


def _table_as_written(kinds: Mapping[str, Any]) -> ResultTable:
    rows = [
        [
            name,
            f"{outcome['rate']['best']:g}",
            format_with_error(outcome["end"]["accuracy"], 2),
            format_with_error(outcome["end"]["nll"], 3),
        ]
        for name, outcome in kinds.items()
    ]
    return ResultTable("Test rows, as written", ("draws", "rate", "accuracy %", "NLL"), rows)


ARTEFACT = Artefact(
    name="variational-optimisation/mnist-pairs",
    order=12,
    group="nets",
    title="MNIST with and without mirrored pairs",
    requirements=("VO-25",),
    run=run,
    claims=(LEARNS,),
    reference={
        "document": "accuracy and NLL of training and validation rows, as curves without numbers",
        "note": "as run a convolutional net of 22,000 weights, SGD, utilities, 1,000 rows a perturbation, 30 runs",
        "accuracy on validation rows, as run": {name: numbers[1] for name, numbers in AUTHORS.items()},
    },
    left_open=(
        *as_run.SETTINGS_OPEN,
        "what follows, of the column as written alone",
        "net, population, scale, batch, optimiser: 784-100-10, N = 100, σ = 0.05, 128 rows, Adam and centred ranks",
        "the learning rate: of three, for both, by rows held out after as many generations, with another seed; after a "
        "third of them a rate three times as high looked as good, and ended lower",
        "training rows on the curves: 10,000 of those that were learned from; test rows stand where the document has "
        "validation rows, since those chose the rate",
    ),
    departures={
        "quick": ("3,000 rows, few generations of few perturbations",),
        "full": ("as run five seeds, where the author had 30",),
    },
    durations=("some seconds", "half an hour on a GPU"),
    show=show,
)
