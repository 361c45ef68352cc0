"""A job for a process that may be killed, and how it ended."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Job:
    """A call `module:function` with arguments that JSON knows, and what shall go wrong meanwhile.

    With `command` it is the console instead, with these arguments, in an interpreter of its own that reports nothing.

    `fault` is for the shim; `signal_after` is a signal's number and seconds after the call began; `memory` is how many
    bytes it may take beyond what the process has. `separate` asks for a newly started interpreter, not a fork.
    """

    call: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    fault: dict[str, Any] | None = None
    signal_after: tuple[int, float] | None = None
    timeout: float = 60.0
    memory: int | None = None
    separate: bool = False
    command: list[str] | None = None
    within: str | None = None  # the folder in which it begins
    audit: bool = False  # whether code that is run, and processes that are started, are reported

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Job:
        content = json.loads(text)
        if content["signal_after"] is not None:
            content["signal_after"] = tuple(content["signal_after"])
        return cls(**content)


@dataclass
class Ending:
    """How a job ended: exit code, negative for a signal; what it returned, raised, saved, ran and put on the screen."""

    exit: int = 0
    hung: bool = False
    seconds: float = 0.0
    took: float = 0.0  # seconds of the call alone
    value: Any = None
    error: dict[str, Any] | None = None  # type, message, doxa: whether it is one of Doxa's
    saved: list[tuple[str, str, str]] = field(
        default_factory=list
    )  # saving or saved, a file's name and digest; and what `listen` hears
    calls: int = 0  # that write, as the shim counted
    executed: list[str] = field(default_factory=list)
    screen: str = ""

    @property
    def finished(self) -> bool:
        """Whether the call came to its end and returned."""
        return self.exit == 0 and self.error is None and not self.hung
