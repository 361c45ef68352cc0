"""A unit of steps in its fastest form on its device: on a GPU the whole of it, recorded once and replayed as a graph.

On a CPU the flat passes are C kernels already (doxa/flat) and a step runs as it is written.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from doxa.engine.context import ContextTable

if TYPE_CHECKING:
    from doxa.engine.run import Run

COMPILE_FROM_STEPS = (
    200_000  # steps: compiling takes seconds to a minute, and saves 20 µs of a small step to 300 of a large one
)
WARM_UP_UNITS = 2  # units before a recording: libraries choose their algorithms, kernels are compiled


def make_recording(run: Run, steps: int) -> Recording | None:
    """The units of a run as recordings, or None where they run as written; on a GPU it says why, once.

    In a run of so many `steps` that it repays, the nets are compiled too.
    """
    if run.device.type != "cuda":
        return None
    why = why_not_recordable(run)
    if why is None:
        for compiled in (True, False) if steps >= COMPILE_FROM_STEPS else (False,):
            try:
                return Recording(run, compiled)
            except RuntimeError as error:
                message = str(error.__context__ or error).splitlines()[0]
                out_of_memory = isinstance(error, torch.OutOfMemoryError)
                why = (
                    "there is too little memory for a recording"
                    if out_of_memory
                    else f"the net cannot be recorded ({message})"
                )
    if why:
        warnings.warn(f"steps are not captured as a CUDA graph, which makes them slower: {why}", stacklevel=7)
    return None


def why_not_recordable(run: Run) -> str | None:
    """Why the first of the parts that cannot be recorded cannot; nothing, "", of one that needs no words."""
    reasons = (part.eager for part in (run.source, run.stepper, run.gradient))
    return next((why for why in reasons if why is not None), None)


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Without Python's search for circles of references: a graph that it finds and destroys breaks off a recording."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Recording:
    """Units as CUDA graphs, one for each form: gather, noise, forward, backward, KL, step, loss, observation.

    What changes from step to step lies in the device's memory: a table of each span's numbers, what the source
    remembers, and two counters that the unit itself moves on.
    """

    def __init__(self, run: Run, compiled: bool = False) -> None:
        self.run, self.compiled = run, compiled
        self.table = ContextTable(run.step_numbers(0, 1), run.span, run.source.period, run.like)
        self.graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}
        self._record()

    def replay(self, unit: int) -> None:
        """The next unit, which is this one."""
        self.graphs[self.run.source.form(unit)].replay()

    def _run_unit(self, form: Hashable) -> None:
        """All steps of a unit of a form, without a word from the CPU."""
        for context in self.table.contexts(self.run.net_seeds, self.compiled):
            self.run.step(context)
        self.table.advance()

    def _record(self) -> None:
        # Who rests keeps parameters and moments; what moves all the same is put back before each unit and at the end.
        moving = self._moving_tensors()
        saved = {k: t.clone() for k, t in moving.items()}

        def restore_moving() -> None:
            with torch.no_grad():
                for name, tensor in moving.items():
                    tensor.copy_(saved[name])

        forms: dict[Hashable, int] = {}  # with the first unit of each
        for unit in range(self.run.span):
            forms.setdefault(self.run.source.form(unit), unit)
        device = self.run.device
        side_stream, pool = torch.cuda.Stream(device), None
        try:
            for form, unit in forms.items():
                self.graphs[form] = self._record_graph(form, unit, restore_moving, side_stream, pool)
                pool = self.graphs[form].pool()
        finally:
            torch.cuda.current_stream(device).wait_stream(side_stream)
            restore_moving()

    def _record_graph(
        self, form: Hashable, unit: int, restore_moving: Callable[[], None], side_stream: Any, pool: Any
    ) -> torch.cuda.CUDAGraph:
        """A unit of a form as a graph, on a stream `side_stream`."""
        current_stream = torch.cuda.current_stream(self.run.device)
        self.run.source.begin(unit)
        side_stream.wait_stream(current_stream)
        with torch.cuda.stream(side_stream):
            for _ in range(WARM_UP_UNITS):
                restore_moving()
                self._run_unit(form)
        current_stream.wait_stream(side_stream)
        restore_moving()
        graph = torch.cuda.CUDAGraph()
        with _without_garbage_collection(), torch.cuda.graph(graph, pool=pool, stream=side_stream):
            self._run_unit(form)
        return graph

    def _moving_tensors(self) -> Mapping[str, Tensor]:
        """What a unit changes though everybody rests, by part and name."""
        parts = self.run.stateful_parts()
        moving = {f"{name}.{k}": t for name, part in parts.items() for k, t in part.state().moving.items()}
        return moving | {"step": self.table.step, "position": self.table.position}
