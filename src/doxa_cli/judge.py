"""`doxa judge`: what a belief is worth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from doxa_cli.options import Device, Encoding, Force, Json, Quiet, Run, argument, option
from doxa_cli.rows import EvaluationRows, require_rows
from doxa_cli.scores import show_findings, show_scores
from doxa_cli.terminal import Say, note_printer, print_json
from doxa_cli.writing import require_free
from doxa_settings.names import DATA

if TYPE_CHECKING:
    from torch import Tensor

    from doxa.runs import SavedRun


def judge(
    run: Run,
    table: Annotated[
        str | None,
        argument(
            "TABLE", "Judge on the rows of this file or data set, with their targets; without it, on those held out."
        ),
    ] = None,
    samples: Annotated[
        int | None, option("N", "Use this many draws of the weights.", default="as in doxa fit", minimum=1)
    ] = None,
    shift: Annotated[
        str | None,
        option(
            "SOURCE",
            "Score also how well the run notices the rows of this data set or table, which it was not made for.",
            choices=DATA,
        ),
    ] = None,
    out: Annotated[Path | None, option("FILE", "Write the result to this JSON file too, for doxa report.")] = None,
    encoding: Encoding = "utf-8",
    device: Device = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Print the scores of a run on the rows held out or on a table, and how well it notices foreign rows.

    Example: doxa judge runs/houses later.csv --out houses.json

    Example: doxa judge runs/mnist --shift fashion_mnist

    In a run that was never judged, such as one pruned without a table, the result is kept.
    """
    say = note_printer(quiet)
    require_free(out, force)
    from doxa.runs import foreign_inputs, open_run
    from doxa.runs.folder import was_judged
    from doxa.training.threads import limit_threads

    saved_run = open_run(run, device)
    if table is None and shift is None and samples is None:
        result = saved_run.result()
    else:
        rows = require_rows(saved_run, table, encoding, say)
        shifted_inputs = None if shift is None else foreign_inputs(saved_run, shift, encoding)
        say(f"judging on {len(rows.y):,} rows of {rows.name}")
        is_first_result = not was_judged(run)
        judge_rows = _evidence if is_first_result or out is not None else _scores
        with limit_threads(saved_run.belief.net):
            result = judge_rows(saved_run, rows, shifted_inputs, samples or saved_run.plan.draws)
        if is_first_result:
            _keep(result, run, say)
    if out is not None:
        from doxa.results import write_result

        write_result(out, result)
    if as_json:
        print_json({"run": str(run), **result})
        return
    data = result.get("data", {})
    show_scores(f"{run}: {data.get('rows', 0):,} rows of {data.get('name', 'data')}", result["scores"])
    if not quiet:
        show_findings(result.get("findings", []))


def _keep(result: dict[str, Any], run: Path, say: Say) -> None:
    """Store the first result of a run where `doxa report` looks for it; a folder that refuses it is only noted."""
    from doxa.errors import DoxaError
    from doxa.runs import keep_result

    try:
        path = keep_result(run, result)
    except (OSError, DoxaError) as error:
        say(f"the result cannot be kept in the run: {error}")
    else:
        say(f"the run had no result yet; this one is kept in {path}, for doxa report")


def _scores(saved_run: SavedRun, rows: EvaluationRows, foreign_inputs: Tensor | None, samples: int) -> dict[str, Any]:
    """What there is to say of a belief in numbers and words."""
    from doxa.judge import judge

    judgement = judge(
        saved_run.belief, (rows.x, rows.y), samples, saved_run.plan.seed, foreign_inputs, levels=saved_run.levels
    ).as_dict()
    return {"data": {"name": rows.name, "rows": judgement.pop("rows")}, **judgement}


def _evidence(saved_run: SavedRun, rows: EvaluationRows, foreign_inputs: Tensor | None, samples: int) -> dict[str, Any]:
    """The same, and all that a report draws; it takes several times as long."""
    from doxa.judge.evidence import evidence
    from doxa.weights.batch_norm import has_batch_norm

    pruned = saved_run.spec.get("pruned")
    settings = {k: v for k, v in saved_run.plan.state().items() if v is not None}
    return evidence(
        saved_run.belief,
        (rows.x, rows.y),
        name=saved_run.folder.resolve().name,
        samples=samples,
        seed=saved_run.plan.seed,
        out_of_distribution=foreign_inputs,
        refresh=rows.training if has_batch_norm(saved_run.belief.net) else None,
        about={**saved_run.spec["about"], "name": rows.name, "classes": list(saved_run.classes) or None},
        settings=settings if pruned is None else {**settings, "pruned": pruned["fraction"]},
        levels=saved_run.levels,
    )
