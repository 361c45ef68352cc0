"""The three searches of Himmelblau's function as the document's author ran them, and how they ended for him."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from doxa.search import Settings, log_variance, shaping
from doxa_replicate.columns import AS_RUN, AS_WRITTEN
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.parts import cached_part
from doxa_replicate.show import ResultTable
from doxa_replicate.variational_optimisation.himmelblau import searches
from doxa_replicate.variational_optimisation.himmelblau.charts import format_value, median_and_range

POPULATION, STEPS = 200, 59  # f is told 60 times, first at the start
MEAN_RATE, SCALE_RATE = 100, 10
# His gradients are divided by N once more than Doxa's: utilities that sum to one are averaged, not added.
LR = MEAN_RATE / POPULATION
# By log σ² his plain gradient is the plain one, and his natural one d = 2 times the natural one.
SCALE_LR = {"fixed": 0.0, "plain": SCALE_RATE / POPULATION, "natural": 2 * SCALE_RATE / POPULATION}
# Of the author's script with its seed, and over 20 seeds: f at the end, the lowest f on the way, σ at the end; and
# median, lowest and highest f at the end.
AUTHORS = {
    "fixed": ((18.27, 4.1, 1.0), (11.3, 4.4, 20.8)),
    "plain": ((98.5, 0.2, 0.294), (42.7, 19.9, 162.0)),
    "natural": ((0.002, 0.002, 0.025), (0.0, 0.0, 0.0)),
}
WORST_COUNT = (
    "as run the worst half of each generation is told apart, and the best not: utilities go by falling f, and the step "
    "leads away from them; the gradient is divided by N once more"
)


def seeds(options: ReplicationOptions) -> list[int]:
    return options.seed_list(2, 40)


def settings() -> dict[str, Any]:
    return {
        "start": searches.START,
        "scale": searches.SCALE,
        "population": POPULATION,
        "points of f": STEPS + 1,
        "rates": (MEAN_RATE, SCALE_RATE),
        "values": "utilities, of the worst",
        "coordinate": "log σ²",
    }


def settings_by_column(options: ReplicationOptions) -> dict[str, Any]:
    return {AS_RUN: settings(), AS_WRITTEN: searches.common_settings(options)}


def searches_of(options: ReplicationOptions, gradient: str) -> dict[str, Any]:
    """A record for each seed of one of the three searches."""
    asked = settings() | {"seeds": seeds(options), "gradient": gradient}
    return cached_part(options, f"himmelblau-run-{gradient}", asked, partial(_records, options, gradient))


def search_settings(gradient: str) -> Settings:
    return Settings(
        scale=searches.SCALE,
        per="network",
        size=POPULATION,
        antithetic=False,
        gradient=searches.GRADIENTS[gradient],
        shaping=shaping.utilities_of_worst,
        coordinate=log_variance,
        lr=LR,
        scale_lr=SCALE_LR[gradient],
    )


def _records(options: ReplicationOptions, gradient: str) -> dict[str, Any]:
    return {"seeds": [searches.follow(search_settings(gradient), seed, STEPS) for seed in seeds(options)]}


def beside_the_author(gradient: str, numbers: Mapping[str, Any]) -> ResultTable:
    """How a search ended in the author's script, and how it does here."""
    (end, lowest, scale), over_seeds = AUTHORS[gradient]
    rows = [
        ["his seed", format_value(end), "", "", format_value(lowest), format_value(scale)],
        ["his script, 20 seeds", *(format_value(value) for value in over_seeds), "", ""],
        [
            f"here, {len(numbers['ends'])} seeds",
            *median_and_range(numbers["ends"]),
            *(median_and_range(numbers[key])[0] for key in ("lowest", "last_scales")),
        ],
    ]
    return ResultTable(
        "f at the 60th iteration, as run",
        ("run", "f, median", "lowest", "highest", "lowest f on the way", "σ at the end"),
        rows,
        caption="Of one seed, its own number; over seeds the median of the lowest f on the way, and of σ.",
    )
