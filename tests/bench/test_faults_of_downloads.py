"""The campaign sees downloads that wait without end, or go where they must not."""

from __future__ import annotations

import random
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from doxa_bench.faults import attempts
from doxa_bench.faults.kinds import servers


class First(random.Random):
    """Chooses what comes first."""

    def choice(self, options: Any) -> Any:
        return options[0]


def plain(file: Any, target: Path, **_: Any) -> None:
    """What follows wherever it is sent, and waits for whatever comes."""
    with urllib.request.urlopen(file.url) as response:
        target.write_bytes(response.read())


@pytest.mark.parametrize(
    ("name", "problems"),
    [
        ("stands still", ["hung"]),
        ("never ends in pieces", ["hung"]),
        (servers.FORBIDDEN, ["silent"]),
        ("sends elsewhere", []),
    ],
)
def test_plain_downloads_are_counted(
    name: str, problems: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "MEMORY", 1 << 40)
    tries = [(name, partial(servers.fetch, tmp_path / "a", name, First(0)))]
    assert attempts.try_each(tries)["failures"] == []
    monkeypatch.setattr(attempts, "SECONDS", 0.5)
    monkeypatch.setattr(servers, "download", plain)
    assert [problem for problem, _ in attempts.try_each(tries)["failures"]] == problems


def test_a_download_past_its_deadline_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "DEADLINE", -servers.SLACK)
    monkeypatch.setattr(servers, "download", plain)
    done = attempts.try_each([("good", partial(servers.fetch, tmp_path / "a", servers.GOOD, First(0)))])
    assert [problem for problem, _ in done["failures"]] == ["hung"]
