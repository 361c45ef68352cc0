"""Re-creating an artefact: numbers and verdicts as one file, with where they came from."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from doxa.replicate.compact import compact, rounded
from doxa.replicate.contract import Artefact, Ask
from doxa.results import plain, stamp, write_whole

QUICK, FULL = "quick", "full"


def perform(artefact: Artefact, ask: Ask) -> dict[str, Any]:
    """Run it; what is found, beside the document's values."""
    start, size = time.perf_counter(), FULL if ask.full else QUICK
    numbers = artefact.run(ask)
    verdicts = numbers.pop("verdicts", [])
    judged, known = {v["claim"] for v in verdicts}, {c.name for c in artefact.claims}
    if judged != known:
        raise AssertionError(f"{artefact.name} judged {sorted(judged)}, and claims {sorted(known)}")
    settings = {"size": size, **numbers.pop("settings", {})}
    about = stamp(settings, numbers.pop("seeds", []), start)
    if ask.device is None or not ask.device.startswith("cuda"):
        about["device"] = "CPU"
    found = plain(
        {
            "artefact": artefact.name,
            "title": artefact.title,
            "rows": artefact.rows,
            **about,
            "departures": artefact.departures.get(size, ()),
            "left_open": artefact.left_open,
            "reference": dict(artefact.reference),
            "numbers": numbers,
            "verdicts": verdicts,
        }
    )
    return rounded(found)


def write(folder: Path, found: dict[str, Any]) -> Path:
    """Keep a result under its artefact's name; a quick one does not take a full one's place."""
    quick = "" if found["settings"]["size"] == FULL else ".quick"
    path = folder / f"{found['artefact']}{quick}.json"
    write_whole(path, compact(found) + "\n")
    return path
