"""Parts of a replication that are finished stay finished: each is a file, found again by what was asked."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from doxa.results import stamp, to_plain_json, write_text_atomic
from doxa_replicate.contract import ReplicationOptions

PROVENANCE_KEYS = ("device", "versions", "commit", "seconds")  # what is told of a part


def stem(name: str, settings: Mapping[str, Any]) -> str:
    """What files of a part are called: its name, and a short one of its settings."""
    return f"{name}-{hashlib.sha256(_canonical_json(settings).encode()).hexdigest()[:12]}"


def _canonical_json(settings: Mapping[str, Any]) -> str:
    return json.dumps(to_plain_json(dict(settings)), sort_keys=True)


def cached_part(
    options: ReplicationOptions, name: str, settings: Mapping[str, Any], make: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """What `make` gives, or what it gave when it was asked with the same settings before.

    Where, when and how long it took to make joins `options.used_parts`, once, so that a result put together from parts
    can tell. A `make` that goes on from where it was broken off tells its "seconds" in all, or its "legs", which count
    for it.
    """
    key = stem(name, settings)
    if key not in options.part_cache:
        options.part_cache[key] = _load_or_make(options, name, settings, make)
    part = options.part_cache[key]
    if not any(recorded is part["made"] for recorded in options.used_parts):
        options.used_parts.append(part["made"])
    value: dict[str, Any] = part["found"]
    return value


def cached_settings(options: ReplicationOptions, name: str) -> list[dict[str, Any]]:
    """The settings of every part of a name that is kept, whatever they are."""
    if options.folder is None:
        return []
    pattern = re.compile(re.escape(name) + "-[0-9a-f]{12}[.]json")
    paths = sorted(path for path in options.folder.glob("*.json") if pattern.fullmatch(path.name))
    return [json.loads(path.read_text(encoding="utf-8"))["settings"] for path in paths]


def seconds_between(start: str, end: str) -> float:
    """Seconds from one time to another."""
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


@contextmanager
def work_sessions(folder: Path | None) -> Iterator[Callable[[], list[list[str]]]]:
    """From when to when work went on that continues where it was broken off: earlier legs are told by its folder.

    A leg that was killed outright, or that broke off before there was a folder, left no word and does not count.
    """
    path = None if folder is None else folder / "legs.json"
    earlier_sessions = json.loads(path.read_text(encoding="utf-8")) if path is not None and path.exists() else []
    start = _now()
    try:
        yield lambda: [*earlier_sessions, [start, _now()]]
    except BaseException:
        if path is not None and path.parent.exists():
            write_text_atomic(path, json.dumps([*earlier_sessions, [start, _now()]]))
        raise


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _load_or_make(
    options: ReplicationOptions, name: str, settings: Mapping[str, Any], make: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    canonical_settings = json.loads(_canonical_json(settings))
    path = None
    if options.folder is not None:
        path = options.folder / f"{stem(name, settings)}.json"
        if path.exists():
            part = json.loads(path.read_text(encoding="utf-8"))
            if part["settings"] == canonical_settings:
                options.say(f"{name}: kept from before")
                return {"made": {"part": name, **part["made"]}, "found": part["found"]}
    start = time.perf_counter()
    value = to_plain_json(make())
    provenance = stamp({}, [], start)
    if not str(settings.get("device", options.device) or "").startswith("cuda"):
        provenance["device"] = "CPU"
    earlier_sessions = value.pop("legs", [])[:-1]
    provenance["seconds"] = max(provenance["seconds"], value.get("seconds", 0.0))
    provenance["seconds"] = round(
        provenance["seconds"] + sum(seconds_between(*session) for session in earlier_sessions), 1
    )
    origin = {key: provenance[key] for key in PROVENANCE_KEYS} | {"ended": _now()}
    origin |= {"earlier": earlier_sessions} if earlier_sessions else {}
    if path is not None:
        write_text_atomic(path, json.dumps({"settings": canonical_settings, "made": origin, "found": value}) + "\n")
    return {"made": {"part": name, **origin}, "found": value}
