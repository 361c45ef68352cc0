"""`doxa prune`: the same belief with fewer weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from doxa_cli.options import Encoding, Json, Quiet, Run, Samples, argument, flag, option
from doxa_cli.rows import load_rows
from doxa_cli.scores import format_number
from doxa_cli.terminal import note_printer, print_json, print_line, print_table

if TYPE_CHECKING:
    from doxa.predict.belief import Belief


def prune(
    run: Run,
    source: Annotated[
        str | None,
        argument(
            "TABLE",
            "Show the cost on the rows of this file or data set; without it, on the test rows of the run's data set.",
        ),
    ] = None,
    fraction: Annotated[
        float, option("SHARE", "Set this share of the weights to zero, from 0 to 1.", default=True)
    ] = 0.95,
    per_layer: Annotated[
        bool, flag("--per-layer", "Rank the weights within each layer; without it they are ranked over the whole net.")
    ] = False,
    biases: Annotated[bool, flag("--biases", "Prune biases too; without it they are kept.")] = False,
    out: Annotated[
        Path | None,
        option("FOLDER", "Write the pruned run to this folder, which must be new or empty.", default="RUN-pruned-95"),
    ] = None,
    samples: Samples = 50,
    encoding: Encoding = "utf-8",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Set the least relevant weights, by |mean| / scale, to zero and write what is left as a new run.

    Example: doxa prune runs/houses later.csv --fraction 0.5
    """
    say = note_printer(quiet)
    from doxa.judge.summary import skill_and_nll
    from doxa.runs import open_run, prune_run
    from doxa.training.threads import limit_threads

    unpruned = open_run(run)
    rows = load_rows(unpruned, source, encoding, say)
    pruned = prune_run(
        unpruned,
        out or run.with_name(f"{run.resolve().name}-pruned-{100 * fraction:g}"),
        fraction,
        per_layer=per_layer,
        biases=biases,
        judged_on=None if rows is None else (rows.x, rows.y),
        data=None if rows is None else rows.name,
        refresh=None if rows is None else rows.training,
        samples=samples,
    )
    weights_left = {"before": _weights(unpruned.belief), "after": _weights(pruned.belief)}
    scores_by_run = {}
    if rows is None:
        say("what it costs is not known: name a TABLE with the target after the run to see it")
    else:
        with limit_threads(unpruned.belief.net):
            for name, belief in (("before", unpruned.belief), ("after", pruned.belief)):
                scores_by_run[name] = skill_and_nll(belief.predict(rows.x, samples, unpruned.plan.seed), rows.y)
    if as_json:
        run_summary = {"run": str(pruned.folder), "of": str(run), "fraction": fraction, "weights": weights_left}
        print_json({**run_summary, "data": None if rows is None else rows.name, "scores": scores_by_run})
        return
    if not quiet:
        scores = list(scores_by_run.get("before", {}))
        table_rows = [
            (k, f"{weights_left[k]:,}", *(format_number(scores_by_run[k][s]) for s in scores)) for k in weights_left
        ]
        print_table(f"{run}: {100 * fraction:g} % pruned", ["", "weights left", *scores], table_rows)
    print_line(pruned.folder)


def _weights(belief: Belief) -> int:
    """How many random weights are not certainly zero."""
    return int((belief.posterior.relevance > 0).sum())
