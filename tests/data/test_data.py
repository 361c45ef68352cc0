"""The room of data as a whole."""

from __future__ import annotations

import subprocess
import sys

from doxa import data


def test_table_names_every_set() -> None:
    assert set(data.TABLE) == {"mnist", "fashion_mnist", "cifar10", "digits", "curve"}
    assert all(data.TABLE[name] is getattr(data, name) for name in data.TABLE)


def test_importing_the_room_imports_neither_scikit_learn_nor_pillow() -> None:
    code = "import sys, doxa.data; print([m for m in ('sklearn', 'PIL') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
