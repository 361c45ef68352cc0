"""`doxa bench`: what Doxa costs, measured here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from doxa_bench.questions import TABLE
from doxa_cli.devices import device_of
from doxa_cli.options import Json, Quiet, argument, flag, option
from doxa_cli.terminal import (
    Say,
    note_printer,
    print_json,
    print_line,
    print_pairs,
    print_paragraph,
    print_table,
    throttled,
)


def bench(
    questions: Annotated[
        list[str] | None,
        argument(
            "QUESTION…",
            "Answer these questions, or all of them by all; without any, the questions are listed.",
            (*TABLE, "all"),
        ),
    ] = None,
    rounds: Annotated[
        int | None, option("N", "Measure this many rounds, or seeds.", default="the question's own", minimum=1)
    ] = None,
    quick: Annotated[bool, flag("--quick", "Measure a few rounds, for a look instead of a measurement.")] = False,
    device: Annotated[
        str, option("DEVICE", "Measure on this device, as in cpu or cuda.", "--device", default=True)
    ] = "cpu",
    only: Annotated[
        str,
        option(
            "WORDS", "Measure only cases whose names contain one of these words, as in local,shared; without it, all."
        ),
    ] = "",
    seed: Annotated[int, option("N", "Draw the random cases of a campaign from this seed.", default=True)] = 0,
    minutes: Annotated[
        float | None, option("N", "Let a campaign, such as faults, take so many minutes.", default="10")
    ] = None,
    add: Annotated[bool, flag("--add", "Add the counts of a campaign to those that --out already holds.")] = False,
    out: Annotated[
        Path | None,
        option(
            "FOLDER", "Write each answer to this folder as JSON, again whenever more is known.", default="not written"
        ),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure what Doxa costs beside the plain net, and beside other libraries where they are installed.

    Example: doxa bench step_cost --quick

    What is compared is measured in turn, for many rounds of one run, with two threads on a CPU.

    Of faults, --only takes kinds of cases, or one case, as in kills:7.

    When Ctrl-C ends it, what was measured is kept.
    """
    if not questions:
        _list_questions(as_json)
        return
    say = note_printer(quiet)
    from doxa_bench.runner import select_questions
    from doxa_bench.settings import BenchSettings

    names = select_questions(questions, device)
    device_of(device)
    settings = BenchSettings(rounds, quick, device, only, seed, minutes, say, throttled(say))
    results = {name: _measure(name, settings, out, add, say, show_tables=not as_json) for name in names}
    if as_json:
        print_json(results)
    elif out is None:
        say("nothing was written; --out FOLDER keeps the answers as JSON")


def _list_questions(as_json: bool) -> None:
    if as_json:
        print_json({name: question._asdict() for name, question in TABLE.items()})
        return
    print_pairs((name, f"{question.asks} ({question.takes})") for name, question in TABLE.items())
    print_line()
    print_paragraph(
        "doxa bench QUESTION answers one of them, and doxa bench all every one that the device can answer.", rest=""
    )


def _measure(name: str, settings: Any, out: Path | None, add: bool, say: Say, show_tables: bool) -> dict[str, Any]:
    """Measure; what was found is kept and shown even when it is not all."""
    from doxa_bench.runner import add_to_earlier, measure_question, write_result

    combine = add_to_earlier(out, name, settings.device) if add else None
    say(f"{name}: {TABLE[name].asks} ({TABLE[name].takes})")
    result: dict[str, Any] = {}
    try:
        for result in measure_question(name, settings):
            result = result if combine is None else combine(result)
            if out is not None:
                write_result(out, name, result)
    finally:
        if result and show_tables:
            _show(name, result)
    return result


def _show(name: str, result: dict[str, Any]) -> None:
    from doxa_bench.runner import result_tables

    for result_table in result_tables(name, result):
        print_table(result_table.title, result_table.headers, result_table.rows)
        for note in result_table.notes:
            print_paragraph(note, first="- ")
        print_line()
