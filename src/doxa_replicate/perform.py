"""Re-creating an artefact: numbers and verdicts as one file, with where they came from."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from doxa.results import plain, stamp, write_whole
from doxa_replicate.compact import compact, rounded
from doxa_replicate.contract import OPEN, Artefact, Ask

QUICK, FULL = "quick", "full"


def perform(artefact: Artefact, ask: Ask) -> dict[str, Any]:
    """Run it; what is found, beside the document's values. A quick run decides no claim: they stay open."""
    start, size = time.perf_counter(), FULL if ask.full else QUICK
    ask.used.clear()
    numbers = artefact.run(ask)
    verdicts = numbers.pop("verdicts", [])
    if not ask.full:  # it shows that it works, on too little to decide anything
        verdicts = [{**verdict, "verdict": OPEN} for verdict in verdicts]
    judged, known = {v["claim"] for v in verdicts}, {c.name for c in artefact.claims}
    if judged != known:
        raise AssertionError(f"{artefact.name} judged {sorted(judged)}, and claims {sorted(known)}")
    settings = {"size": size, **numbers.pop("settings", {})}
    about = stamp(settings, numbers.pop("seeds", []), start)
    if ask.used:
        about |= _where_from(ask.used)
    elif ask.device is None or not ask.device.startswith("cuda"):
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


def _where_from(used: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The origin of a result that was put together from parts: all devices and commits, and the time of all of them."""
    distinct = {key: list(dict.fromkeys(str(part[key]) for part in used)) for key in ("device", "commit")}
    return {
        "device": "; ".join(distinct["device"]),
        "commit": ", ".join(distinct["commit"]),
        "versions": {
            name: ", ".join(dict.fromkeys(str(part["versions"][name]) for part in used if name in part["versions"]))
            for name in used[0]["versions"]
        },
        "seconds": round(spent(used), 1),
        "parts": list(used),
    }


def spent(used: Sequence[Mapping[str, Any]]) -> float:
    """How long a device was held by some parts: time that parts made side by side have in common counts once."""
    total = sum(part["seconds"] for part in used if "ended" not in part)
    spans: list[tuple[float, float]] = []
    for part in used:
        if "ended" in part:
            earlier = [(_second(begun), _second(ended)) for begun, ended in part.get("earlier", ())]
            last = _second(part["ended"])
            spans += [*earlier, (last - part["seconds"] + sum(b - a for a, b in earlier), last)]
    until = -math.inf
    for begun, ended in sorted(spans):
        total += max(0.0, ended - max(begun, until))
        until = max(until, ended)
    return float(total)


def _second(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()


def write(folder: Path, found: dict[str, Any]) -> Path:
    """Keep a result under its artefact's name; a quick one does not take a full one's place."""
    quick = "" if found["settings"]["size"] == FULL else ".quick"
    path = folder / f"{found['artefact']}{quick}.json"
    write_whole(path, compact(found) + "\n")
    return path
