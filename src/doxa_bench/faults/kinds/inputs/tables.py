"""CSV files of any kind: read, taken as data to learn from, and shown to a run."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from doxa.runs import csv_lines, load_training_data, open_run, predict_table
from doxa.runs.folder import SavedRun
from doxa_bench.faults.attempts import Accepted, try_each
from doxa_bench.faults.kinds.inputs.block import Block
from doxa_bench.faults.kinds.inputs.made_up import printable, word

TABLES = Block(
    "tables (CSV) that nobody wrote by hand, to read, learn from and predict", 1.0, "tables", "CSV files", 100
)
ENCODINGS = ("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1")
FORMULAS = ("=", "@", "+", "-", "\t", "\r")  # what a spreadsheet would compute


def attempt_all(folder: str, seed: str, number: int) -> dict[str, Any]:
    run, path = open_run(Path(folder) / "run"), Path(folder) / "made-up.csv"

    def attempts() -> Iterator[tuple[str, Callable[[], Any]]]:
        for k in range(number):
            rng = random.Random(f"{seed} {k}")
            encoding = rng.choice(ENCODINGS)
            content = make_up_table(rng, encoding)
            name = f"CSV {k} ({printable(content[:40].decode('latin-1'))})"
            yield name, partial(read_table, rng, run, path, content, encoding)
        yield "formulas in a CSV file that is written", partial(write_formulas, random.Random(seed))

    return try_each(attempts())


def read_table(rng: random.Random, run: SavedRun, path: Path, content: bytes, encoding: str) -> None:
    path.write_bytes(content)
    encoding = encoding if rng.random() < 0.9 else rng.choice(ENCODINGS)
    if rng.random() < 0.5:
        load_training_data(str(path), rng.choice(("y", "y", "a", "")), encoding=encoding, hold_out=0.3)
    else:
        columns = predict_table(run, str(path), samples=2, new=rng.choice(("error", "allow")), encoding=encoding)
        list(csv_lines(columns))


def write_formulas(rng: random.Random) -> None:
    """Words that a spreadsheet would compute do not begin a cell of what Doxa writes."""
    labels = np.array([*(f"{sign}1+1" for sign in FORMULAS), "plain"], dtype=object)
    columns = {"label": labels, "unlike": np.zeros(len(labels), bool)}
    for row in csv.reader(io.StringIO("\r\n".join(csv_lines(columns)), newline="")):
        if row[0].startswith(FORMULAS):
            raise Accepted(f"a cell begins with {row[0]!r}")


def make_up_table(rng: random.Random, encoding: str = "utf-8") -> bytes:
    """A few columns and rows, most of them as they should be; or bytes at random."""
    what = rng.random()
    if what < 0.05:
        return rng.randbytes(rng.randrange(2000))
    names = rng.sample(["a", "b", "y"], 3) + [word(rng) for _ in range(rng.choice((0, 0, 0, 0, 0, 1, 3)))]
    if rng.random() < 0.1:
        names[rng.randrange(len(names))] = rng.choice([*names, word(rng)])
    delimiter, ending = rng.choice((*",,,,,,", ";", "\t", "|", " ")), rng.choice(("\n", "\n", "\n", "\r\n", "\r"))
    hostile = rng.choice((0.0, 0.01, 0.05, 0.5))
    lines = [names, *([_cell(rng, name, hostile) for name in names] for _ in range(rng.choice((0, 1, 5, 40, 40))))]
    if rng.random() < 0.2:
        rng.choice(lines).append(word(rng))
    text = ending.join(delimiter.join(_quoted(rng, cell, delimiter) for cell in line) for line in lines)
    content = (text + rng.choice((ending, ""))).encode(encoding, errors=rng.choice(("replace", "ignore")))
    if rng.random() < 0.1:
        position = rng.randrange(len(content) + 1)
        content = content[:position] + rng.randbytes(rng.randrange(1, 4)) + content[position:]
    return content[: rng.randrange(len(content) + 1)] if rng.random() < 0.1 else content


def _cell(rng: random.Random, name: str, hostile: float) -> str:
    if rng.random() < hostile:
        return word(rng)
    return rng.choice("uvw") if name == "b" else f"{rng.random():.3f}"


def _quoted(rng: random.Random, cell: str, delimiter: str) -> str:
    if delimiter in cell or '"' in cell or "\n" in cell:
        return cell if rng.random() < 0.3 else '"' + cell.replace('"', '""') + '"'
    return cell
