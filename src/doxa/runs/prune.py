"""A run with fewer weights."""

from __future__ import annotations

import shutil
from os import PathLike
from pathlib import Path

from torch import Tensor

from doxa.errors import BadInput
from doxa.judge.evidence import evidence
from doxa.results import write_result
from doxa.runs.folder import BELIEF, RESULT, TABLE, SavedRun, open_run, write_spec
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
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder} is there already; choose another folder for the pruned run")
    refresh_inputs = refresh if has_batch_norm(run.belief.net) else None
    pruned_belief = run.belief.prune(fraction, per_layer, biases, refresh_inputs)
    pruning = {"of": run.folder.name, "fraction": fraction, "per_layer": per_layer, "biases": biases}
    spec = {**run.spec, "pruned": pruning}
    write_spec(folder, {**spec, "status": "learning"})
    pruned_belief.save(folder / BELIEF)
    if (run.folder / TABLE).exists():
        shutil.copyfile(run.folder / TABLE, folder / TABLE)
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
    write_spec(folder, {**spec, "status": "finished"})
    return open_run(folder)
