"""Where cases are tried: a server to run jobs, and folders that are removed afterwards."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from doxa_bench.faults.processes.jobs import Ending, Job
from doxa_bench.faults.processes.server import ForkServer

SLACK = 30  # seconds beyond a job's own limit


class LocalWorkshop:
    """A workshop on this machine: one server, begun when it is first needed."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._server: ForkServer | None = None
        self._shared: dict[str, Any] = {}
        self.root = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="doxa-faults-")))

    def run(self, job: Job) -> Ending:
        if self._server is None:
            home = self.root / "home"
            home.mkdir(exist_ok=True)
            self._server = self._stack.enter_context(ForkServer({"HOME": str(home), **_caches()}))
        return self._server.run(job)

    @contextmanager
    def folder(self) -> Iterator[Path]:
        path = Path(tempfile.mkdtemp(dir=self.root))
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def shared(self, name: str, make: Callable[..., Any]) -> Any:
        if name == "folder":
            return self.root
        if name not in self._shared:
            self._shared[name] = make(self)
        return self._shared[name]

    def __enter__(self) -> LocalWorkshop:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()


def _caches() -> dict[str, str]:
    """Compiled kernels are those that are there already."""
    return {"XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")}
