"""What tests of the site share."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HOOKS = Path(__file__).resolve().parents[2] / "docs" / "hooks"


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Import a hook of the site by name."""
    monkeypatch.syspath_prepend(str(HOOKS))
    before = set(sys.modules)
    yield importlib.import_module
    for name in {path.stem for path in HOOKS.glob("*.py")} - before:
        sys.modules.pop(name, None)
