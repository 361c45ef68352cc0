"""What a replication is: a table or figure of a document, its own values and claims, and a way to re-create it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from doxa_replicate.show import PageElement
from doxa_replicate.verdicts import FAIL as FAIL
from doxa_replicate.verdicts import OPEN as OPEN
from doxa_replicate.verdicts import PASS as PASS
from doxa_replicate.verdicts import Evidence, combined

Numbers = dict[str, Any]
Verdict = dict[str, Any]


@dataclass(frozen=True)
class Claim:
    """A sentence of a document, in Doxa's words, and the number that decides it."""

    name: str
    statement: str
    criterion: str

    def judge(
        self,
        holds: bool | None,
        value: Any,
        se: Any = None,
        seeds: Sequence[int] = (),
        setting: str = "",
        column: str = "",
    ) -> Verdict:
        """The claim held against what was measured, in one column of an artefact; None where that cannot decide it.

        `se` is the standard error of the value: of those of its parts that have one, by their names, or the largest.
        """
        verdict = OPEN if holds is None else PASS if holds else FAIL
        return {
            "claim": self.name,
            "words": self.statement,
            "criterion": self.criterion,
            "column": column,
            "value": value,
            "se": se,
            "seeds": list(seeds),
            "setting": setting,
            "verdict": verdict,
        }

    def decide(
        self, evidence: Mapping[str, Evidence], seeds: Sequence[int], column: str = "", setting: str = ""
    ) -> Verdict:
        """The claim held against numbers over seeds, part by part, in one column of an artefact."""
        parts = {name: each.as_dict() for name, each in evidence.items()}
        return {
            "claim": self.name,
            "words": self.statement,
            "criterion": self.criterion,
            "column": column,
            "parts": parts,
            "seeds": list(seeds),
            "setting": setting,
            "verdict": combined(part["verdict"] for part in parts.values()),
        }


@dataclass(frozen=True)
class ReplicationOptions:
    """How a replication is to be run: quick or full, by which seeds, where, and where its parts are kept meanwhile."""

    full: bool = False
    seeds: int | None = None
    device: str | None = None
    folder: Path | None = None  # of parts that are finished; None keeps none
    say: Callable[[str], None] = lambda text: None
    progress: bool = False
    used_parts: list[dict[str, Any]] = field(
        default_factory=list, compare=False
    )  # parts that a run was put together from
    part_cache: dict[str, Any] = field(default_factory=dict, compare=False)  # every part so far: none is made twice

    def by_size(self, quick: Any, full: Any) -> Any:
        """A setting at the size that is asked for."""
        return full if self.full else quick

    def seed_list(self, quick: int, full: int) -> list[int]:
        """The seeds: as many as were asked for, else as the size has."""
        return list(range(self.seeds if self.seeds is not None else self.by_size(quick, full)))


@dataclass(frozen=True)
class Artefact:
    """A table or figure of a document.

    `reference` holds the document's own values; `left_open` says what it left open and what was chosen; `departures`
    where the quick size, or the full one, is not what the document did. Artefacts of one `group` share a page.
    """

    name: str
    title: str
    requirements: tuple[str, ...]  # requirements, by ID
    run: Callable[[ReplicationOptions], Numbers]  # numbers, with "verdicts" among them
    claims: tuple[Claim, ...] = ()
    reference: Mapping[str, Any] = field(default_factory=dict)
    left_open: tuple[str, ...] = ()
    departures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of "quick" and "full"
    durations: tuple[str, str] = ("", "")  # quick and full, in words
    show: Callable[[Mapping[str, Any]], Sequence[PageElement]] = lambda result: ()  # a result, as a page has it
    group: str = ""  # such as "regression"
    order: float = math.inf  # among those of its document: pages follow it
