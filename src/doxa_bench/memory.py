"""How much memory does learning a belief take, as a ratio to the same plain net?

Each case runs in a process of its own: the growth of the peak, resident or on the GPU, from before the net exists to
after five steps on 128 rows.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from doxa.errors import BadInput
from doxa_bench import beside
from doxa_bench.contenders import TABLE
from doxa_bench.growth import STEPS
from doxa_bench.kinds import BATCH, KINDS, shown
from doxa_bench.settings import Settings
from doxa_bench.tables import NOT_INSTALLED, Table

CASES = {"mlp1200": ("shared gaussian", "shared scale_mixture", "local gaussian", "flipout gaussian")}


def ask(settings: Settings) -> Iterator[dict[str, Any]]:
    if settings.device == "cpu" and not Path("/proc/self/clear_refs").exists():
        raise BadInput("memory is counted as Linux counts it, and this is another system; ask with --device cuda")
    found: dict[str, Any] = {
        "settings": {"batch": BATCH, "steps": STEPS},
        "steps": {},
        "rivals": {},
        "missing": {},
        "libraries": beside.known(),
    }
    for kind, learners in CASES.items():
        wanted = [how for how in learners if settings.wants(f"{kind} {how}")]
        if not wanted:
            continue
        base = measured(kind, "plain", settings)
        for how in wanted:
            case = f"{kind} {how}"
            found["steps"][case] = compared(base, measured(kind, how, settings))
            settings.say(f"{case}: {found['steps'][case]['ratio']:.2f} times the memory")
            yield found
        for how in wanted:
            case, noise = f"{kind} {how}", how.removesuffix(" gaussian")
            for name, library in TABLE.items() if noise in beside.NOISES else ():
                if noise not in library.noises or library.version is None:
                    reason = NOT_INSTALLED if noise in library.noises else f"has no {noise} noise"
                    found["missing"].setdefault(case, {})[name] = reason
                    continue
                try:
                    own = measured(kind, f"{how}, {name}", settings)
                except subprocess.CalledProcessError as error:
                    found["missing"].setdefault(case, {})[name] = f"fails: {error.stderr.strip().splitlines()[-1]}"
                    continue
                found["rivals"].setdefault(case, {})[name] = compared(base, own)
                settings.say(f"{case}, {name}: {own / base:.2f} times the memory")
                yield found


def measured(kind: str, case: str, settings: Settings) -> int:
    """The growth in a process of its own."""
    settings.progress(f"{kind} {case}")
    command = [sys.executable, "-m", "doxa_bench.growth", kind, case, settings.device]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])


def compared(base: int, own: int) -> dict[str, float]:
    return {"ratio": own / base, "plain_mb": base / 1e6, "belief_mb": own / 1e6}


def show(found: dict[str, Any]) -> list[Table]:
    rows = [
        (*shown(case), f"{r['plain_mb']:.0f}", f"{r['belief_mb']:.0f}", f"{r['ratio']:.2f}")
        for case, r in found["steps"].items()
    ]
    heads = ("net", "learned with", "plain, MB", "belief, MB", "ratio")
    own = Table("Peak memory of learning, times that of the plain net", heads, rows, 2)
    columns = {kind: KINDS[kind].shown for kind in CASES}
    others = beside.matrix(
        "Peak memory in each library, times that of the plain net", found, columns, "{kind} {noise} gaussian"
    )
    return [own] if others is None else [own, others]
