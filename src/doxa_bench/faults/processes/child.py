"""The process that does a job and may die of it: a fork of the server, or an interpreter of its own."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterable
from typing import Any

from doxa_bench.faults.processes.audit import watch_execution
from doxa_bench.faults.processes.jobs import Job
from doxa_bench.faults.processes.shim import Shim, original_write

# With what these import only when it is needed, and every fork would import anew.
PRELOADED = (
    *("doxa", "doxa.bandits", "doxa.runs", "doxa.search", "doxa_cli.app", "doxa_bench.faults.work"),
    *("doxa.report", "doxa.judge.evidence", "sklearn.impute", "sklearn.covariance", "typer._adapters"),
)


def work_and_exit(job: Job, reports: int) -> None:
    """Do a job, report what it came to, and end without any of the parent's farewells."""
    code = 0
    try:
        _prepare(job)
        shim = _install_shim(job, reports)
        if job.audit:
            watch_execution(lambda event: _report(reports, {"executed": event}))
        _report(reports, {"begun": time.time()})
        try:
            module, _, function = job.call.partition(":")
            call = getattr(importlib.import_module(module), function)
            start = time.perf_counter()
            value = call(**job.arguments)
            took = time.perf_counter() - start
            _report(reports, {"value": value, "took": took, "calls": shim.count if shim else 0})
        except BaseException as error:
            _report(reports, {"error": describe_error(error), "calls": shim.count if shim else 0})
            code = _exit_code(error)
    except BaseException as error:  # what prepares or reports is broken
        _report(reports, {"error": {**describe_error(error), "doxa": False}})
        code = 99
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _exit_code(error: BaseException) -> int:
    """That of the console for an interruption, which is an end like any other; else 0: the report says it all."""
    number = getattr(error, "signal", signal.SIGINT)
    if isinstance(error, KeyboardInterrupt):
        return 128 + int(number)
    return int(error.code) if isinstance(error, SystemExit) and isinstance(error.code, int) else 0


def describe_error(error: BaseException) -> dict[str, Any]:
    """An error as JSON: its kind, its message, and whether it is one that Doxa raises on purpose."""
    from doxa.errors import DoxaError

    expected = isinstance(error, DoxaError | KeyboardInterrupt | SystemExit)
    return {"type": type(error).__name__, "message": str(error)[:2000], "doxa": expected}


def _prepare(job: Job) -> None:
    if job.within is not None:
        os.chdir(job.within)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    import torch

    torch.set_num_threads(1)
    if job.memory is not None:
        with open("/proc/self/statm") as file:
            taken = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        limit_memory(taken + job.memory)


def limit_memory(size: int) -> None:
    """Have this process fail where it asks for more than so many bytes in all."""
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _install_shim(job: Job, reports: int) -> Shim | None:
    if job.fault is None:
        return None
    from doxa_bench.faults.processes.listen import listen

    def heard(*event: str) -> None:
        _report(reports, {"saved": event})

    shim = Shim(**job.fault, saved=heard)
    listen(heard, shim.root)
    shim.install()
    return shim


def _report(descriptor: int, content: dict[str, Any]) -> None:
    data = json.dumps(content).encode() + b"\n"
    while data:
        data = data[original_write(descriptor, data) :]


def main() -> None:
    """Do the job in the first argument, and report to the descriptor in the second."""
    job = Job.from_json(sys.argv[1])
    module, _, function = job.call.partition(":")
    # Before it is said to have begun: or most of what strikes at a random moment strikes imports.
    preload((*PRELOADED, module) if function == "fit_table" else (module,))
    work_and_exit(job, int(sys.argv[2]))


def preload(names: Iterable[str]) -> None:
    """Import what is there of modules."""
    for name in names:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
