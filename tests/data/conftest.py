"""No test of data sees the user's cache, or reaches beyond this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from doxa import data
from for_downloads import Server

LOADED: dict[str, object] = {}


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache: the folder in it where data sets belong."""
    base = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(base))
    monkeypatch.setenv("no_proxy", "*")
    return base / "doxa" / "data"


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections that break are followed by others at once."""
    monkeypatch.setattr(sys.modules["doxa.data.download"], "PAUSE", 0.0)


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read whatever their SHA-256 is."""
    monkeypatch.setattr("doxa.data.verified.require_known", lambda *_: None)


@pytest.fixture
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made_up: None) -> Path:
    """An empty folder for made-up files, which DOXA_DATA names."""
    monkeypatch.setenv("DOXA_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def real() -> Callable[[str], list[Path]]:
    """The files of a real set in DOXA_DATA; the test skips without them."""

    def files(name: str) -> list[Path]:
        paths = data.path(name)
        if paths and not os.environ.get("DOXA_DATA"):
            pytest.skip("DOXA_DATA is not set: no real data")
        if not all(path.is_file() for path in paths):
            pytest.skip(f"DOXA_DATA holds no {name}")
        return paths

    return files


@pytest.fixture
def loads(real: Callable[[str], list[Path]]) -> Callable[[str], object]:
    """Load a real set, once for all the tests that only look at it."""

    def load(name: str) -> object:
        real(name)
        if name not in LOADED:
            LOADED[name] = data.load(name)
        return LOADED[name]

    return load


@pytest.fixture
def server() -> Iterator[Server]:
    """A server on this machine."""
    server_instance = Server()
    yield server_instance
    server_instance.close()
