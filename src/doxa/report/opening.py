"""What was found, in a few sentences: computed from the numbers, whoever they favour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from doxa.report.runs import Group, Run
from doxa.report.scores import MAIN, known
from doxa.report.table import distance, told_apart

OVERALL = ("nll", "lppd", "brier", "crps", "error", "rmse")
ALONE = ("error", "rmse", "nll", "ece", "coverage_90", "auroc_entropy")
MOST = 3  # runs named in one breath


def opening(group: Group) -> list[Markup]:
    """Sentences on the runs of one data set: the overall score, who is clearly best in what, and where nobody is."""
    others = [Markup("Other runs here were judged on other rows of these data, and are not compared with it.")]
    return [*_compared(group), *(others if group.apart else [])]


def _compared(group: Group) -> list[Markup]:
    runs = group.runs
    if len(runs) == 1:
        return [_alone(runs[0])]
    overall = next((name for name in OVERALL if _all_have(runs, name)), None)
    if overall is None:
        return [Markup("{} results, with no score in common to compare them by.").format(len(runs))]
    sentences = [_overall(runs, overall, group.seeds)]
    others = [name for name in MAIN if name != overall and known(name).worse is not None and _all_have(runs, name)]
    wins = {name: _clear_winner(runs, name) for name in others}
    clearly = "clearly best" if group.seeds > 1 else "best"
    for run in runs:
        won = [known(name).phrase for name, winner in wins.items() if winner is run]
        if won:
            sentences.append(Markup("{} is {} in {}.").format(_name(run), clearly, _listed(won)))
    open_ = [known(name).phrase for name, winner in wins.items() if winner is None]
    if open_:
        sentences.append(Markup("In {} none is {}.").format(_listed(open_), clearly))
    if group.seeds == 1:
        sentences.append(Markup("This is one seed: what lies between them may be chance."))
    return sentences


def _overall(runs: Sequence[Run], name: str, seeds: int) -> Markup:
    best, *others = sorted(runs, key=lambda run: distance(run, name))
    over = f" over {seeds} seeds" if seeds > 1 else ""
    title = known(name).title
    close = [run for run in others if not told_apart(run, best, name)]
    if not close:
        return Markup("{} has the best {}{}, {}; next is {} with {}.").format(
            _name(best), title, over, _value(best, name), _name(others[0]), _value(others[0], name)
        )
    front, rest = [best, *close], [run for run in others if run not in close]
    said = Markup("By {}{} {} cannot be told apart ({})").format(
        title, over, _listed(_some(front)), _listed([_value(run, name) for run in front[:MOST]])
    )
    if not rest:
        return said + "."
    values_of_rest = _listed([_value(run, name) for run in rest[:MOST]])
    verb = "is" if len(rest) == 1 else "are"
    return said + Markup("; {} {} worse ({}).").format(_listed(_some(rest)), verb, values_of_rest)


def _clear_winner(runs: Sequence[Run], name: str) -> Run | None:
    best = min(runs, key=lambda run: distance(run, name))
    return best if all(told_apart(run, best, name) for run in runs if run is not best) else None


def _alone(run: Run) -> Markup:
    having = [name for name in ALONE if run.value(name) is not None]
    if not having:
        return Markup("{} has no score that is known here.").format(_name(run))
    rows = run.result.get("data", {}).get("rows")
    over = f" on {rows:,} rows" if isinstance(rows, int) else ""
    scores = [f"{known(name).title} {_value(run, name)}" for name in having]
    return Markup("{}{}: {}.").format(_name(run), over, _listed(scores))


def _all_have(runs: Sequence[Run], name: str) -> bool:
    return all(run.value(name) is not None for run in runs)


def _value(run: Run, name: str) -> str:
    score = known(name)
    return score.shown(run.value(name), run.error(name), "%" if score.percent else "")


def _name(run: Run) -> Markup:
    return Markup("<b><bdi>{}</bdi></b>").format(run.name)


def _some(runs: Sequence[Run]) -> list[Any]:
    more = len(runs) - MOST
    return [_name(run) for run in runs] if more <= 0 else [*(_name(r) for r in runs[:MOST]), f"{more} more"]


def _listed(words: Sequence[Any]) -> Markup:
    *first, last = words
    return Markup(" and ").join([Markup(", ").join(first), last]) if first else Markup("{}").format(last)
