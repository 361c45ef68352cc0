"""Small tables, small runs of them, and a way to run commands."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from doxa_cli.app import main

from .small import TINY, Command, CommandResult, flowers, houses, write


@pytest.fixture
def doxa(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command in this process."""

    def run(*arguments: object) -> CommandResult:
        capsys.readouterr()
        code = main([str(word) for word in arguments])
        return CommandResult(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with houses.csv, and rows.csv that are like them."""
    folder = tmp_path_factory.mktemp("tables")
    write(folder / "houses.csv", houses())
    write(folder / "rows.csv", houses(20, seed=1))
    write(folder / "flowers.csv", flowers())
    return folder


@pytest.fixture(scope="session")
def runs(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with finished runs of houses, flowers and digits."""
    folder = tmp_path_factory.mktemp("runs")
    quick = (*TINY, "--quiet")
    assert main(["fit", str(tables / "houses.csv"), "--target", "price", "--out", str(folder / "houses"), *quick]) == 0
    assert main(["fit", str(tables / "flowers.csv"), "--target", "kind", "--out", str(folder / "flowers"), *quick]) == 0
    images = ("--net", "mlp:8", "--epochs", "2", "--draws", "8", "--quiet")
    assert main(["fit", "digits", "--out", str(folder / "digits"), *images]) == 0
    return folder


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands write to the folder they are run in."""
    data = os.environ.get("DOXA_DATA")
    if data:
        monkeypatch.setenv("DOXA_DATA", str(Path(data).absolute()))
    monkeypatch.chdir(tmp_path)
