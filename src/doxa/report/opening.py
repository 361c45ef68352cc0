"""What was found, in a few sentences: computed from the numbers, whoever they favour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from doxa.report.runs import ReportedRun, RunGroup
from doxa.report.scores import MAIN, find_score
from doxa.report.table import differ_significantly, distance

OVERALL_SCORES = ("nll", "lppd", "brier", "crps", "error", "rmse")
SINGLE_RUN_SCORES = ("error", "rmse", "nll", "ece", "coverage_90", "auroc_entropy")
MOST_NAMES = 3  # runs named in one breath


def opening(group: RunGroup) -> list[Markup]:
    """Sentences on the runs of one data set: the overall score, who is clearly best in what, and where nobody is."""
    other_rows_note = [Markup("Other runs here were judged on other rows of these data, and are not compared with it.")]
    return [*_compare_runs(group), *(other_rows_note if group.has_other_rows else [])]


def _compare_runs(group: RunGroup) -> list[Markup]:
    runs = group.runs
    if len(runs) == 1:
        return [_single_run(runs[0])]
    overall = next((name for name in OVERALL_SCORES if _all_have(runs, name)), None)
    if overall is None:
        return [Markup("{} results, with no score in common to compare them by.").format(len(runs))]
    sentences = [_overall_sentence(runs, overall, group.seeds)]
    other_scores = [
        name
        for name in MAIN
        if name != overall and find_score(name).distance_from_ideal is not None and _all_have(runs, name)
    ]
    wins = {name: _clear_winner(runs, name) for name in other_scores}
    clearly = "clearly best" if group.seeds > 1 else "best"
    for run in runs:
        won_scores = [find_score(name).phrase for name, winner in wins.items() if winner is run]
        if won_scores:
            sentences.append(Markup("{} is {} in {}.").format(_name_markup(run), clearly, _join(won_scores)))
    undecided = [find_score(name).phrase for name, winner in wins.items() if winner is None]
    if undecided:
        sentences.append(Markup("In {} none is {}.").format(_join(undecided), clearly))
    if group.seeds == 1:
        sentences.append(Markup("This is one seed: what lies between them may be chance."))
    return sentences


def _overall_sentence(runs: Sequence[ReportedRun], name: str, seeds: int) -> Markup:
    best, *runners_up = sorted(runs, key=lambda run: distance(run, name))
    over = f" over {seeds} seeds" if seeds > 1 else ""
    title = find_score(name).title
    close_runs = [run for run in runners_up if not differ_significantly(run, best, name)]
    if not close_runs:
        return Markup("{} has the best {}{}, {}; next is {} with {}.").format(
            _name_markup(best),
            title,
            over,
            _value_text(best, name),
            _name_markup(runners_up[0]),
            _value_text(runners_up[0], name),
        )
    best_runs, worse_runs = [best, *close_runs], [run for run in runners_up if run not in close_runs]
    sentence = Markup("By {}{} {} cannot be told apart ({})").format(
        title, over, _join(_first_names(best_runs)), _join([_value_text(run, name) for run in best_runs[:MOST_NAMES]])
    )
    if not worse_runs:
        return sentence + "."
    worse_values = _join([_value_text(run, name) for run in worse_runs[:MOST_NAMES]])
    verb = "is" if len(worse_runs) == 1 else "are"
    return sentence + Markup("; {} {} worse ({}).").format(_join(_first_names(worse_runs)), verb, worse_values)


def _clear_winner(runs: Sequence[ReportedRun], name: str) -> ReportedRun | None:
    best = min(runs, key=lambda run: distance(run, name))
    return best if all(differ_significantly(run, best, name) for run in runs if run is not best) else None


def _single_run(run: ReportedRun) -> Markup:
    known_scores = [name for name in SINGLE_RUN_SCORES if run.value(name) is not None]
    if not known_scores:
        return Markup("{} has no score that is known here.").format(_name_markup(run))
    rows = run.result.get("data", {}).get("rows")
    over = f" on {rows:,} rows" if isinstance(rows, int) else ""
    scores = [f"{find_score(name).title} {_value_text(run, name)}" for name in known_scores]
    return Markup("{}{}: {}.").format(_name_markup(run), over, _join(scores))


def _all_have(runs: Sequence[ReportedRun], name: str) -> bool:
    return all(run.value(name) is not None for run in runs)


def _value_text(run: ReportedRun, name: str) -> str:
    score = find_score(name)
    return score.format_value(run.value(name), run.error(name), "%" if score.percent else "")


def _name_markup(run: ReportedRun) -> Markup:
    return Markup("<b><bdi>{}</bdi></b>").format(run.name)


def _first_names(runs: Sequence[ReportedRun]) -> list[Any]:
    more = len(runs) - MOST_NAMES
    return (
        [_name_markup(run) for run in runs]
        if more <= 0
        else [*(_name_markup(r) for r in runs[:MOST_NAMES]), f"{more} more"]
    )


def _join(items: Sequence[Any]) -> Markup:
    *all_but_last, last = items
    return Markup(" and ").join([Markup(", ").join(all_but_last), last]) if all_but_last else Markup("{}").format(last)
