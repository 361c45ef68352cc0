"""TOML files of settings: names that there are and are not, values of all kinds, and text that is no TOML."""

from __future__ import annotations

import importlib
import json
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from doxa.runs import Plan
from doxa_bench.faults.attempts import try_each
from doxa_bench.faults.kinds.inputs.block import Block
from doxa_bench.faults.kinds.inputs.made_up import DEEP, printable, value, word
from doxa_settings.record import DataSettings, LearningSettings

SETTINGS = Block(
    "files of settings (TOML), with names and values of all kinds", 0.5, "settings_files", "TOML files", 250
)
NAMES = [each.name for each in (*fields(DataSettings), *fields(LearningSettings))]
FITTING = [
    "variational",
    "point",
    "gaussian:1",
    "laplace:0.5",
    "local",
    "mlp:4",
    "lenet5",
    "adam",
    "cosine:1",
    "gaussian:",
]
CALLS = ["gaussian:scale=", "mixture:1,2,3", "mlp:width=4", "mlp:(4,4)", "mlp:" + "(" * 500, "x:y:z", ":", "mlp:1e9"]


def attempt_all(folder: str, seed: str, number: int) -> dict[str, Any]:
    path = Path(folder) / "settings.toml"

    def attempts() -> Iterator[tuple[str, Callable[[], Any]]]:
        for k in range(number):
            content = make_up_settings(random.Random(f"{seed} {k}"))
            yield f"TOML {k} ({printable(content.decode('latin-1'))})", partial(read_settings, path, content)

    return try_each(attempts())


def read_settings(path: Path, content: bytes) -> None:
    """As `doxa fit --config` reads them, up to a plan that has been checked."""
    path.write_bytes(content)
    merge = importlib.import_module("doxa_cli.settings").merge_settings
    settings = merge(path, [], {})
    for each in fields(DataSettings):
        settings.pop(each.name, None)
    plan = Plan.from_settings(settings)
    if "learner" in settings:
        plan.require_used()
    json.dumps(plan.state())


def make_up_settings(rng: random.Random) -> bytes:
    """Lines of settings, most of them TOML."""
    what = rng.random()
    if what < 0.03:
        return rng.randbytes(rng.randrange(500))
    if what < 0.06:
        return f"a = {'[' * DEEP}{']' * DEEP}".encode()
    if what < 0.08:
        return ".".join(["a"] * DEEP).encode() + b" = 1"
    if what < 0.1:
        return f"a = {'{a=' * DEEP}1{'}' * DEEP}".encode()
    lines = [f"{_name(rng)} = {_value(rng)}" for _ in range(rng.randrange(1, 6))]
    if rng.random() < 0.15:
        lines.insert(
            rng.randrange(len(lines)), rng.choice(("[table]", "[[array]]", "[", "# x", "a.b.c = 1", "=", "[learner]"))
        )
    text = "\n".join(lines)
    return text.encode("utf-8", errors=rng.choice(("replace", "surrogatepass")))


def _name(rng: random.Random) -> str:
    name = rng.choice(NAMES) if rng.random() < 0.85 else word(rng)
    return rng.choice((name, name, name.replace("_", "-"), json.dumps(name)))


def _value(rng: random.Random) -> str:
    what = rng.random()
    if what < 0.3:
        return json.dumps(rng.choice(FITTING + CALLS))
    if what < 0.4:
        return rng.choice(
            ("1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "0xff", "0b1", "1e400", "inf", "nan", "'''a", "tru")
        )
    return _toml(value(rng))


def _toml(content: Any) -> str:
    if isinstance(content, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in content.items()) + "}"
    if isinstance(content, list):
        return "[" + ", ".join(map(_toml, content)) + "]"
    if isinstance(content, float) and not math.isfinite(content):
        return str(content)
    return json.dumps(content)
