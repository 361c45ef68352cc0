"""`doxa attack`: what remains of a belief when its inputs are changed to mislead it."""

from __future__ import annotations

from typing import Annotated

from doxa_cli.options import Device, Encoding, Json, Quiet, Run, Samples, argument, option
from doxa_cli.rows import require_rows
from doxa_cli.scores import number
from doxa_cli.terminal import notes, put_json, seldom, table

PIXELS = (0.0, 0.05, 0.1, 0.15, 0.2)  # where they run from 0 to 1
NUMBERS = (0.0, 0.1, 0.25, 0.5, 1.0)  # in standard deviations of the training rows


def attack(
    run: Run,
    source: Annotated[str | None, argument("TABLE", "Rows with their targets; else a named set's test rows.")] = None,
    radius: Annotated[list[float] | None, option("R", "How far each input may move; give several.", least=0)] = None,
    samples: Samples = 50,
    rows: Annotated[int | None, option("N", "Attack the first so many rows.", default="all", least=1)] = None,
    encoding: Encoding = "utf-8",
    device: Device = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Attack a run by the fast gradient sign method (FGSM), ever harder."""
    say = notes(quiet)
    from doxa.judge.robustness import robustness
    from doxa.kernels.threads import threads
    from doxa.runs import open_run

    opened = open_run(run, device)
    held = require_rows(opened, source, encoding, say)
    x, y = held.x[:rows], held.y[:rows]
    images = x.dim() == 4
    unit = _unit(opened.preparation is not None, images)
    low, high = (0.0, 1.0) if images else (-float("inf"), float("inf"))
    progress = seldom(say)
    found: dict[str, list[float]] = {}
    for each in radius or (PIXELS if images else NUMBERS):
        with threads(opened.belief.net):
            one = robustness(opened.belief, (x, y), [each], samples=samples, seed=opened.plan.seed, low=low, high=high)
        for column, values in one.items():
            found.setdefault(column, []).extend(values)
        progress(f"radius {each:g}: " + ", ".join(f"{k} {number(v[0])}" for k, v in list(one.items())[1:]))
    if as_json:
        put_json(
            {
                "run": str(run),
                "data": held.name,
                "rows": len(y),
                "samples": samples,
                "unit": unit,
                "attack": found,
            }
        )
        return
    heads = list(found)
    lines = [(f"{each:g}", *map(number, scores)) for each, *scores in zip(*found.values(), strict=True)]
    table(f"FGSM on {len(y):,} rows of {held.name}; {unit}", heads, lines)


def _unit(prepared: bool, images: bool) -> str:
    if images:
        return "pixels run from 0 to 1"
    return (
        "radius in units of the prepared inputs: standard deviations" if prepared else "radius in units of the inputs"
    )
