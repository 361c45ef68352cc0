"""`doxa prune`: the same belief with fewer weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from doxa_cli.options import Encoding, Json, Quiet, Run, Samples, argument, flag, option
from doxa_cli.rows import rows_of
from doxa_cli.scores import number
from doxa_cli.terminal import notes, put, put_json, table

if TYPE_CHECKING:
    from doxa.predict.belief import Belief


def prune(
    run: Run,
    source: Annotated[str | None, argument("TABLE", "Rows with their targets, to see the cost.")] = None,
    fraction: Annotated[float, option("SHARE", "Of the weights, to set to zero.", default=True)] = 0.95,
    per_layer: Annotated[bool, flag("--per-layer", "Rank within each layer, not over the whole net.")] = False,
    biases: Annotated[bool, flag("--biases", "Prune biases too.")] = False,
    out: Annotated[Path | None, option("FOLDER", "Of the new run.", default="RUN-pruned-95")] = None,
    samples: Samples = 50,
    encoding: Encoding = "utf-8",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Set the least relevant weights, by |mean| / scale, to zero and write what is left as a new run."""
    say = notes(quiet)
    from doxa.judge.summary import summary
    from doxa.kernels.threads import threads
    from doxa.runs import open_run, prune_run

    whole = open_run(run)
    rows = rows_of(whole, source, encoding, say)
    small = prune_run(
        whole,
        out or run.with_name(f"{run.resolve().name}-pruned-{100 * fraction:g}"),
        fraction,
        per_layer=per_layer,
        biases=biases,
        judged_on=None if rows is None else (rows.x, rows.y),
        data=None if rows is None else rows.name,
        refresh=None if rows is None else rows.training,
        samples=samples,
    )
    left = {"before": _weights(whole.belief), "after": _weights(small.belief)}
    costs = {}
    if rows is None:
        say("what it costs is not known: name a TABLE with the target after the run to see it")
    else:
        with threads(whole.belief.net):
            for name, belief in (("before", whole.belief), ("after", small.belief)):
                costs[name] = summary(belief.predict(rows.x, samples, whole.plan.seed), rows.y)
    if as_json:
        about = {"run": str(small.folder), "of": str(run), "fraction": fraction, "weights": left}
        put_json({**about, "data": None if rows is None else rows.name, "scores": costs})
        return
    if not quiet:
        scores = list(costs.get("before", {}))
        lines = [(k, f"{left[k]:,}", *(number(costs[k][s]) for s in scores)) for k in left]
        table(f"{run}: {100 * fraction:g} % pruned", ["", "weights left", *scores], lines)
    put(small.folder)


def _weights(belief: Belief) -> int:
    """How many random weights are not certainly zero."""
    return int((belief.posterior.relevance > 0).sum())
