"""`doxa judge`: what a belief is worth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from doxa_cli.options import Device, Encoding, Force, Json, Quiet, Run, argument, option
from doxa_cli.rows import Rows, require_rows
from doxa_cli.scores import show_findings, show_scores
from doxa_cli.terminal import Say, notes, put_json
from doxa_cli.writing import require_free
from doxa_settings.names import DATA

if TYPE_CHECKING:
    from torch import Tensor

    from doxa.runs import Opened


def judge(
    run: Run,
    table: Annotated[str | None, argument("TABLE", "Rows with their targets; else those held out.")] = None,
    samples: Annotated[int | None, option("N", "Draws of the weights.", default="as in doxa fit", least=1)] = None,
    shift: Annotated[
        str | None,
        option("SOURCE", "A data set or table it was not made for: does it notice?", known=DATA),
    ] = None,
    out: Annotated[Path | None, option("FILE", "Write the result as JSON too, for doxa report.")] = None,
    encoding: Encoding = "utf-8",
    device: Device = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Print the scores of a run on the rows held out, or on a table; and how well it notices what is foreign.

    A run that was never judged, such as one pruned without a table, keeps the result.
    """
    say = notes(quiet)
    require_free(out, force)
    from doxa.kernels.threads import threads
    from doxa.runs import foreign, open_run
    from doxa.runs.folder import RESULT

    opened = open_run(run, device)
    if table is None and shift is None and samples is None:
        found = opened.result()
    else:
        rows = require_rows(opened, table, encoding, say)
        outside = None if shift is None else foreign(opened, shift, encoding)
        say(f"judging on {len(rows.y):,} rows of {rows.name}")
        first = not (run / RESULT).exists()
        judged = _evidence if first or out is not None else _scores
        with threads(opened.belief.net):
            found = judged(opened, rows, outside, samples or opened.plan.draws)
        if first:
            _keep(found, run / RESULT, say)
    if out is not None:
        from doxa.results import write_result

        write_result(out, found)
    if as_json:
        put_json({"run": str(run), **found})
        return
    about = found.get("data", {})
    show_scores(f"{run}: {about.get('rows', 0):,} rows of {about.get('name', 'data')}", found["scores"])
    if not quiet:
        show_findings(found.get("findings", []))


def _keep(found: dict[str, Any], path: Path, say: Say) -> None:
    """Store the first result of a run where `doxa report` looks for it; a folder that refuses it is only noted."""
    from doxa.results import write_result

    try:
        write_result(path, found)
    except OSError as error:
        say(f"the result is not kept: {error}")
    else:
        say(f"the run had no result yet; this one is kept in {path}, for doxa report")


def _scores(opened: Opened, rows: Rows, outside: Tensor | None, samples: int) -> dict[str, Any]:
    """What there is to say of a belief in numbers and words."""
    from doxa.judge import judge

    found = judge(opened.belief, (rows.x, rows.y), samples, opened.plan.seed, outside, levels=opened.levels).as_dict()
    return {"data": {"name": rows.name, "rows": found.pop("rows")}, **found}


def _evidence(opened: Opened, rows: Rows, outside: Tensor | None, samples: int) -> dict[str, Any]:
    """The same, and all that a report draws; it takes several times as long."""
    from doxa.judge.evidence import evidence
    from doxa.weights.batch_norm import has_batch_norm

    pruned = opened.spec.get("pruned")
    settings = {k: v for k, v in opened.plan.state().items() if v is not None}
    return evidence(
        opened.belief,
        (rows.x, rows.y),
        name=opened.folder.resolve().name,
        samples=samples,
        seed=opened.plan.seed,
        out_of_distribution=outside,
        refresh=rows.training if has_batch_norm(opened.belief.net) else None,
        about={**opened.spec["about"], "name": rows.name, "classes": list(opened.classes) or None},
        settings=settings if pruned is None else {**settings, "pruned": pruned["fraction"]},
        levels=opened.levels,
    )
