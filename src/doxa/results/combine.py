"""Several seeds of one setting as one result."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from doxa.errors import BadInput
from doxa.results.check import Result, first_problem


def combine(results: Sequence[Result]) -> Result:
    """One result of several seeds of one setting: each score its mean, with the standard error over seeds.

    error = sd(values) / √seeds;  null for a single seed, which cannot tell

    Histograms and reliability tables are pooled, curves averaged; `band` and `unsure` are the first seed's.
    """
    if not results:
        raise BadInput("there is nothing to combine; give at least one result")
    for result in results:
        problem = first_problem(result)
        if problem is not None:
            raise BadInput(f"a result to combine is none: {problem}")
        if any(score.get("over") == "seeds" for score in result["scores"].values()):
            raise BadInput(f"{result['name']!r} is over several seeds already; combine the results of single seeds")
    first = results[0]
    for differing, key_of in {"names": lambda r: r["name"], "data": lambda r: r.get("data", {}).get("name")}.items():
        if len({key_of(r) for r in results}) > 1:
            raise BadInput(
                f"these results have different {differing}: {', '.join(sorted({repr(key_of(r)) for r in results}))}"
            )
    combined: Result = {"name": first["name"]}
    if "data" in first:
        combined["data"] = _merge_data([r.get("data", {}) for r in results])
    combined["settings"] = _merge_settings([r.get("settings", {}) for r in results])
    if all("stamp" in r for r in results):
        combined["stamp"] = _merge_stamps([r["stamp"] for r in results])
    histories = [r.get("history", []) for r in results]
    combined["history"] = [_mean_row(rows) for rows in zip(*histories, strict=False)]
    shared = [name for name in first["scores"] if all(name in r["scores"] for r in results)]
    combined["scores"] = {name: _score_over_seeds([r["scores"][name]["value"] for r in results]) for name in shared}
    combined["findings"] = _merge_findings([r.get("findings", []) for r in results])
    for section, merge in MERGES.items():
        parts = [r[section] for r in results if section in r]
        if len(parts) == len(results):
            combined[section] = merge(parts)
    return combined


def _merge_data(abouts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What is said of the first seed's data; seeds that were judged on different rows are known by all of them."""
    digests = [about.get("digest") for about in abouts]
    return abouts[0] if len({*digests}) == 1 else {**abouts[0], "digest": digests}


def _score_over_seeds(values: Sequence[float | None]) -> dict[str, Any]:
    mean, error = _mean_and_error(values)
    return {"value": mean, "error": error, "over": "seeds", "count": len(values)}


def _mean_and_error(values: Sequence[float | None]) -> tuple[float | None, float | None]:
    finite = [v for v in values if v is not None]
    if len(finite) < len(values):
        return None, None
    error = statistics.stdev(finite) / math.sqrt(len(finite)) if len(finite) > 1 else None
    return statistics.fmean(finite), error


def _mean_row(rows: Sequence[dict[str, float]]) -> dict[str, Any]:
    return {key: _mean_and_error([row.get(key) for row in rows])[0] for key in rows[0]}


def _merge_settings(settings: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Settings that all have as they are; those that differ as a list, one for each seed."""
    return {
        key: value if all(s.get(key) == value for s in settings) else [s.get(key) for s in settings]
        for key, value in settings[0].items()
    }


def _merge_stamps(stamps: Sequence[dict[str, Any]]) -> dict[str, Any]:
    seeds = [seed for s in stamps for seed in s.get("seeds", [])]
    seconds = round(sum(s.get("seconds") or 0 for s in stamps), 1)
    return {**_merge_settings(stamps), "seeds": seeds, "seconds": seconds}


def _merge_findings(findings_by_seed: Sequence[Sequence[str]]) -> list[str]:
    """Findings of one kind (what stands before the colon) once, with the number of seeds that have it."""
    sentences_by_kind: dict[str, list[str]] = {}
    for sentences in findings_by_seed:
        for sentence in sentences:
            sentences_by_kind.setdefault(sentence.partition(":")[0], []).append(sentence)
    if len(findings_by_seed) == 1:
        return [sentence for sentences in sentences_by_kind.values() for sentence in sentences]
    return [
        f"{same_kind[0]} (In {min(len(same_kind), len(findings_by_seed))} of {len(findings_by_seed)} seeds; "
        f"the numbers are those of one.)"
        for same_kind in sentences_by_kind.values()
    ]


def _pool_reliability(parts: Sequence[Result]) -> Result:
    if len({len(p["count"]) for p in parts}) > 1:
        return parts[0]
    cells = [list(zip(*(p[c] for c in ("count", "confidence", "accuracy")), strict=True)) for p in parts]
    columns: Result = {"confidence": [], "accuracy": [], "count": []}
    for bins in zip(*cells, strict=True):
        total = sum(count for count, _, _ in bins)
        for k, name in enumerate(("confidence", "accuracy"), start=1):
            columns[name].append(sum(b[0] * b[k] for b in bins if b[0]) / total if total else None)
        columns["count"].append(total)
    return columns


def _pool_counts(parts: Sequence[Result]) -> Result:
    if any(p["edges"] != parts[0]["edges"] or p.keys() != parts[0].keys() for p in parts):
        return parts[0]
    counts = {
        k: [sum(bin_counts) for bin_counts in zip(*(p[k] for p in parts), strict=True)]
        for k in parts[0]
        if k != "edges"
    }
    return {"edges": parts[0]["edges"], **counts}


def _average_curve(parts: Sequence[Result]) -> Result:
    """A curve over its first column: the mean of its second, with the standard error over seeds as `se`."""
    x_name, y_name = list(parts[0])[:2]
    if any(p[x_name] != parts[0][x_name] or y_name not in p for p in parts):
        return parts[0]
    pairs = [_mean_and_error(values) for values in zip(*(p[y_name] for p in parts), strict=True)]
    return {x_name: parts[0][x_name], y_name: [mean for mean, _ in pairs], "se": [error for _, error in pairs]}


def _take_first(parts: Sequence[Any]) -> Any:
    return parts[0]


MERGES: dict[str, Callable[[Sequence[Any]], Any]] = {
    "reliability": _pool_reliability,
    "entropy": _pool_counts,
    "pruning": _average_curve,
    "signal_to_noise": _pool_counts,
    "intervals": _average_curve,
    "band": _take_first,
    "unsure": _take_first,
    "attack": _average_curve,
}
