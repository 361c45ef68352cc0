"""Parts of a replication that are finished stay finished: each is a file, found again by what was asked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from doxa.replicate.contract import Ask
from doxa.results import plain, write_whole


def kept(ask: Ask, name: str, settings: Mapping[str, Any], make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `make` gives, or what it gave when it was asked with the same settings before."""
    if ask.folder is None:
        return make()
    told = json.dumps(plain(dict(settings)), sort_keys=True)
    path = ask.folder / f"{name}-{hashlib.sha256(told.encode()).hexdigest()[:12]}.json"
    if path.exists():
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["settings"] == json.loads(told):
            ask.say(f"{name}: kept from before")
            return found["found"]
    found = plain(make())
    write_whole(path, json.dumps({"settings": json.loads(told), "found": found}) + "\n")
    return found
