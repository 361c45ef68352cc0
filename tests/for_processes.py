"""A process that has imported Doxa, done nothing with it, and forks for every script: importing torch takes seconds."""

from __future__ import annotations

import atexit
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

SECONDS = 120  # after which a script that hangs is ended


@functools.cache
def _server() -> subprocess.Popen[str]:
    """Begun when it is first needed; it ends with the process that it serves."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, __file__]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    atexit.register(server.communicate)
    return server


def run_script(
    script: str, *arguments: object, environment: Mapping[str, str], check: bool = True
) -> subprocess.CompletedProcess[str]:
    """What `python -c script …` does in an environment, once it has imported Doxa."""
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    with tempfile.TemporaryDirectory() as folder:
        words = [str(word) for word in arguments]
        print(json.dumps([script, words, dict(environment), folder]), file=server.stdin, flush=True)
        code = int(server.stdout.readline())
        out, err = ((Path(folder) / name).read_text(encoding="utf-8") for name in ("out", "err"))
    ended = subprocess.CompletedProcess(["python", "-c", script, *words], code, out, err)
    if check:
        assert code == 0, err
    return ended


def _run_and_exit(script: str, arguments: list[str], environment: dict[str, str], folder: str) -> NoReturn:
    """In a fork: as Python itself would run it."""
    signal.alarm(SECONDS)
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for descriptor, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(Path(folder) / name, os.O_WRONLY | os.O_CREAT), descriptor)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = ["-c", *arguments]
        code = _exit_code(script)
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _exit_code(script: str) -> int:
    try:
        exec(compile(script, "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _serve() -> None:
    for line in sys.stdin:
        request: list[Any] = json.loads(line)
        process = os.fork()
        if process == 0:
            _run_and_exit(*request)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)


if __name__ == "__main__":
    import doxa  # noqa: F401

    _serve()
