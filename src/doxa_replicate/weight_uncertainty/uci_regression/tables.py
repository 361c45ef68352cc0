"""The benchmark as a page has it: our scores beside the published ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from doxa_replicate.over_seeds import with_error
from doxa_replicate.show import Shown, Table
from doxa_replicate.weight_uncertainty.uci_regression.published import LOG_LIKELIHOOD, RMSE

Methods = Mapping[str, Mapping[str, Any]]  # what each of them scored
Published = Mapping[str, Mapping[str, float]]

BESIDE = "Doxa's means over splits ± standard error, then published means; the best of a column is bold, as printed."
SHORT = {
    "bostonHousing": "Boston",
    "concrete": "Concrete",
    "kin8nm": "Kin8nm",
    "naval-propulsion-plant": "Naval",
    "power-plant": "Power",
    "protein-tertiary-structure": "Protein",
    "wine-quality-red": "Wine",
}
SMALL = {"kin8nm": 4, "naval-propulsion-plant": 5}  # decimal places of an RMSE; 3 of the others


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    sets: Mapping[str, Methods] = found["numbers"]["sets"]
    reached = found["numbers"]["reached"]
    nats = f"{BESIDE} The best of Wu et al. (2019) is reached within our error on {sum(reached.values())} of "
    nats += f"{len(reached)}."
    units = f"{BESIDE} In the target's own unit; Wu et al. give none.{_far_out(sets)}"
    return [
        _compared("Log-likelihood of a test row, in nats", nats, sets, "log_likelihood", LOG_LIKELIHOOD, max),
        _compared("RMSE", units, sets, "rmse", RMSE, min),
        _chosen(sets),
    ]


def _far_out(sets: Mapping[str, Methods]) -> str:
    """Where a mean over splits is that of one split: an error more than twice the median."""
    found = ""
    for name, own in sets.items():
        for method, scores in own.items():
            each = sorted(scores["rmse"]["each"])
            if each[-1] > 2 * median(each):
                ends = f"from {each[0]:.3g} to {each[-1]:.3g} over splits, {median(each):.3g} in the median"
                found += f" With {method} on {SHORT[name]} it is {ends}."
    return found


def _compared(
    title: str, says: str, sets: Mapping[str, Methods], key: str, published: Published, best: Callable[..., float]
) -> Table:
    methods = [f"Doxa, {method}" for method in next(iter(sets.values()))]
    columns = [_column(name, own, key, published, best) for name, own in sets.items()]
    rows = [list(row) for row in zip([*methods, *published], *columns, strict=True)]
    return Table(title, ("method", *(SHORT[name] for name in sets)), rows, says=says)


def _column(name: str, own: Methods, key: str, published: Published, best: Callable[..., float]) -> list[str]:
    places = SMALL.get(name, 3) if key == "rmse" else 3
    cells = [(scores[key]["mean"], with_error(scores[key], places)) for scores in own.values()]
    cells += [(rows[name], f"{rows[name]:.2f}") for rows in published.values()]
    first = best(round(value, 2) for value, _ in cells)  # published figures have two places
    return [f"**{words}**" if round(value, 2) == first else words for value, words in cells]


def _chosen(sets: Mapping[str, Methods]) -> Table:
    """What was chosen most often."""
    rows = []
    for name, own in sets.items():
        for method, scores in own.items():
            setting, times = max(scores["chosen"].items(), key=lambda pair: pair[1])
            among = f"{times} of {sum(scores['chosen'].values())}"
            rows.append([SHORT[name], method, setting, among, f"{scores['widening']['mean']:.2f}"])
    heads = ("data", "method", "setting chosen most often", "splits", "noise widened by, mean")
    return Table("What was chosen inside the training splits", heads, rows, words=3)
