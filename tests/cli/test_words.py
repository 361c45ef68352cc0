"""Words, numbers and files of settings beyond all bounds are refused input or wrong usage, never a fault of Doxa."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from doxa.errors import BadInput
from doxa_cli.settings import merge_settings

from .small import TINY, Command, houses, write

DIGITS = 5_000 * "9"


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "a\0.csv", "--target", "y"),
        ("fit", "two_moons", "--out", "a\0b"),
        ("fit", "two_moons", "--config", "\0"),
        ("judge", "a\0b"),
        ("report", "a", "--out", "b\0"),
        ("predict", "run", "a\ud800.csv"),
        ("data", "show", "\0"),
        ("search", "sphere", "--out", "\0"),
    ],
)
def test_a_nul_or_half_a_character_in_an_argument(arguments: tuple[str, ...], doxa: Command) -> None:
    ended = doxa(*arguments)
    assert ended.code == 2
    assert "it holds a NUL or half a character" in ended.message


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "two_moons", "--target", "\udcff"),
        ("fit", "two_moons", "--drop", "\udcff"),
        ("fit", "two_moons", "--net", "\udcff"),
        ("fit", "two_moons", "--set", "target=\udcff"),
        ("fit", "two_moons", "--set", "epochs=0x" + 5_000 * "f"),
        ("fit", "two_moons", "--set", f"seed={DIGITS}"),
        ("fit", "two_moons", "--set", "seed=0x" + 5_000 * "f"),
        ("fit", "two_moons", "--set", f"net={3_000 * '['}"),
        ("fit", "two_moons", "--set", "net." + 100_000 * "a."),
        ("fit", "two_moons", "--set", "drop=[1979-05-27]"),
        ("fit", "two_moons", "--set", "epochs={a=1}"),
        ("fit", "two_moons", "--learner", "variational", "--prior", f"gaussian:{2_000 * '('}{2_000 * ')'}"),
        ("fit", "two_moons", "--kl-weight", f"annealed:of={500 * 'annealed(of='}{500 * ')'}"),
        ("fit", "two_moons", "--learner", "variational", "--net", f"mlp:{2**58}", "-q"),
        ("fit", "two_moons", "--learner", "variational", "--posterior", "mean_field:scale=1e308", "-q"),
        ("fit", "two_moons", "--learner", "point", "--optimiser", "adamw:betas=()", "-q"),
        ("fit", "two_moons", "--encoding", "\udcff", "--target", "x"),
    ],
)
def test_a_setting_that_is_no_text_or_no_number(arguments: tuple[str, ...], doxa: Command) -> None:
    ended = doxa(*arguments)
    assert ended.code == 1
    assert len([line for line in ended.err.splitlines() if line.startswith("doxa: ")]) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "two_moons", "--epochs", DIGITS),
        ("fit", "two_moons", "--seed", DIGITS),
        ("predict", "run", "t.csv", "--samples", str(2**63)),
        ("attack", "run", "--rows", str(2**70)),
        ("demo", "--seeds", str(2**64)),
    ],
)
def test_a_number_that_nobody_counts_to(arguments: tuple[str, ...], doxa: Command) -> None:
    ended = doxa(*arguments)
    assert ended.code == 2
    assert len(ended.message) < 1_100


@pytest.mark.parametrize(
    ("content", "expected_text"),
    [
        (b"net = " + 3_000 * b"[", "is not TOML .*nested too deeply"),
        (b"net = " + 3_000 * b"{a=", "is not TOML .*nested too deeply"),
        (b"net" + 2_000 * b".a" + b" = 1", "is not TOML .*a name has more than 64 parts"),
        (b"net" + 60 * b".a" + b" = 1", "the setting net is a table; expected text, a number"),
        (b'drop = ["a", ["b"]]', "the setting drop holds a list of a list; expected names"),
        (b"epochs = 0x" + 4_000 * b"f", "the setting epochs lies beyond"),
        (b"epochs = " + 4_400 * b"9", "is not TOML"),
        (b"epochs = 1979-05-27", "the setting epochs is a date"),
        (b"lr = 07:32:00", "the setting lr is a time"),
        (b"target = 1979-05-27T07:32:00Z", "the setting target is a datetime"),
        (b'target = "a\\u0000b"', r"the setting target is no text: 'a\\x00b'"),
        (b'out = "a\\u0000b"', "the setting out is no text"),
        (b"target = 'gr\xf6sse'", "is not TOML .*utf-8"),
        (b"#" + 2**20 * b"-", "holds more than 1,048,576 bytes"),
        (b"learner = nan", "there is no learner 'nan'"),
    ],
)
def test_a_settings_file_beyond_all_bounds(content: bytes, expected_text: str) -> None:
    from doxa.runs import Plan

    Path("a.toml").write_bytes(content)
    with pytest.raises(BadInput, match=expected_text):
        Plan.from_settings(merge_settings(Path("a.toml"), [], {})).require_used()


def test_a_device_a_pipe_and_a_folder_are_no_settings_file(doxa: Command) -> None:
    os.mkfifo("pipe.toml")
    for name, expected_text in (
        ("/dev/zero", "is a device"),
        ("pipe.toml", "is a named pipe"),
        (".", "is a folder"),
        ("a" * 300, "File name too long"),
    ):
        ended = doxa("fit", "two_moons", "--config", name)
        assert ended.code == 1
        assert expected_text in ended.message


def test_settings_come_through_a_pipe_that_was_handed_over() -> None:
    reading, writing = os.pipe()
    with open(writing, "w") as file:
        file.write("epochs = 7\n")
    assert merge_settings(Path(f"/dev/fd/{reading}"), [], {}) == {"epochs": 7}
    os.close(reading)


def test_a_table_whose_name_is_no_utf_8_is_learned_from(doxa: Command) -> None:
    path = write(Path(os.fsdecode(b"caf\xe9.csv")), houses())
    ended: Any = doxa("fit", path, "--target", "price", "--out", "run", *TINY, "-q")
    assert ended.code == 0, ended.err
    assert doxa("report", "run", "-q").code == 0
