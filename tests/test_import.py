"""Importing Doxa costs torch, numpy and safetensors, and nothing more."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {"sklearn", "scipy", "matplotlib", "pandas", "typer", "rich", "PIL", "torchmetrics", "IPython", "hypothesis"}

SCRIPT = """
import json, sys, torch, numpy
before = set(sys.modules)
import doxa
print(json.dumps(sorted({name.partition(".")[0] for name in set(sys.modules) - before})))
"""


@pytest.fixture(scope="module")
def imported() -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", SCRIPT]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_importing_doxa_warns_of_nothing(imported) -> None:
    """Warnings are errors there, and nothing is printed."""
    assert imported.returncode == 0, imported.stderr
    assert imported.stderr == ""


def test_importing_doxa_imports_nothing_heavy(imported) -> None:
    modules = set(json.loads(imported.stdout))
    assert "doxa" in modules
    assert not modules & HEAVY
    # Besides itself and the standard library, only what it says.
    assert modules - set(sys.stdlib_module_names) <= {"doxa", "doxa_settings", "safetensors", "torch", "numpy"}
