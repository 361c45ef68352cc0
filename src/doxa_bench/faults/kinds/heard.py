"""What the processes of a case have said of their checkpoints, and what is not true of it afterwards."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from doxa.engine.checkpoint import CHECKPOINT, PREVIOUS
from doxa.runs.manifest import MANIFEST
from doxa_bench.faults.processes.jobs import Ending
from doxa_bench.faults.processes.shim import folder_digests


@dataclass
class Heard:
    """Checkpoints by the names of their files: what may be the newest, and the units of all that were put in place."""

    digests: dict[str, set[str]] = field(default_factory=dict)
    units: dict[str, list[int]] = field(default_factory=dict)
    # Of the last process alone: where it went on, what it has done since, and where its newest file stands.
    resumed: dict[str, int] = field(default_factory=dict)
    done: dict[str, int] = field(default_factory=dict)
    kept: dict[str, int] = field(default_factory=dict)

    def hear(self, ending: Ending) -> list[str]:
        """Take in what a process said; in words, what was saved before and was done again."""
        before = {name: units[-1] for name, units in self.units.items()}
        again: dict[str, str] = {}
        coming: dict[str, int] = {}
        self.resumed, self.done, self.kept = {}, {}, {}
        for event, name, what in ending.saved:
            if Path(name).name != CHECKPOINT:
                continue
            if event == "saved":
                self.digests[name] = {what}
                if name in coming:
                    self.kept[name] = coming[name]
                    self.units.setdefault(name, []).append(coming[name])
            elif event == "saving":
                if name in self.digests:
                    self.digests[name].add(what)
            else:
                unit = int(what)
                if unit < before.get(name, 0):
                    again.setdefault(name, f"{name} was saved at unit {before[name]} and gone on with from {unit}")
                {"resumed": self.resumed, "done": self.done, "unit": coming}[event][name] = unit
                if event == "resumed":
                    self.kept[name] = unit
        return [*again.values()]

    def unsaved(self) -> Iterator[str]:
        """What the last process had done when it ended and did not save."""
        for name, unit in self.done.items():
            if unit > self.kept.get(name, 0):
                yield f"unit {unit} was done, and {name} stands at {self.kept.get(name, 0)}"

    def missing(self, folder: Path) -> Iterator[str]:
        """Checkpoints last put in place that are gone, under whatever name, and those before them that are not kept."""
        found = folder_digests(folder)
        for name, digests in self.digests.items():
            if not digests & found:
                yield f"{name} was saved, and is not there"
        for name, units in self.units.items():
            if len(units) > 1 and not (folder / name).with_name(PREVIOUS).is_file():
                yield f"{name} was saved {len(units)} times, and the one before the last is not there"

    def spoil(self, folder: Path, rng: random.Random) -> str | None:
        """Flip a bit of a newest checkpoint that has one before it, from which it is now to go on; its name."""
        for name, units in sorted(self.units.items()):
            newest = folder / name
            if any((parent / MANIFEST).is_file() for parent in newest.parents):  # it is finished, and not gone on with
                continue
            if len(units) > 1 and newest.is_file() and newest.with_name(PREVIOUS).is_file():
                content = bytearray(newest.read_bytes())
                content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
                newest.write_bytes(content)
                units.pop()
                del self.digests[name]
                return name
        return None
