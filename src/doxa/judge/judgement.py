"""What came out of a judgement."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, field
from typing import Any

from doxa.contracts import Estimate


@dataclass(frozen=True)
class Judgement:
    """The scores of a belief on data, each with its Monte-Carlo error, and findings in words.

    An error says how far the score would move with other draws of the weights, not with other data; it is 0 where one
    draw is all there is, and for the scores named in `judge`.
    """

    scores: dict[str, Estimate]
    rows: int
    samples: int
    findings: list[str] = field(default_factory=list)

    def __getitem__(self, name: str) -> float:
        return self.scores[name].value

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain JSON; what is not a finite number, which JSON lacks, as null."""
        scores = {
            k: {"value": _finite_or_none(e.value), "error": _finite_or_none(e.error)} for k, e in self.scores.items()
        }
        return {"rows": self.rows, "samples": self.samples, "scores": scores, "findings": list(self.findings)}

    def __str__(self) -> str:
        draws = "1 draw" if self.samples == 1 else f"{self.samples:,} draws"
        name_width = max(map(len, self.scores), default=0)
        lines = [f"{self.rows:,} rows, {draws} (± Monte-Carlo standard error)"]
        for name, estimate in self.scores.items():
            error = f" ± {estimate.error:.2g}" if estimate.error else ""
            lines.append(f"  {name:<{name_width}}  {_format_number(estimate.value)}{error}")
        lines += [textwrap.fill(f, 110, initial_indent="- ", subsequent_indent="  ") for f in self.findings]
        return "\n".join(lines)


def _format_number(value: float) -> str:
    """Four decimals where they say something, else three digits; ten columns wide."""
    plain = value == 0 or 1e-3 <= abs(value) < 1e5
    return f"{value:10.4f}" if plain else f"{value:10.3g}"


def _finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
