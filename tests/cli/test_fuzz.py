"""A slice of what nobody would write: refused in words or done, never a fault of Doxa; the same cases every time."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import pytest

from doxa.errors import DoxaError
from doxa.runs import Plan, load_training_data
from doxa_cli.settings import merge_settings

from .fuzz import odd_command, odd_csv, odd_settings
from .small import Command

CASES, COMMANDS = 300, 200


@pytest.mark.filterwarnings("error")
def test_odd_tables_are_read_or_refused() -> None:
    read = 0
    for seed in range(CASES):
        rng = random.Random(f"csv {seed}")
        Path("t.csv").write_bytes(odd_csv(rng))
        with suppress(DoxaError):
            load_training_data("t.csv", rng.choice(["c0", "c1", "y", "a"]), keep_constant=True)
            read += 1
    assert CASES // 10 < read < CASES - CASES // 10


def test_odd_settings_are_taken_or_refused() -> None:
    for seed in range(CASES):
        Path("t.toml").write_bytes(odd_settings(random.Random(f"toml {seed}"), "two_moons"))
        with suppress(DoxaError):
            settings = merge_settings(Path("t.toml"), [], {})
            Plan.from_settings({k: v for k, v in settings.items() if k in Plan.__dataclass_fields__}).require_used()


def test_odd_command_lines_end_with_a_line_and_a_code(doxa: Command) -> None:
    for seed in range(COMMANDS):
        arguments = odd_command(random.Random(f"words {seed}"), ["nothing.csv", "two_moons.csv"], ["nowhere"])
        ended = doxa(*arguments)
        assert ended.code in (0, 1, 2), (seed, arguments, ended.err)
        assert ended.code == 0 or ended.message, (seed, arguments)


def test_odd_command_lines_on_tables_and_runs(doxa: Command, tables: Path, runs: Path) -> None:
    sources = [str(tables / name) for name in ("houses.csv", "flowers.csv", "rows.csv")]
    for seed in range(30):
        arguments = odd_command(
            random.Random(f"command {seed}"), sources, [str(runs / "houses"), str(runs / "flowers")]
        )
        ended = doxa(*arguments)
        assert ended.code in (0, 1, 2), (seed, arguments, ended.err)
        assert "Traceback" not in ended.err
