"""Cases of all kinds in turn, counted."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from doxa.errors import BadInput, did_you_mean, require_positive
from doxa_bench.faults.contract import PROBLEMS, Case, Kind, Outcome, Workshop
from doxa_bench.faults.kinds import KINDS
from doxa_bench.faults.workshop import LocalWorkshop
from doxa_bench.settings import BenchSettings

MINUTES, FAILURES = 10.0, 200  # without a word about time; failures that are told at length
BETWEEN = 5.0  # seconds from one report to the next


def measure(settings: BenchSettings) -> Iterator[dict[str, Any]]:
    """Try cases until the time is over, or `rounds` of each kind, or the one that was asked for."""
    minutes = None
    if settings.rounds is None:
        minutes = settings.time_limit(MINUTES if settings.minutes is None else settings.minutes)
        require_positive("minutes", minutes)
    wanted = select_cases(settings.only)
    result: dict[str, Any] = {
        "settings": {"minutes": minutes, "rounds": settings.rounds, "cpus": os.cpu_count()},
        "seeds": [settings.seed],
        "numbers": wanted,
        "kinds": {},
        "failures": [],
    }
    cases = plan_cases(settings.seed, wanted, settings.rounds)
    end = time.monotonic() + 60 * minutes if minutes is not None else float("inf")
    spent = dict.fromkeys(wanted, 0.0)
    told = 0.0
    with LocalWorkshop() as workshop:
        for case in next_cases(cases, spent):
            settings.progress(f"{case.name}; {summary(result)}")
            start = time.monotonic()
            outcome = try_case(KINDS[case.kind], case, workshop)
            spent[case.kind] += time.monotonic() - start
            enter(result, case, outcome, time.monotonic() - start)
            for problem, text in outcome.failures:
                settings.say(f"{case.name} {problem}: {text}")
            if time.monotonic() - told > BETWEEN:
                told = time.monotonic()
                yield result
            if time.monotonic() > end:
                break
    settings.say(summary(result))
    yield result


def select_cases(only: str) -> dict[str, int | None]:
    """The kinds that are wanted, each with the number of its one case or with none for all."""
    wanted: dict[str, int | None] = {}
    for word in filter(None, (part.strip() for part in only.split(","))):
        kind, _, number = word.partition(":")
        if kind not in KINDS:
            raise BadInput(f"there is no kind of cases {kind!r}{did_you_mean(kind, KINDS)}")
        if number and not (number.isascii() and number.isdigit()):
            raise BadInput(f"a case is called KIND:NUMBER, as in {kind}:7; got {word!r}")
        wanted[kind] = int(number) if number else None
    return wanted or dict.fromkeys(KINDS)


def plan_cases(seed: int, wanted: dict[str, int | None], rounds: int | None) -> dict[str, Iterator[Case]]:
    """The cases of every kind, one after the other."""

    def cases(kind: str, number: int | None) -> Iterator[Case]:
        if number is not None:
            return iter([Case(seed, kind, number)])
        return map(partial(Case, seed, kind), itertools.count() if rounds is None else range(rounds))

    return {kind: cases(kind, number) for kind, number in wanted.items()}


def next_cases(cases: dict[str, Iterator[Case]], spent: dict[str, float]) -> Iterator[Case]:
    """One case of each kind first, then always of the kind that has had the least of its share of time."""
    waiting = dict(cases)
    for kind in [*waiting]:
        if (case := next(waiting[kind], None)) is not None:
            yield case
    while waiting:
        kind = min(waiting, key=lambda name: spent[name] / KINDS[name].share)
        case = next(waiting[kind], None)
        if case is None:
            del waiting[kind]
        else:
            yield case


def try_case(kind: Kind, case: Case, workshop: Workshop) -> Outcome:
    """A case, of which a fault of the campaign's own is a failure too."""
    try:
        return kind.try_case(case, workshop)
    except Exception as error:
        outcome = Outcome({"broken": 1})
        outcome.fail("tracebacks", f"the case itself: {type(error).__name__}: {error}")
        return outcome


def enter(result: dict[str, Any], case: Case, outcome: Outcome, seconds: float) -> None:
    """Add what came of a case to the counts of its kind."""
    fresh: dict[str, Any] = {"cases": 0, "seconds": 0.0, "tried": {}, **dict.fromkeys(PROBLEMS, 0)}
    counts = result["kinds"].setdefault(case.kind, fresh)
    counts["cases"] += 1
    counts["seconds"] = round(counts["seconds"] + seconds, 2)
    for what, number in outcome.tried.items():
        counts["tried"][what] = counts["tried"].get(what, 0) + number
    for problem, text in outcome.failures:
        counts[problem] += 1
        if len(result["failures"]) < FAILURES:
            result["failures"].append({"case": case.name, "seed": case.seed, "problem": problem, "text": text})


def add(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The counts of several runs as one result, which names the seed and commit of each."""
    if not runs:
        raise BadInput("there is nothing to add")
    total: dict[str, Any] = {**runs[-1], "kinds": {}, "failures": [], "runs": []}
    for run in runs:
        total["runs"] += run.get("runs") or [
            {
                **{name: run.get(name) for name in ("seeds", "settings", "versions", "device", "commit", "seconds")},
                "cases": {kind: counts["cases"] for kind, counts in run["kinds"].items()},
                "numbers": run.get("numbers", {}),
            }
        ]
        total["failures"] = (total["failures"] + run["failures"])[:FAILURES]
        for kind, counts in run["kinds"].items():
            into = total["kinds"].setdefault(
                kind, {"cases": 0, "seconds": 0.0, "tried": {}, **dict.fromkeys(PROBLEMS, 0)}
            )
            for name in ("cases", "seconds", *PROBLEMS):
                into[name] = round(into[name] + counts.get(name, 0), 2)
            for what, number in counts["tried"].items():
                into["tried"][what] = into["tried"].get(what, 0) + number
    _require_different(total["runs"])
    total["seeds"] = sorted({seed for run in total["runs"] for seed in run["seeds"]})
    total["seconds"] = round(sum(run["seconds"] or 0.0 for run in total["runs"]), 1)
    return total


def _require_different(runs: list[dict[str, Any]]) -> None:
    """Refuse to count the same cases twice, whatever was mended in between: what they find they have found."""
    counted: dict[tuple[int, str], dict[int | None, str]] = {}  # the case or none for all, and the commit
    for run in runs:
        for seed, kind in itertools.product(run["seeds"], run["cases"]):
            number, before = run.get("numbers", {}).get(kind), counted.setdefault((seed, kind), {})
            if before and (number is None or None in before or number in before):
                commit = before[number] if number in before else next(iter(before.values()))
                raise BadInput(
                    f"the {kind} of seed {seed} were counted before, at commit {commit}; choose another seed"
                )
            before[number] = run["commit"]


def summary(result: dict[str, Any]) -> str:
    """How far it is, and what was found, in a line."""
    cases = sum(kind["cases"] for kind in result["kinds"].values())
    found = {problem: sum(kind[problem] for kind in result["kinds"].values()) for problem in PROBLEMS}
    return f"{cases:,} cases; " + ", ".join(f"{number} {problem}" for problem, number in found.items())
