"""Names made of anything are shown, not obeyed; narrow terminals, closed pipes and lost colours break nothing."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from doxa_cli.terminal import print_table, printable, truncated

from .small import TINY, Command, flowers, houses, started, write

ESCAPE = "\x1b[31mred\x1b]0;title\x07"
HOSTILE = [
    "<script>alert(1)</script>",
    "[bold red]loud[/bold red]",
    ESCAPE,
    'a "quoted, name"',
    ":boom: 😀👩‍👩‍👧",
    "\u202etxt.exe",
    "漢字" * 30,
    "x" * 10_000,
]


def on_a_terminal(*arguments: object, **environment: str) -> tuple[int, str]:
    """Run a command whose stdout is a terminal; its exit code and all that it printed there."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "doxa_cli", *map(str, arguments)]
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "TERM": "xterm-256color", **environment}
    process = subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL, env=settings)
    os.close(theirs)
    parts = []
    try:
        while part := os.read(ours, 1 << 16):
            parts.append(part)
    except OSError:  # how Linux says that the other side is closed
        pass
    os.close(ours)
    return process.wait(), b"".join(parts).decode()


@pytest.mark.parametrize("name", HOSTILE)
def test_text_from_elsewhere_is_made_harmless(name: str) -> None:
    line = printable(name)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e]", line)
    assert cell_len(truncated(name)) <= 40
    for stored in ("<script>", "[bold red]", "😀", '"quoted'):
        if stored in name:
            assert stored in line


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_column_is_learned_from_and_named(name: str, doxa: Command) -> None:
    rows = houses(40)
    path = write(Path("t.csv"), {name: rows["size"], "town": rows["town"], "price": rows["price"]})
    ended = doxa("fit", path, "--target", "nothing", *TINY)
    assert ended.code == 1
    assert "\x1b" not in ended.err
    assert len(ended.message) < 1200
    assert doxa("fit", path, "--target", "price", "--out", "r", *TINY, "-q").code == 0
    bad = write(Path("bad.csv"), {"town": ["Rio"]})
    message = doxa("predict", "r", bad).message
    assert "lacks the column" in message
    assert not {"\x1b", "\x07", "\u202e"} & {*message}


def test_hostile_classes_and_files_are_shown_not_obeyed(doxa: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    names = ("[red]no[/red]", f"{ESCAPE}<b>yes</b>😀")
    path = write(Path(f"[blink]{ESCAPE}'\".csv".replace("\x1b]0;title\x07", "")), flowers(names=names))
    ended = doxa("fit", path, "--target", "kind", "--out", "r", *TINY)
    assert ended.code == 0
    assert "[blink]" in ended.err
    assert "\x1b" not in ended.err + ended.out
    judged = doxa("judge", "r")
    assert "[blink]" in judged.out
    assert all(cell_len(line) <= 60 for line in (ended.out + judged.out).splitlines() if "doxa " not in line)
    assert doxa("report", "r").code == 0
    page = Path("report.html").read_text()
    assert "<b>yes</b>" not in page
    # A pipe gets the names as they are; JSON spells out what a terminal would obey.
    piped = doxa("predict", "r", path, "-q").out
    assert f"p({names[1]})" in piped
    assert "\x1b" not in doxa("predict", "r", path, "-q", "--json").out
    code, output = on_a_terminal("predict", "r", path, "-q")
    assert code == 0
    assert "p([red]no[/red])" in output
    assert "\x1b" not in output


@pytest.mark.parametrize("arguments", [("data", "list"), ("data", "show", "mnist"), ("--help",), ("fit", "--help")])
def test_forty_columns_are_enough(arguments: tuple[str, ...], doxa: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    ended = doxa(*arguments)
    assert ended.code == 0
    assert max(map(cell_len, ended.out.splitlines())) <= 40


def test_columns_that_do_not_fit_are_named_below(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_table("t", ["name", "first", "second", "third"], [("a" * 16, "1" * 12, "2" * 12, "3" * 9)])
    output = capsys.readouterr().out
    assert "222" not in output
    assert "Not shown in 40 columns: second, third." in output
    assert max(map(cell_len, output.splitlines())) <= 40


def test_colours_are_for_terminals_that_want_them() -> None:
    colours = re.compile(r"\x1b\[[0-9;]*(3[0-7]|9[0-7]|38;)[0-9;]*m")
    _, output = on_a_terminal("--help", COLUMNS="100")
    _, plain = on_a_terminal("--help", COLUMNS="100", NO_COLOR="1")
    assert colours.search(output)
    assert not colours.search(plain)
    process = started("--help")
    assert "\x1b" not in process.communicate()[0]


def test_a_reader_who_leaves_early_is_no_fault() -> None:
    processes = [started(*arguments) for arguments in (("data", "list"), ("data", "list", "--json"))]
    for process in processes:
        assert process.stdout
        process.stdout.close()
    for process in processes:
        assert process.stderr
        assert process.stderr.read() == ""
        assert process.wait() == 141
