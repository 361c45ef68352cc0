"""The same tables, command lines, settings and results, each to a console of its own."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

from doxa_bench.faults.contract import Case, Outcome, Workshop
from doxa_bench.faults.kinds.inputs.block import RUN, prepare
from doxa_bench.faults.kinds.inputs.command_lines import make_up_line
from doxa_bench.faults.kinds.inputs.made_up import printable
from doxa_bench.faults.kinds.inputs.result_files import exchange
from doxa_bench.faults.kinds.inputs.settings_files import make_up_settings
from doxa_bench.faults.kinds.inputs.tables import make_up_table
from doxa_bench.faults.processes.audit import plant_canary
from doxa_bench.faults.processes.jobs import Job

MEMORY = 6 << 30  # bytes of addresses, most of which the libraries take
KINDS = ("command line", "table", "settings", "result")


class Consoles:
    """One console, begun with something that nobody meant."""

    asks = "the same, each to a console of its own"
    share = 6.0

    def try_case(self, case: Case, workshop: Workshop) -> Outcome:
        rng, outcome = case.rng(), Outcome()
        pristine = workshop.shared("inputs", prepare)
        what = KINDS[case.number % len(KINDS)]
        with workshop.folder() as folder:
            shutil.copytree(pristine, folder / "a" / "b")
            os.mkfifo(folder / "a" / "b" / "fifo")
            plant_canary(folder / "a" / "b")
            line = draw_line(rng, what, folder / "a" / "b")
            job = Job(command=line, timeout=120, within=str(folder / "a" / "b"), memory=MEMORY)
            ending = workshop.run(job)
            outcome.count(f"consoles with a {what}")
            name = f"doxa {' '.join(printable(word, 30) for word in line)}"
            outcome.judge(ending, name)
            outcome.judge_traces(folder, name)
            if ending.exit not in (0, 1, 2, 70) and not ending.hung:
                outcome.fail("tracebacks", f"{name} ended with {ending.exit}: {ending.screen}")
        return outcome


def draw_line(rng: random.Random, what: str, folder: Path) -> list[str]:
    """The words of a console, and the file beside it that they name."""
    if what == "command line":
        return [word.replace("\0", "").encode("utf-8", "ignore").decode() for word in make_up_line(rng)]
    if what == "table":
        (folder / "made-up.csv").write_bytes(make_up_table(rng))
        if rng.random() < 0.5:
            return ["predict", "run", "made-up.csv"]
        return ["fit", "made-up.csv", "--target", "y", "--out", "made-up", *RUN]
    if what == "settings":
        (folder / "made-up.toml").write_bytes(make_up_settings(rng))
        return ["fit", "--config", "made-up.toml", "--set", "source=nowhere.csv"]
    (folder / "made-up.json").write_bytes(exchange(rng, (folder / "run" / "result.json").read_bytes())[1])
    return ["report", "made-up.json", "--out", "page.html"]
