"""Re-creating an artefact: numbers and verdicts as one file, with where they came from."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from doxa.results import stamp, to_plain_json, write_text_atomic
from doxa_replicate.compact import round_floats, to_compact_json
from doxa_replicate.contract import OPEN, Artefact, ReplicationOptions

QUICK, FULL = "quick", "full"


def perform(artefact: Artefact, options: ReplicationOptions) -> dict[str, Any]:
    """Run it; what is found, beside the document's values. A quick run decides no claim: they stay open."""
    start, size = time.perf_counter(), FULL if options.full else QUICK
    options.used_parts.clear()
    numbers = artefact.run(options)
    verdicts = numbers.pop("verdicts", [])
    if not options.full:  # it shows that it works, on too little to decide anything
        verdicts = [{**verdict, "verdict": OPEN} for verdict in verdicts]
    judged_claims, known_claims = {v["claim"] for v in verdicts}, {c.name for c in artefact.claims}
    if judged_claims != known_claims:
        raise AssertionError(f"{artefact.name} judged {sorted(judged_claims)}, and claims {sorted(known_claims)}")
    settings = {"size": size, **numbers.pop("settings", {})}
    provenance = stamp(settings, numbers.pop("seeds", []), start)
    if options.used_parts:
        provenance |= _provenance(options.used_parts)
    elif options.device is None or not options.device.startswith("cuda"):
        provenance["device"] = "CPU"
    result = to_plain_json(
        {
            "artefact": artefact.name,
            "title": artefact.title,
            "rows": artefact.requirements,
            **provenance,
            "departures": artefact.departures.get(size, ()),
            "left_open": artefact.left_open,
            "reference": dict(artefact.reference),
            "numbers": numbers,
            "verdicts": verdicts,
        }
    )
    return round_floats(result)


def _provenance(used_parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The origin of a result that was put together from parts: all devices and commits, and the time of all of them."""
    distinct = {key: list(dict.fromkeys(str(part[key]) for part in used_parts)) for key in ("device", "commit")}
    return {
        "device": "; ".join(distinct["device"]),
        "commit": ", ".join(distinct["commit"]),
        "versions": {
            name: ", ".join(
                dict.fromkeys(str(part["versions"][name]) for part in used_parts if name in part["versions"])
            )
            for name in used_parts[0]["versions"]
        },
        "seconds": round(device_seconds(used_parts), 1),
        "parts": list(used_parts),
    }


def device_seconds(used_parts: Sequence[Mapping[str, Any]]) -> float:
    """How long a device was held by some parts: time that parts made side by side have in common counts once."""
    total = sum(part["seconds"] for part in used_parts if "ended" not in part)
    spans: list[tuple[float, float]] = []
    for part in used_parts:
        if "ended" in part:
            earlier = [(_timestamp(start), _timestamp(end)) for start, end in part.get("earlier", ())]
            end_time = _timestamp(part["ended"])
            spans += [*earlier, (end_time - part["seconds"] + sum(b - a for a, b in earlier), end_time)]
    covered_until = -math.inf
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, covered_until))
        covered_until = max(covered_until, end)
    return float(total)


def _timestamp(time_text: str) -> float:
    return datetime.fromisoformat(time_text).timestamp()


def write(folder: Path, result: dict[str, Any]) -> Path:
    """Keep a result under its artefact's name; a quick one does not take a full one's place."""
    suffix = "" if result["settings"]["size"] == FULL else ".quick"
    path = folder / f"{result['artefact']}{suffix}.json"
    write_text_atomic(path, to_compact_json(result) + "\n")
    return path
