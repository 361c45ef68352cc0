"""What takes longer to import than a process that is killed is left."""

from __future__ import annotations

import time
from pathlib import Path

time.sleep(1.2)


def write(folder: str) -> None:
    (Path(folder) / "written").touch()
    time.sleep(60)
