"""`doxa bench`: what Doxa costs, measured here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from doxa_bench.questions import TABLE
from doxa_cli.devices import device_of
from doxa_cli.options import Json, Quiet, argument, flag, option
from doxa_cli.terminal import Say, notes, pairs, paragraph, put, put_json, seldom, table


def bench(
    questions: Annotated[
        list[str] | None, argument("QUESTION…", "What to measure, or all; without one, the questions.", (*TABLE, "all"))
    ] = None,
    rounds: Annotated[
        int | None, option("N", "Measure so many rounds, or seeds.", default="the question's own", least=1)
    ] = None,
    quick: Annotated[bool, flag("--quick", "A few rounds: a look, not a measurement.")] = False,
    device: Annotated[str, option("DEVICE", "cpu or cuda.", "--device", default=True)] = "cpu",
    only: Annotated[str, option("WORDS", "Cases whose names hold one of these, between commas.")] = "",
    out: Annotated[
        Path | None, option("FOLDER", "Write each answer as JSON, anew whenever more is known.", default="not written")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure what Doxa costs beside the plain net, and beside other libraries where they are installed.

    What is compared is taken in turn, many rounds, in one run; two threads on a CPU. Ctrl-C keeps what was measured.
    """
    if not questions:
        _listed(as_json)
        return
    say = notes(quiet)
    from doxa_bench.asking import named
    from doxa_bench.settings import Settings

    names = named(questions, device)
    device_of(device)
    settings = Settings(rounds, quick, device, only, say, seldom(say))
    found = {name: _asked(name, settings, out, say, shown=not as_json) for name in names}
    if as_json:
        put_json(found)
    elif out is None:
        say("nothing was written; --out FOLDER keeps the answers as JSON")


def _listed(as_json: bool) -> None:
    if as_json:
        put_json({name: question._asdict() for name, question in TABLE.items()})
        return
    pairs((name, f"{question.asks} ({question.takes})") for name, question in TABLE.items())
    put()
    paragraph("doxa bench QUESTION measures one; all asks every one that the device can answer.", rest="")


def _asked(name: str, settings: Any, out: Path | None, say: Say, shown: bool) -> dict[str, Any]:
    """Measure; what was found is kept and shown even when it is not all."""
    from doxa_bench.asking import answers, write

    say(f"{name}: {TABLE[name].asks} ({TABLE[name].takes})")
    found: dict[str, Any] = {}
    try:
        for found in answers(name, settings):
            if out is not None:
                write(out, name, found)
    finally:
        if found and shown:
            _show(name, found)
    return found


def _show(name: str, found: dict[str, Any]) -> None:
    from doxa_bench.asking import tables

    for each in tables(name, found):
        table(each.title, each.heads, each.rows)
        for note in each.notes:
            paragraph(note, first="- ")
        put()
