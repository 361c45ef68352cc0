"""Objectives and nets that processes of their own can import."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor


def slow_sphere(w: Tensor) -> Tensor:
    time.sleep(0.002)
    return (w - 1).square().sum()


def sphere(w: Tensor) -> Tensor:
    return (w - 1).square().sum()


def raises(w: Tensor) -> Tensor:
    raise ValueError("the oven is cold")


class Breaks:
    """A sphere that breaks near its bottom, in one of several ways, until a file says that it is mended."""

    def __init__(self, mended: Path, how: str) -> None:
        self.mended, self.how = mended, how

    def __call__(self, w: Tensor) -> Tensor:
        if self.mended.exists() or float((w - 1).square().sum()) > 0.2:
            return sphere(w)
        if self.how == "raises":
            raise ValueError("the oven is cold")
        return torch.full((3,), torch.nan)


class NoNumber:
    """A sphere that is no number anywhere, from so many calls of a process on, until a file says that it is mended."""

    def __init__(self, mended: Path, calls: int) -> None:
        self.mended, self.calls = mended, calls

    def __call__(self, w: Tensor) -> Tensor:
        self.calls -= 1
        return sphere(w) if self.calls >= 0 or self.mended.exists() else torch.tensor(torch.nan)


class Measure:
    """Cross-entropy that breaks where the net has learned something, until a file says that it is mended."""

    def __init__(self, mended: Path, how: str) -> None:
        self.mended, self.how = mended, how

    def __call__(self, output: Tensor, y: Tensor) -> Tensor:
        loss = torch.nn.functional.cross_entropy(output, y, reduction="none")
        if self.mended.exists() or float(loss.mean()) > 0.62:
            return loss
        if self.how == "raises":
            raise ValueError("the oven is cold")
        return loss.repeat(2) if self.how == "shape" else torch.full_like(loss, torch.nan)


class Deadly:
    """Ends the process that evaluates it, so many times in all: each time leaves a file."""

    def __init__(self, folder: Path, times: int) -> None:
        self.folder, self.times = folder, times

    def __call__(self, w: Tensor) -> Tensor:
        died = len(list(self.folder.iterdir()))
        if died < self.times and float(w[0]) > 0.9 and os.getpid() != int((self.folder.parent / "driver").read_text()):
            (self.folder / str(os.getpid())).touch()
            os.kill(os.getpid(), 9)
        return sphere(w)


class Afflicted:
    """Befalls the process that evaluates it, near the bottom of a sphere, so many times in all: each leaves a mark."""

    def __init__(self, folder: Path, how: str, times: int, leader: int) -> None:
        self.folder, self.how, self.times, self.leader = folder, how, times, leader

    def __call__(self, w: Tensor) -> Tensor:
        if os.getpid() != self.leader and float(sphere(w)) < 0.1 and self._claim():
            befall(self.how)
        return sphere(w)

    def _claim(self) -> bool:
        for k in range(self.times):
            with suppress(FileExistsError), (self.folder / str(k)).open("x") as file:  # one of two at once
                file.write(str(os.getpid()))
                return True
        return False


def befall(how: str) -> None:
    if how == "freezes":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif how == "hangs":
        time.sleep(3600)
    elif how == "exits":
        sys.exit(3)


HELD_DEADLINE = 5.0  # seconds


class Endless:
    """Takes an hour, and says who does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, w: Tensor) -> Tensor:
        (self.folder / str(os.getpid())).touch()
        time.sleep(3600)
        return sphere(w)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for(probe: Any, seconds: float = 60.0) -> Any:
    """What a look finds when it finds something."""
    end = time.monotonic() + seconds
    while not (found := probe()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)
    return found


def lead_orphans(folder: str) -> None:
    """A search that will be killed."""
    from doxa.search import engines, minimise

    minimise(Endless(Path(folder) / "marks"), [0.0], engine=engines.pool(2), size=8, generations=1, progress=False)


