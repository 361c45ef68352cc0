"""Another process that has the lock of a folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HOLD = """
import sys
from pathlib import Path
from doxa.storage.lock import folder_lock
with folder_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def hold_lock(folder: Path) -> subprocess.Popen[str]:
    """Another process that has the lock of a folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    return process
