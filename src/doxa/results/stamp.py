"""What every result says of itself: settings, seeds, versions, device, commit and time."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from doxa.version import VERSION


def stamp(settings: dict[str, Any], seeds: Sequence[int], started: float) -> dict[str, Any]:
    """The provenance of a result; `started` is a reading of time.perf_counter."""
    return {
        "settings": settings,
        "seeds": list(seeds),
        "versions": {
            "doxa": VERSION,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "device": torch.cuda.get_device_name()
        if torch.cuda.is_available()
        else f"CPU, {torch.get_num_threads()} threads",
        "commit": _git_commit(),
        "seconds": round(time.perf_counter() - started, 1),
    }


def _git_commit() -> str | None:
    """That of the tree the code lies in; DOXA_COMMIT tells it where the code was copied without its history."""
    if commit := os.environ.get("DOXA_COMMIT"):
        return commit
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parent,
        )
        return described.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
