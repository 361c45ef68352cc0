"""Code that is run and processes that are started, as Python's audit events tell."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

PROCESSES = (
    "os.system",
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.spawn",
    "os.startfile",
    "subprocess.Popen",
    "pty.spawn",
)
FOREIGN = ("pickle.find_class", "ctypes.dlopen")
CODE = ("compile", "exec", "import")
CANARY = "doxa_canary"  # in names that an attacker would have evaluated
IMPORTED = f"{CANARY}-was-imported"


def watch_execution(report: Callable[[str], None]) -> None:
    """Report what is executed from now on, in this process, for good."""

    _warm_up()

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        # Doxa's own imports are code that is run too, and dataclasses compile text: of these the canary is looked for.
        if event in (*PROCESSES, *FOREIGN) or (event in CODE and CANARY in str(arguments)):
            report(f"{event} {str(arguments)[:200]}")

    sys.addaudithook(hook)
    sys.meta_path.insert(0, Canary(report))


class Canary:
    """A package of the canary's name, with any module in it; imports by `importlib` raise no audit event."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.report = report

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.split(".")[0] == CANARY else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """As Python does."""

    def exec_module(self, module: ModuleType) -> None:
        self.report(f"import of {module.__name__}")


def plant_canary(folder: Path) -> None:
    """Put a module where a console begins that leaves a file when it is imported."""
    (folder / f"{CANARY}.py").write_text(f"open({str(folder / IMPORTED)!r}, 'w')\n", encoding="utf-8")


def traces(folder: Path) -> list[str]:
    """Files below a folder that only code from hostile input makes."""
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.name in (CANARY, IMPORTED)]


def _warm_up() -> None:
    """What Doxa itself starts processes for, once in each process: to know its kernels and its processor."""
    from doxa import kernels

    kernels.fingerprint()
    platform.processor()
