"""`doxa judge`: what a belief is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from doxa_cli import names
from doxa_cli.options import Device, Encoding, Force, Json, Quiet, Run, argument, option
from doxa_cli.rows import require_rows
from doxa_cli.scores import show_findings, show_scores
from doxa_cli.terminal import notes, put_json
from doxa_cli.writing import require_free


def judge(
    run: Run,
    table: Annotated[str | None, argument("TABLE", "Rows with their targets; else those held out.")] = None,
    samples: Annotated[int | None, option("N", "Draws of the weights.", default="as in doxa fit", least=1)] = None,
    shift: Annotated[
        str | None,
        option("SOURCE", "A data set or table it was not made for: does it notice?", known=names.DATA),
    ] = None,
    out: Annotated[Path | None, option("FILE", "Write the result as JSON too, for doxa report.")] = None,
    encoding: Encoding = "utf-8",
    device: Device = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Print the scores of a run on the rows held out, or on a table; and how well it notices what is foreign."""
    say = notes(quiet)
    require_free(out, force)
    from doxa.runs import open_run

    opened = open_run(run, device)
    if table is None and shift is None and samples is None:
        found = opened.result()
    else:
        found = _judged(opened, table, samples, shift, encoding, say)
    if out is not None:
        from doxa.results import write_result

        write_result(out, found)
    if as_json:
        put_json({"run": str(run), **found})
        return
    data = found.get("data", {})
    show_scores(f"{run}: {data.get('rows', '?'):,} rows of {data.get('name', 'data')}", found["scores"])
    if not quiet:
        show_findings(found.get("findings", []))


def _judged(opened: Any, table: str | None, samples: int | None, shift: str | None, encoding: str, say: Any) -> Any:
    from doxa.batch_norm import has_batch_norm
    from doxa.judge.evidence import evidence
    from doxa.runs import foreign

    rows = require_rows(opened, table, encoding, say)
    outside = None if shift is None else foreign(opened, shift, encoding)
    plan = opened.plan
    return evidence(
        opened.belief,
        (rows.x, rows.y),
        name=opened.folder.name,
        samples=samples or plan.draws,
        seed=plan.seed,
        out_of_distribution=outside,
        refresh=rows.training if has_batch_norm(opened.belief.net) else None,
        about={**opened.spec["about"], "name": rows.name, "classes": list(opened.classes) or None},
        settings={k: v for k, v in plan.state().items() if v is not None},
    )