def lead_in_background(folder: str) -> None:
    """A search in a thread that nobody waits for, in a process that ends while it is under way."""
    thread = threading.Thread(target=lead_orphans, args=(folder,), daemon=True)
    thread.start()
    wait_for(lambda: len(list((Path(folder) / "marks").iterdir())) == 2)


class Held:
    """A sphere that says who evaluates it, and takes until it is let go."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, w: Tensor) -> Tensor:
        (self.folder / "marks" / str(os.getpid())).touch()
        while not (self.folder / "go").exists():
            time.sleep(0.01)
        return sphere(w)


def lead_held(folder: str, deadline: float | None = None) -> None:
    """A search whose first generation takes until it is let go, and which drops what a lost worker was at."""
    from doxa.search import engines, minimise

    torch.set_num_threads(1)
    engine = engines.pool(1, lost="drop", deadline=deadline)
    keys: dict[str, Any] = {"generations": 12, "size": 32, "checkpoint": Path(folder) / "run", "progress": False}
    try:
        minimise(Held(Path(folder)), [0.0, 0.0, 0.0], engine=engine, **keys)
    except KeyboardInterrupt as error:
        sys.exit(128 + getattr(error, "signal", 0))


def lead_held_to_a_deadline(folder: str) -> None:
    """The same, where workers may not take for ever."""
    lead_held(folder, HELD_DEADLINE)


def freezing_rank(folder: str) -> None:
    """A search by ranks, of which the second stops itself when it has come near."""
    from doxa.search import engines, minimise

    torch.set_num_threads(1)
    objective = Afflicted(Path(folder) / "marks", "freezes", 1, os.getpid() if os.environ["RANK"] == "0" else -1)
    keys: dict[str, Any] = {"generations": 12, "size": 32, "checkpoint": Path(folder) / "run", "progress": False}
    minimise(objective, [0.0, 0.0, 0.0], engine=engines.torchrun(timeout=2), **keys)


def rows() -> tuple[Tensor, Tensor]:
    x = torch.randn(96, 2, generator=torch.Generator().manual_seed(0))
    return x, (x.norm(dim=1) > 1.1).long()


def ranked(folder: str) -> None:
    """What every rank of torchrun does in the test of engines: search, and leave where it went."""
    from doxa.search import engines, minimise

    torch.set_num_threads(1)
    path = Path(folder)
    objective = Deadly(path / "dead", times=int((path / "times").read_text()))
    result = minimise(
        objective,
        [0.0, 0.0, 0.0],
        engine=engines.torchrun(timeout=20),
        generations=12,
        size=32,
        checkpoint=path / "run",
        resume=True,
        progress=False,
    )
    if engines.torchrun().leads:
        (path / "path").write_text(repr(result.path.tolist()))


@dataclass(frozen=True)
class Killing:
    """An engine that loses who works for it before certain exchanges."""

    engine: Any
    before: tuple[int, ...]
    kill: Any

    @property
    def parts(self) -> int:
        return int(self.engine.parts)

    @property
    def leads(self) -> bool:
        return bool(self.engine.leads)

    @contextmanager
    def start_workers(self, copy: Any) -> Iterator[Any]:
        with self.engine.start_workers(copy) as exchange:

            def killing(number: int, evaluate: Any, blocks: Sequence[slice]) -> list[Tensor | None]:
                if number in self.before:
                    self.kill(exchange.__self__)
                values: list[Tensor | None] = exchange(number, evaluate, blocks)
                return values

            yield killing


def kill_process(pool: Any) -> None:
    pool.workers[0].connection.process.kill()


def kill_actor(pool: Any) -> None:
    pool.backend.ray.kill(pool.workers[0].connection.actor)


if __name__ == "__main__":
    import for_workers  # workers look for objectives where they can be imported from

    if len(sys.argv) > 2:
        getattr(for_workers, sys.argv[1])(sys.argv[2])
    else:
        ranked(sys.argv[1])
