"""Results, and words of runs, as JSON in which something was exchanged: read, compared on a page, and asked."""

from __future__ import annotations

import copy
import json
import random
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from doxa import report
from doxa.results import read_result
from doxa.runs import open_run, predict_table
from doxa_bench.faults.attempts import try_each
from doxa_bench.faults.kinds.inputs.block import Block
from doxa_bench.faults.kinds.inputs.made_up import DEEP, printable, value, word

RESULTS = Block(
    "results and words of runs (JSON) with anything exchanged, to read, to compare on a page and to predict from",
    1.0,
    "result_files",
    "JSON files",
    50,
)
ROWS = {"a": [0.1, 0.5], "b": ["u", "w"]}


def attempt_all(folder: str, seed: str, number: int) -> dict[str, Any]:
    root = Path(folder)
    result, spec = ((root / "run" / name).read_bytes() for name in ("result.json", "run.json"))

    def attempts() -> Iterator[tuple[str, Callable[[], Any]]]:
        for k in range(number):
            rng = random.Random(f"{seed} {k}")
            if k % 2:
                name, content = exchange(rng, result)
                yield f"result {k}, {name}", partial(read_and_show, root, content)
            else:
                name, content = exchange(rng, spec)
                yield f"run {k}, {name}", partial(open_and_ask, root, content)

    return try_each(attempts())


def read_and_show(root: Path, content: bytes) -> None:
    path = root / "made-up.json"
    path.write_bytes(content)
    report.write([read_result(path)], root / "page.html")


def open_and_ask(root: Path, content: bytes) -> None:
    folder = root / "made-up-run"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(root / "run", folder)
    (folder / "run.json").write_bytes(content)
    run = open_run(folder)
    predict_table(run, ROWS, samples=2, new="allow")


def exchange(rng: random.Random, content: bytes) -> tuple[str, bytes]:
    """JSON with one thing exchanged, what was done to it in words; or text that is none."""
    what = rng.random()
    if what < 0.05:
        return "at random", rng.randbytes(rng.randrange(500))
    if what < 0.1:
        return "deep", (b"[" * DEEP * 30) + (b"]" * DEEP * 30)
    if what < 0.15:
        position = rng.randrange(len(content))
        return f"cut at {position}", content[:position]
    document = copy.deepcopy(json.loads(content))
    holder, key, name = rng.choice(list(_places(document)))
    if what < 0.25:
        del holder[key]
        return f"without {name}", json.dumps(document).encode()
    if what < 0.35:
        holder[key] = "@"
        raw = rng.choice(
            ("1e400", "-1e400", "9" * 5000, "NaN", '"\\ud800"', "[" * DEEP + "]" * DEEP, "1e308", '"\\u0000"')
        )
        return f"{name} = {raw[:20]}", json.dumps(document).replace('"@"', raw).encode()
    if what < 0.5 and isinstance(holder, dict):
        renamed = word(rng)
        holder[renamed] = holder.pop(key)
        return f"{name} called {printable(renamed, 20)}", json.dumps(document).encode()
    holder[key] = value(rng)
    return f"{name} = {printable(repr(holder[key]), 30)}", json.dumps(document).encode()


def _places(content: Any, name: str = "") -> Iterator[tuple[Any, Any, str]]:
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, inner in items:
        yield content, key, f"{name}.{key}"
        yield from _places(inner, f"{name}.{key}")
