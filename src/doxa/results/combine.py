"""Several seeds of one setting as one result."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from doxa.errors import BadInput
from doxa.results.check import Result, trouble


def combine(results: Sequence[Result]) -> Result:
    """One result of several seeds of one setting: each score its mean, with the standard error over seeds.

    error = sd(values) / √seeds;  null for a single seed, which cannot tell

    Histograms and reliability tables are pooled, curves averaged; `band` and `unsure` are the first seed's.
    """
    if not results:
        raise BadInput("there is nothing to combine; give at least one result")
    for result in results:
        wrong = trouble(result)
        if wrong is not None:
            raise BadInput(f"a result to combine is none: {wrong}")
        if any(score.get("over") == "seeds" for score in result["scores"].values()):
            raise BadInput(f"{result['name']!r} is over several seeds already; combine the results of single seeds")
    first = results[0]
    for what, of in {"names": lambda r: r["name"], "data": lambda r: r.get("data", {}).get("name")}.items():
        if len({of(r) for r in results}) > 1:
            raise BadInput(f"these results have different {what}: {', '.join(sorted({repr(of(r)) for r in results}))}")
    together: Result = {"name": first["name"]}
    if "data" in first:
        together["data"] = _shared_rows([r.get("data", {}) for r in results])
    together["settings"] = _shared([r.get("settings", {}) for r in results])
    if all("stamp" in r for r in results):
        together["stamp"] = _stamps([r["stamp"] for r in results])
    histories = [r.get("history", []) for r in results]
    together["history"] = [_mean_row(rows) for rows in zip(*histories, strict=False)]
    shared = [name for name in first["scores"] if all(name in r["scores"] for r in results)]
    together["scores"] = {name: _over_seeds([r["scores"][name]["value"] for r in results]) for name in shared}
    together["findings"] = _findings([r.get("findings", []) for r in results])
    for section, merge in MERGES.items():
        parts = [r[section] for r in results if section in r]
        if len(parts) == len(results):
            together[section] = merge(parts)
    return together


def _shared_rows(abouts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What is said of the first seed's data; seeds that were judged on different rows are known by all of them."""
    digests = [about.get("digest") for about in abouts]
    return abouts[0] if len({*digests}) == 1 else {**abouts[0], "digest": digests}


def _over_seeds(values: Sequence[float | None]) -> dict[str, Any]:
    mean, error = _mean_and_error(values)
    return {"value": mean, "error": error, "over": "seeds", "count": len(values)}


def _mean_and_error(values: Sequence[float | None]) -> tuple[float | None, float | None]:
    known = [v for v in values if v is not None]
    if len(known) < len(values):
        return None, None
    error = statistics.stdev(known) / math.sqrt(len(known)) if len(known) > 1 else None
    return statistics.fmean(known), error


def _mean_row(rows: Sequence[dict[str, float]]) -> dict[str, Any]:
    return {key: _mean_and_error([row.get(key) for row in rows])[0] for key in rows[0]}


def _shared(settings: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Settings that all have as they are; those that differ as a list, one for each seed."""
    return {
        key: value if all(s.get(key) == value for s in settings) else [s.get(key) for s in settings]
        for key, value in settings[0].items()
    }


def _stamps(stamps: Sequence[dict[str, Any]]) -> dict[str, Any]:
    seeds = [seed for s in stamps for seed in s.get("seeds", [])]
    seconds = round(sum(s.get("seconds") or 0 for s in stamps), 1)
    return {**_shared(stamps), "seeds": seeds, "seconds": seconds}


def _findings(said: Sequence[Sequence[str]]) -> list[str]:
    """Findings of one kind (what stands before the colon) once, with the number of seeds that have it."""
    kinds: dict[str, list[str]] = {}
    for sentences in said:
        for sentence in sentences:
            kinds.setdefault(sentence.partition(":")[0], []).append(sentence)
    if len(said) == 1:
        return [sentence for sentences in kinds.values() for sentence in sentences]
    return [
        f"{of[0]} (In {min(len(of), len(said))} of {len(said)} seeds; the numbers are those of one.)"
        for of in kinds.values()
    ]


def _pooled_reliability(parts: Sequence[Result]) -> Result:
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


def _pooled_counts(parts: Sequence[Result]) -> Result:
    if any(p["edges"] != parts[0]["edges"] or p.keys() != parts[0].keys() for p in parts):
        return parts[0]
    counts = {k: [sum(of) for of in zip(*(p[k] for p in parts), strict=True)] for k in parts[0] if k != "edges"}
    return {"edges": parts[0]["edges"], **counts}


def _averaged_curve(parts: Sequence[Result]) -> Result:
    """A curve over its first column: the mean of its second, with the standard error over seeds as `se`."""
    along, of = list(parts[0])[:2]
    if any(p[along] != parts[0][along] or of not in p for p in parts):
        return parts[0]
    pairs = [_mean_and_error(values) for values in zip(*(p[of] for p in parts), strict=True)]
    return {along: parts[0][along], of: [mean for mean, _ in pairs], "se": [error for _, error in pairs]}


def _first(parts: Sequence[Any]) -> Any:
    return parts[0]


MERGES: dict[str, Callable[[Sequence[Any]], Any]] = {
    "reliability": _pooled_reliability,
    "entropy": _pooled_counts,
    "pruning": _averaged_curve,
    "signal_to_noise": _pooled_counts,
    "intervals": _averaged_curve,
    "band": _first,
    "unsure": _first,
    "attack": _averaged_curve,
}
