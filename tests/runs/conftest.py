"""A finished run for each module, learned by its `PLAN` if it has one, and a copy of it for each test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from for_runs import POINT, learned


@pytest.fixture(scope="module")
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return learned(tmp_path_factory.mktemp("runs") / "r", getattr(request.module, "PLAN", POINT)).folder


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "r")
