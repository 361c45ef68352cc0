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
from doxa_bench import comparison
from doxa_bench.contenders import TABLE
from doxa_bench.net_kinds import BATCH, KINDS, split_case
from doxa_bench.peak_memory import STEPS
from doxa_bench.settings import BenchSettings
from doxa_bench.tables import NOT_INSTALLED, BenchTable

CASES = {"mlp1200": ("shared gaussian", "shared scale_mixture", "local gaussian", "flipout gaussian")}


def measure(settings: BenchSettings) -> Iterator[dict[str, Any]]:
    if settings.device == "cpu" and not Path("/proc/self/clear_refs").exists():
        raise BadInput("memory is counted as Linux counts it, and this is another system; ask with --device cuda")
    result: dict[str, Any] = {
        "settings": {"batch": BATCH, "steps": STEPS},
        "steps": {},
        "rivals": {},
        "missing": {},
        "libraries": comparison.describe_all_libraries(),
    }
    for kind, learners in CASES.items():
        selected_learners = [learner_name for learner_name in learners if settings.wants(f"{kind} {learner_name}")]
        if not selected_learners:
            continue
        base = growth_in_subprocess(kind, "plain", settings)
        for learner_name in selected_learners:
            case = f"{kind} {learner_name}"
            result["steps"][case] = compare(base, growth_in_subprocess(kind, learner_name, settings))
            settings.say(f"{case}: {result['steps'][case]['ratio']:.2f} times the memory")
            yield result
        for learner_name in selected_learners:
            case, noise = f"{kind} {learner_name}", learner_name.removesuffix(" gaussian")
            for name, library in TABLE.items() if noise in comparison.NOISES else ():
                if noise not in library.noises or library.version is None:
                    reason = NOT_INSTALLED if noise in library.noises else f"has no {noise} noise"
                    result["missing"].setdefault(case, {})[name] = reason
                    continue
                try:
                    library_bytes = growth_in_subprocess(kind, f"{learner_name}, {name}", settings)
                except subprocess.CalledProcessError as error:
                    result["missing"].setdefault(case, {})[name] = f"fails: {error.stderr.strip().splitlines()[-1]}"
                    continue
                result["rivals"].setdefault(case, {})[name] = compare(base, library_bytes)
                settings.say(f"{case}, {name}: {library_bytes / base:.2f} times the memory")
                yield result


def growth_in_subprocess(kind: str, case: str, settings: BenchSettings) -> int:
    """The growth in a process of its own."""
    settings.progress(f"{kind} {case}")
    command = [sys.executable, "-m", "doxa_bench.peak_memory", kind, case, settings.device]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])


def compare(plain_bytes: int, belief_bytes: int) -> dict[str, float]:
    return {"ratio": belief_bytes / plain_bytes, "plain_mb": plain_bytes / 1e6, "belief_mb": belief_bytes / 1e6}


def show(result: dict[str, Any]) -> list[BenchTable]:
    rows = [
        (*split_case(case), f"{r['plain_mb']:.0f}", f"{r['belief_mb']:.0f}", f"{r['ratio']:.2f}")
        for case, r in result["steps"].items()
    ]
    headers = ("net", "learned with", "plain, MB", "belief, MB", "ratio")
    doxa_table = BenchTable("Peak memory of learning, times that of the plain net", headers, rows, 2)
    columns = {kind: KINDS[kind].title for kind in CASES}
    library_table = comparison.comparison_table(
        "Peak memory in each library, times that of the plain net", result, columns, "{kind} {noise} gaussian"
    )
    return [doxa_table] if library_table is None else [doxa_table, library_table]
