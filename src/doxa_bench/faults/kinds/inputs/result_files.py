"""Results, and words of runs, as JSON in which something was exchanged: read, compared on a page, and asked."""

from __future__ import annotations

import copy
import hashlib
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
from doxa.runs.manifest import MANIFEST, take_stock, write_manifest
from doxa.storage.json_text import SEAL
from doxa_bench.faults.attempts import try_each
from doxa_bench.faults.kinds.inputs.block import Block
from doxa_bench.faults.kinds.inputs.made_up import DEEP, printable, value, word

RESULTS = Block(
    "results, words and manifests of runs (JSON) with anything exchanged, sealed again or as of old",
    0.6,
    "result_files",
    "JSON files",
    50,
)
ROWS = {"a": [0.1, 0.5], "b": ["u", "w"]}


def attempt_all(folder: str, seed: str, number: int) -> dict[str, Any]:
    root = Path(folder)
    originals = {name: (root / "run" / name).read_bytes() for name in ("result.json", "run.json", MANIFEST)}

    for how, hand in HANDS.items():  # unchanged they are accepted from every hand, or nothing here would be tried
        read_and_show(root, hand(originals["result.json"]))
        open_and_ask(root, "run.json", how, hand(originals["run.json"]))

    def attempts() -> Iterator[tuple[str, Callable[[], Any]]]:
        for k in range(number):
            rng = random.Random(f"{seed} {k}")
            file = rng.choice(("result.json", "result.json", "run.json", "run.json", "run.json", MANIFEST))
            how = rng.choice([*HANDS])
            name, content = exchange(rng, originals[file])
            content = HANDS[how](content)
            tried = partial(read_and_show, root) if file == "result.json" else partial(open_and_ask, root, file, how)
            yield f"{file} {k} {how}, {name}", partial(tried, content)

    return try_each(attempts())


def read_and_show(root: Path, content: bytes) -> None:
    path = root / "made-up.json"
    path.write_bytes(content)
    report.write([read_result(path)], root / "page.html")


def open_and_ask(root: Path, file: str, how: str, content: bytes) -> None:
    """A run with another file in its place, and where somebody means it, a manifest that says so too or is gone."""
    folder = root / "made-up-run"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(root / "run", folder)
    (folder / file).write_bytes(content)
    if file != MANIFEST and how == "sealed again":
        write_manifest(folder, take_stock(folder, None))
    if file != MANIFEST and how == "as of old":
        (folder / MANIFEST).unlink()
    predict_table(open_run(folder), ROWS, samples=2, new="allow")


def _seal_again(content: bytes) -> bytes:
    """JSON with the seal that belongs to it, written by another hand; what is no JSON as it is."""
    try:
        fields = json.loads(content)
        lines = [f"{json.dumps(key)}: {json.dumps(each)},\n" for key, each in fields.items() if key != SEAL]
    except (ValueError, AttributeError, RecursionError):
        return content
    body = ("{\n" + "".join(lines)).encode()
    return body + f'"{SEAL}": "{hashlib.sha256(body).hexdigest()}"\n}}\n'.encode()


def _make_old(content: bytes) -> bytes:
    """JSON without a seal, as of the version that had none."""
    try:
        fields = json.loads(content)
        return json.dumps({**{key: each for key, each in fields.items() if key != SEAL}, "version": 1}).encode()
    except (ValueError, TypeError, AttributeError, RecursionError):
        return content


HANDS: dict[str, Callable[[bytes], bytes]] = {
    "as it is": lambda content: content,
    "sealed again": _seal_again,
    "as of old": _make_old,
}


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
