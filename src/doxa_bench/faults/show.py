"""The counts as tables, for a terminal and the page."""

from __future__ import annotations

from typing import Any

from doxa_bench.faults.contract import PROBLEMS
from doxa_bench.tables import BenchTable


def show(result: dict[str, Any]) -> list[BenchTable]:
    """What was tried of every kind and what went wrong, then every failure that is told at length."""
    rows = [
        (kind, f"{counts['cases']:,}", *(f"{counts[problem]:,}" for problem in PROBLEMS))
        for kind, counts in result["kinds"].items()
    ]
    if rows:
        totals = (sum(counts[problem] for counts in result["kinds"].values()) for problem in PROBLEMS)
        cases = sum(counts["cases"] for counts in result["kinds"].values())
        rows.append(("all", f"{cases:,}", *(f"{number:,}" for number in totals)))
    tried = [
        (kind, what, f"{number:,}")
        for kind, counts in result["kinds"].items()
        for what, number in counts["tried"].items()
    ]
    tables = [
        BenchTable("Cases, and what went wrong in them", ("kind", "cases", *PROBLEMS), rows),
        BenchTable("What was tried", ("kind", "what", "number"), tried, text_columns=2),
    ]
    if result["failures"]:
        failures = [(f["case"], str(f["seed"]), f["problem"], f["text"]) for f in result["failures"]]
        tables.append(BenchTable("Failures", ("case", "seed", "problem", "what"), failures, text_columns=4))
    return tables
