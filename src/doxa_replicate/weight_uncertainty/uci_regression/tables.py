"""The benchmark as a page has it: our scores beside the published ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from doxa_replicate.over_seeds import format_with_error
from doxa_replicate.show import PageElement, ResultTable
from doxa_replicate.weight_uncertainty.uci_regression.published import LOG_LIKELIHOOD, RMSE

ScoresByMethod = Mapping[str, Mapping[str, Any]]  # what each of them scored
PublishedScores = Mapping[str, Mapping[str, float]]

TABLE_CAPTION = (
    "Doxa's means over splits ± standard error, then published means; the best of a column is bold, as printed."
)
SHORT_NAMES = {
    "bostonHousing": "Boston",
    "concrete": "Concrete",
    "kin8nm": "Kin8nm",
    "naval-propulsion-plant": "Naval",
    "power-plant": "Power",
    "protein-tertiary-structure": "Protein",
    "wine-quality-red": "Wine",
}
DECIMAL_PLACES = {"kin8nm": 4, "naval-propulsion-plant": 5}  # decimal places of an RMSE; 3 of the others


def show(result: Mapping[str, Any]) -> Sequence[PageElement]:
    sets: Mapping[str, ScoresByMethod] = result["numbers"]["sets"]
    reached = result["numbers"]["reached"]
    likelihood_caption = (
        f"{TABLE_CAPTION} The best of Wu et al. (2019) is reached within our error on {sum(reached.values())} of "
    )
    likelihood_caption += f"{len(reached)}."
    rmse_caption = f"{TABLE_CAPTION} In the target's own unit; Wu et al. give none.{_outlier_note(sets)}"
    return [
        _comparison_table(
            "Log-likelihood of a test row, in nats", likelihood_caption, sets, "log_likelihood", LOG_LIKELIHOOD, max
        ),
        _comparison_table("RMSE", rmse_caption, sets, "rmse", RMSE, min),
        _choice_table(sets),
    ]


def _outlier_note(sets: Mapping[str, ScoresByMethod]) -> str:
    """Where a mean over splits is that of one split: an error more than twice the median."""
    note = ""
    for name, by_method in sets.items():
        for method, scores in by_method.items():
            rmses = sorted(scores["rmse"]["each"])
            if rmses[-1] > 2 * median(rmses):
                range_text = f"from {rmses[0]:.3g} to {rmses[-1]:.3g} over splits, {median(rmses):.3g} in the median"
                note += f" With {method} on {SHORT_NAMES[name]} it is {range_text}."
    return note


def _comparison_table(
    title: str,
    caption: str,
    sets: Mapping[str, ScoresByMethod],
    key: str,
    published: PublishedScores,
    best: Callable[..., float],
) -> ResultTable:
    methods = [f"Doxa, {method}" for method in next(iter(sets.values()))]
    columns = [_score_column(name, by_method, key, published, best) for name, by_method in sets.items()]
    rows = [list(row) for row in zip([*methods, *published], *columns, strict=True)]
    return ResultTable(title, ("method", *(SHORT_NAMES[name] for name in sets)), rows, caption=caption)


def _score_column(
    name: str, by_method: ScoresByMethod, key: str, published: PublishedScores, best: Callable[..., float]
) -> list[str]:
    places = DECIMAL_PLACES.get(name, 3) if key == "rmse" else 3
    cells = [(scores[key]["mean"], format_with_error(scores[key], places)) for scores in by_method.values()]
    cells += [(rows[name], f"{rows[name]:.2f}") for rows in published.values()]
    best_value = best(round(value, 2) for value, _ in cells)  # published figures have two places
    return [f"**{text}**" if round(value, 2) == best_value else text for value, text in cells]


def _choice_table(sets: Mapping[str, ScoresByMethod]) -> ResultTable:
    """What was chosen most often."""
    rows = []
    for name, by_method in sets.items():
        for method, scores in by_method.items():
            setting, times = max(scores["chosen"].items(), key=lambda pair: pair[1])
            share_text = f"{times} of {sum(scores['chosen'].values())}"
            rows.append([SHORT_NAMES[name], method, setting, share_text, f"{scores['widening']['mean']:.2f}"])
    headers = ("data", "method", "setting chosen most often", "splits", "noise widened by, mean")
    return ResultTable("What was chosen inside the training splits", headers, rows, text_columns=3)
