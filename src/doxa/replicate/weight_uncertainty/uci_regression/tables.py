"""The benchmark as a page has it: our scores beside the published ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from doxa.replicate.show import Shown, Table
from doxa.replicate.weight_uncertainty.uci_regression.published import LOG_LIKELIHOOD, RMSE

Sets = Mapping[str, Mapping[str, Mapping[str, Any]]]  # by set and method


def show(found: Mapping[str, Any]) -> Sequence[Shown]:
    sets: Sets = found["numbers"]["sets"]
    scores = (
        ("Log-likelihood", "log_likelihood", LOG_LIKELIHOOD, max, "a split's mean over its test rows, in nats"),
        ("RMSE", "rmse", RMSE, min, "in the target's own unit; of naval propulsion published to two places only"),
    )
    beside = "Ours with their standard error over splits; **bold** is the best of a row, ours and published."
    compared = [
        Table(
            title,
            ("data", *sets[next(iter(sets))], *rows),
            [_row(name, sets[name], key, rows, best) for name in sets],
            says=f"{beside} {says}.",
        )
        for title, key, rows, best, says in scores
    ]
    return [*compared, _chosen(sets)]


def _row(
    name: str,
    methods: Mapping[str, Mapping[str, Any]],
    key: str,
    published: Mapping[str, Mapping[str, float]],
    best: Callable[..., float],
) -> list[str]:
    # Compared as printed: published figures have two decimal places.
    ours = {method: own[key] for method, own in methods.items()}
    theirs = [rows[name] for rows in published.values()]
    places = _places(name, key)
    first = best([round(own["mean"], 2) for own in ours.values()] + theirs)
    cells = [(own["mean"], f"{own['mean']:.{places}f}" + _error(own["se"], places)) for own in ours.values()]
    cells += [(value, f"{value:.2f}") for value in theirs]
    return [name, *(f"**{words}**" if round(value, 2) == first else words for value, words in cells)]


def _places(name: str, key: str) -> int:
    small = {"kin8nm": 4, "naval-propulsion-plant": 5}
    return small.get(name, 3) if key == "rmse" else 3


def _error(se: float | None, places: int) -> str:
    return "" if se is None else f" ± {se:.{places}f}"


def _chosen(sets: Sets) -> Table:
    """What was chosen most often."""
    rows = []
    for name, methods in sets.items():
        for method, own in methods.items():
            setting, times = max(own["chosen"].items(), key=lambda pair: pair[1])
            among = f"{times} of {sum(own['chosen'].values())}"
            rows.append([name, method, setting, among, f"{own['widening']['mean']:.2f}"])
    heads = ("data", "method", "setting chosen most often", "splits", "noise widened by, mean")
    return Table("What was chosen inside the training splits", heads, rows, words=3)
