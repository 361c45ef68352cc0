"""A process that has imported Doxa and forks for every job, so that a kill costs a tenth of a second."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from doxa_bench.faults.processes.child import PRELOADED, limit_memory, preload, work_and_exit
from doxa_bench.faults.processes.jobs import Ending, Job

ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "COLUMNS": "100",
    "DOXA_COMMIT": "campaign",
}
CHILD = "from doxa_bench.faults.processes.child import main; main()"
SCREEN = 4000  # characters kept of what a job put on the screen


@dataclass
class Reports:
    """What a job reports, line by line, as it comes in."""

    descriptor: int
    ending: Ending
    begun: bool = False
    open: bool = True
    rest: bytes = field(default=b"", repr=False)

    def read(self, seconds: float) -> None:
        """Take in what is there, or comes within so many seconds."""
        if not select.select([self.descriptor], [], [], max(0.0, seconds))[0]:
            return
        data = os.read(self.descriptor, 1 << 16)
        self.open = bool(data)
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            for name, content in json.loads(line).items():
                if name == "begun":
                    self.begun = True
                elif name in ("saved", "executed"):
                    getattr(self.ending, name).append(content)
                else:
                    setattr(self.ending, name, content)


def run_job(job: Job) -> Ending:
    """Fork, or start an interpreter, for a job, and see how it ends; nothing that it started outlives it."""
    ending, start = Ending(), time.monotonic()
    ours, theirs = os.pipe()
    with tempfile.TemporaryFile() as screen:
        process = (
            _spawn(job, theirs, screen) if job.separate or job.command is not None else _fork(job, ours, theirs, screen)
        )
        os.close(theirs)
        try:
            ending.exit = _attend(job, process, Reports(ours, ending, begun=job.command is not None))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process, signal.SIGKILL)
            os.close(ours)
        screen.seek(0)
        ending.screen = screen.read().decode(errors="replace")[-SCREEN:]
    ending.seconds = time.monotonic() - start
    return ending


def _fork(job: Job, ours: int, theirs: int, screen: IO[bytes]) -> int:
    process = os.fork()
    if process:
        return process
    os.setsid()
    os.close(ours)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (screen.fileno(), 1), (screen.fileno(), 2)):
        os.dup2(source, target)
    work_and_exit(job, theirs)
    return 0


def _spawn(job: Job, theirs: int, screen: IO[bytes]) -> int:
    command = [sys.executable, "-c", CHILD, job.to_json(), str(theirs)]
    if job.command is not None:
        command = [sys.executable, "-m", "doxa_cli", *job.command]
    started = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=screen,
        stderr=screen,
        cwd=job.within,
        pass_fds=(theirs,),
        start_new_session=True,
        preexec_fn=None if job.command is None or job.memory is None else lambda: limit_memory(job.memory or 0),
    )
    started.returncode = 0  # waited for below, by its number
    return started.pid


def _attend(job: Job, process: int, reports: Reports) -> int:
    """Read reports until it has ended, with the signal in its time; the exit code, negative for a signal."""
    end, strike = time.monotonic() + job.timeout, None
    while True:
        now = time.monotonic()
        if job.signal_after is not None and strike is None and reports.begun:
            strike = now + job.signal_after[1]
        if strike is not None and now >= strike and job.signal_after is not None:
            os.kill(process, job.signal_after[0])
            strike = float("inf")
        if now >= end:
            reports.ending.hung = True
            os.kill(process, signal.SIGKILL)
            end = float("inf")
        if reports.open:
            reports.read(min(0.02, (strike or now + 1) - now))
        else:
            time.sleep(0.002)
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            while reports.open and select.select([reports.descriptor], [], [], 0)[0]:
                reports.read(0)
            return os.waitstatus_to_exitcode(status)


def main() -> None:
    """Answer jobs, a line each, until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    preload(PRELOADED)
    import torch

    torch.set_num_threads(1)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        answers.write(json.dumps(asdict(run_job(Job.from_json(line)))) + "\n")
        answers.flush()


class ForkServer:
    """The server as seen from outside: jobs go in, endings come out."""

    def __init__(self, environment: dict[str, str]) -> None:
        command = [sys.executable, "-c", "from doxa_bench.faults.processes.server import main; main()"]
        paths = [str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")]
        everything = {**os.environ, **ENVIRONMENT, **environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=everything,
            start_new_session=True,
        )
        self._read()

    def run(self, job: Job) -> Ending:
        assert self.process.stdin is not None
        self.process.stdin.write(job.to_json() + "\n")
        self.process.stdin.flush()
        return Ending(**json.loads(self._read()))

    def _read(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the server of the campaign ended with {self.process.wait()}")
        return line

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
