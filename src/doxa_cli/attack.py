"""`doxa attack`: what remains of a belief when its inputs are changed to mislead it."""

from __future__ import annotations

from typing import Annotated

from doxa_cli.options import Device, Encoding, Json, Quiet, Run, Samples, argument, option
from doxa_cli.rows import require_rows
from doxa_cli.scores import format_number
from doxa_cli.terminal import note_printer, print_json, print_table, throttled
from doxa_settings.names import ATTACKS
from doxa_settings.setting import name_choices

PIXELS = (0.0, 0.05, 0.1, 0.15, 0.2)  # where they run from 0 to 1
NUMBERS = (0.0, 0.1, 0.25, 0.5, 1.0)  # in standard deviations of the training rows


def attack(
    run: Run,
    source: Annotated[
        str | None,
        argument(
            "TABLE",
            "Attack the rows of this file or data set; without it, the test rows of the run's named data set.",
        ),
    ] = None,
    radius: Annotated[
        list[float] | None,
        option(
            "R",
            "Move each input by at most this much, in pixels of 0 to 1 or standard deviations; repeat it for several.",
            default="0 to 0.2 for images, else 0 to 1",
            minimum=0,
        ),
    ] = None,
    attack_name: Annotated[
        str,
        option(
            "NAME", name_choices("Change the inputs by this attack", ATTACKS), "--attack", default=True, choices=ATTACKS
        ),
    ] = "fgsm",
    samples: Samples = 50,
    rows: Annotated[
        int | None, option("N", "Attack only this many rows, the first ones.", default="all", minimum=1)
    ] = None,
    encoding: Encoding = "utf-8",
    device: Device = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Change inputs ever more to mislead a run, and print what skill is left; fgsm is the fast gradient sign method.

    Example: doxa attack runs/houses later.csv --radius 0 --radius 0.5
    """
    say = note_printer(quiet)
    from doxa.judge import attacks
    from doxa.judge.robustness import robustness
    from doxa.runs import open_run
    from doxa.runs.parsing import find_member
    from doxa.training.threads import limit_threads

    method = find_member(attack_name, attacks.TABLE, "attack")
    saved_run = open_run(run, device)
    test_rows = require_rows(saved_run, source, encoding, say)
    x, y = test_rows.x[:rows], test_rows.y[:rows]
    images = x.dim() == 4
    unit = _unit(saved_run.preparation is not None, images)
    low, high = (0.0, 1.0) if images else (-float("inf"), float("inf"))
    progress = throttled(say)
    columns: dict[str, list[float]] = {}
    for epsilon in radius or (PIXELS if images else NUMBERS):
        with limit_threads(saved_run.belief.net):
            scores_at_radius = robustness(
                saved_run.belief,
                (x, y),
                [epsilon],
                attack=method,
                samples=samples,
                seed=saved_run.plan.seed,
                low=low,
                high=high,
            )
        for column, values in scores_at_radius.items():
            columns.setdefault(column, []).extend(values)
        progress(
            f"radius {epsilon:g}: "
            + ", ".join(f"{k} {format_number(v[0])}" for k, v in list(scores_at_radius.items())[1:])
        )
    if as_json:
        print_json(
            {
                "run": str(run),
                "data": test_rows.name,
                "rows": len(y),
                "samples": samples,
                "unit": unit,
                "attack": columns,
            }
        )
        return
    headers = list(columns)
    lines = [(f"{epsilon:g}", *map(format_number, scores)) for epsilon, *scores in zip(*columns.values(), strict=True)]
    print_table(f"{attack_name.upper()} on {len(y):,} rows of {test_rows.name}; {unit}", headers, lines)


def _unit(is_prepared: bool, images: bool) -> str:
    if images:
        return "pixels run from 0 to 1"
    return (
        "radius in units of the prepared inputs: standard deviations"
        if is_prepared
        else "radius in units of the inputs"
    )
