"""A run with fewer weights."""

from __future__ import annotations

from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

from torch import Tensor

from doxa.errors import BadInput
from doxa.judge.evidence import evidence
from doxa.results import write_result
from doxa.runs.claim import folder_contents, question_digest
from doxa.runs.folder import UNSEALED, SavedRun, open_run, read_spec, write_familiarity, write_spec
from doxa.runs.manifest import BELIEF, PARTS, RESULT, RUN, DamagedRun, take_stock, write_manifest
from doxa.storage.lock import folder_lock
from doxa.training.threads import limit_threads
from doxa.weights.batch_norm import has_batch_norm


def prune_run(
    run: SavedRun,
    folder: str | PathLike[str],
    fraction: float,
    *,
    per_layer: bool = False,
    biases: bool = False,
    judged_on: tuple[Tensor, Tensor] | None = None,
    data: str | None = None,
    refresh: Tensor | None = None,
    samples: int = 50,
) -> SavedRun:
    """A new run whose belief has its least relevant weights certainly zero, judged on rows (x, y) where there are any.

    `data` names those rows, where they are not of the run's own data. Training inputs as `refresh` renew BatchNorm's
    statistics.
    """
    folder = Path(folder)
    pruning = {"of": run.folder.name, "fraction": fraction, "per_layer": per_layer, "biases": biases}
    spec = {**run.spec, "pruned": pruning}
    _require_free_folder(folder, spec)
    refresh_inputs = refresh if has_batch_norm(run.belief.net) else None
    pruned_belief = run.belief.prune(fraction, per_layer, biases, refresh_inputs)
    with folder_lock(folder):
        _require_free_folder(folder, spec)
        write_spec(folder, {**spec, "status": "learning"})
        pruned_belief.save(folder / BELIEF)
        if run.familiarity is not None:
            write_familiarity(folder, run.familiarity)
        if judged_on is not None:
            with limit_threads(pruned_belief.net):
                result = evidence(
                    pruned_belief,
                    judged_on,
                    name=folder.name,
                    samples=samples,
                    seed=run.plan.seed,
                    refresh=refresh_inputs,
                    levels=run.levels,
                    about={**spec["about"], "name": data or spec["data"], "classes": list(run.classes) or None},
                    settings={**{k: v for k, v in run.plan.state().items() if v is not None}, "pruned": fraction},
                )
            write_result(folder / RESULT, result)
        else:
            (folder / RESULT).unlink(missing_ok=True)  # of a pruning that was killed
        write_spec(folder, {**spec, "status": "finished"})
        write_manifest(folder, take_stock(folder, question_digest(spec)))
    return open_run(folder)


def _require_free_folder(folder: Path, spec: dict[str, Any]) -> None:
    """Refuse a folder that holds anything but what the same pruning left when it was killed."""
    contents = folder_contents(folder) if folder.is_dir() or not folder.exists() else {folder.name}
    if not contents:
        return
    if contents <= {*PARTS} and RUN in contents:
        with suppress(DamagedRun):
            stored_spec = read_spec(folder)
            is_unfinished = stored_spec["status"] == "learning" or stored_spec["version"] > UNSEALED
            if is_unfinished and question_digest(stored_spec) == question_digest(spec):
                return
    raise BadInput(f"{folder} is there already; choose another folder for the pruned run")
