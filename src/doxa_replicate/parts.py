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

from doxa.results import plain, stamp, write_whole
from doxa_replicate.contract import Ask

MADE = ("device", "versions", "commit", "seconds")  # what is told of a part


def stem(name: str, settings: Mapping[str, Any]) -> str:
    """What files of a part are called: its name, and a short one of its settings."""
    return f"{name}-{hashlib.sha256(_told(settings).encode()).hexdigest()[:12]}"


def _told(settings: Mapping[str, Any]) -> str:
    return json.dumps(plain(dict(settings)), sort_keys=True)


def kept(ask: Ask, name: str, settings: Mapping[str, Any], make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `make` gives, or what it gave when it was asked with the same settings before.

    Where, when and how long it took to make joins `ask.used`, once, so that a result put together from parts can tell.
    A `make` that goes on from where it was broken off tells its "seconds" in all, or its "legs", which count for it.
    """
    key = stem(name, settings)
    if key not in ask.known:
        ask.known[key] = _read_or_made(ask, name, settings, make)
    part = ask.known[key]
    if not any(used is part["made"] for used in ask.used):
        ask.used.append(part["made"])
    found: dict[str, Any] = part["found"]
    return found


def before(ask: Ask, name: str) -> list[dict[str, Any]]:
    """The settings of every part of a name that is kept, whatever they are."""
    if ask.folder is None:
        return []
    pattern = re.compile(re.escape(name) + "-[0-9a-f]{12}[.]json")
    found = sorted(path for path in ask.folder.glob("*.json") if pattern.fullmatch(path.name))
    return [json.loads(path.read_text(encoding="utf-8"))["settings"] for path in found]


def lasted(begun: str, ended: str) -> float:
    """Seconds from one time to another."""
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(begun)).total_seconds()


@contextmanager
def legs(folder: Path | None) -> Iterator[Callable[[], list[list[str]]]]:
    """From when to when work went on that continues where it was broken off: earlier legs are told by its folder.

    A leg that was killed outright, or that broke off before there was a folder, left no word and does not count.
    """
    path = None if folder is None else folder / "legs.json"
    earlier = json.loads(path.read_text(encoding="utf-8")) if path is not None and path.exists() else []
    start = _now()
    try:
        yield lambda: [*earlier, [start, _now()]]
    except BaseException:
        if path is not None and path.parent.exists():
            write_whole(path, json.dumps([*earlier, [start, _now()]]))
        raise


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _read_or_made(
    ask: Ask, name: str, settings: Mapping[str, Any], make: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    told = json.loads(_told(settings))
    path = None
    if ask.folder is not None:
        path = ask.folder / f"{stem(name, settings)}.json"
        if path.exists():
            part = json.loads(path.read_text(encoding="utf-8"))
            if part["settings"] == told:
                ask.say(f"{name}: kept from before")
                return {"made": {"part": name, **part["made"]}, "found": part["found"]}
    start = time.perf_counter()
    found = plain(make())
    about = stamp({}, [], start)
    if not str(settings.get("device", ask.device) or "").startswith("cuda"):
        about["device"] = "CPU"
    earlier = found.pop("legs", [])[:-1]
    about["seconds"] = max(about["seconds"], found.get("seconds", 0.0))
    about["seconds"] = round(about["seconds"] + sum(lasted(*leg) for leg in earlier), 1)
    made = {key: about[key] for key in MADE} | {"ended": _now()}
    made |= {"earlier": earlier} if earlier else {}
    if path is not None:
        write_whole(path, json.dumps({"settings": told, "made": made, "found": found}) + "\n")
    return {"made": {"part": name, **made}, "found": found}
