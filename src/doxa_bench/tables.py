"""A found answer as tables of words, for a terminal or a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

NOT_INSTALLED = "is not installed"


class BenchTable(NamedTuple):
    """Heads and rows, the first `text_columns` columns to be read and the others numbers; notes go below."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: int = 1
    notes: Sequence[str] = ()


def format_quartiles(quartiles: dict[str, float]) -> str:
    """The middle half of the rounds."""
    return f"{quartiles['low']:.2f} – {quartiles['high']:.2f}"


def format_number(value: float | None, form: str = ".2f") -> str:
    """A number, or a dash where there is none."""
    return "–" if value is None else f"{value:{form}}"


def missing_library_notes(missing: dict[str, dict[str, str]]) -> list[str]:
    """Why figures of other libraries are missing; that a library has no such noise, its absence says."""
    absent: dict[str, None] = {}
    failed: dict[str, list[str]] = {}
    for case, reasons in missing.items():
        for library, reason in reasons.items():
            if reason == NOT_INSTALLED:
                absent[library] = None
            elif not reason.startswith("has no"):
                failed.setdefault(f"{library} {reason}", []).append(case)
    failures = [f"{reason} ({', '.join(cases)})" for reason, cases in failed.items()]
    return [*failures, *([f"not installed: {', '.join(absent)}"] if absent else [])]


def library_notes(result: dict[str, Any]) -> list[str]:
    """Every library that was measured, its version, and what it makes of the KL."""
    measured = [(name, about) for name, about in result.get("libraries", {}).items() if about["version"]]
    return [f"{name} {about['version']}: {about['kl']}" for name, about in measured]


def with_error(estimate: dict[str, float]) -> str:
    """A mean and its standard error on one line, to the error's first digit, or its second after a 1."""
    mean, error = estimate["mean"], estimate["se"]
    if not error:
        return f"{mean:.3g}"
    digits, _, power = f"{error:.1e}".partition("e")
    places = max(0, (1 if digits.startswith("1") else 0) - int(power))
    return f"{mean:.{places}f}\u00a0±\u00a0{error:.{places}f}"
