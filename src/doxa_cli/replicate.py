"""`doxa replicate`: a table or figure of a document, re-created, and what became of its claims."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from doxa_cli.options import Json, Quiet, argument, flag, option
from doxa_cli.terminal import note_printer, print_json, print_line, print_pairs, print_paragraph

LIST = "list"


def replicate(
    name: Annotated[
        str,
        argument(
            "NAME",
            "Re-create this, as in weight-uncertainty/figure-2, or all of weight-uncertainty; list prints the names.",
        ),
    ],
    full: Annotated[
        bool,
        flag("--full", "Run at the size of the document; without it, at one that takes a few minutes on two cores."),
    ] = False,
    seeds: Annotated[int | None, option("N", "Run with this many seeds.", default="the size's own", minimum=1)] = None,
    device: Annotated[
        str | None, option("DEVICE", "Compute on this device, as in cpu or cuda.", "--device", default="cpu")
    ] = None,
    out: Annotated[
        Path | None,
        option("FOLDER", "Write the result to this folder as JSON, and keep its parts there.", default="not written"),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Re-create a table or figure of the documents that Doxa was built from, and judge its claims.

    Example: doxa replicate list

    Example: doxa replicate weight-uncertainty/figure-2 --out results

    With --out, what is finished of a long replication is kept there, and the same command goes on with the rest.
    """
    from doxa.errors import BadInput, did_you_mean
    from doxa_replicate import TABLE, ReplicationOptions, perform, write

    if name == LIST:
        _list_replications(TABLE, as_json)
        return
    chosen = [artefact for artefact in TABLE.values() if artefact.name == name or artefact.name.startswith(f"{name}/")]
    if not chosen:
        raise BadInput(f"there is no replication {name!r}{did_you_mean(name, (*TABLE, LIST), most=20)}")
    say = note_printer(quiet)
    ask = ReplicationOptions(
        full, seeds, device, None if out is None else out / "parts", say, not quiet
    )  # one: they share parts
    for artefact in chosen:
        say(f"{artefact.name}: {artefact.title} ({artefact.durations[full] or 'some minutes'})")
        result = perform(artefact, ask)
        if out is not None:
            say(f"written to {write(out, result)}")
        if as_json:
            print_json(result)
        else:
            _show(result)


def _list_replications(artefacts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(
            {name: {"title": a.title, "rows": a.requirements, "takes": a.durations} for name, a in artefacts.items()}
        )
        return
    print_pairs(
        (name, f"{artefact.title} ({artefact.durations[0]}; --full {artefact.durations[1]})")
        for name, artefact in artefacts.items()
    )


def _show(result: dict[str, Any]) -> None:
    print_paragraph(result["title"], rest="")
    for verdict in result["verdicts"]:
        print_line()
        print_paragraph(f"{verdict['claim']} {verdict['verdict']}: {verdict['words']}.")
        print_paragraph(f"criterion: {verdict['criterion']}", first="  ")
        for line in _found_lines(verdict):
            print_paragraph(f"found: {line}", first="  ")
    if not result["verdicts"]:
        print_paragraph("No claim rests on it; --json or --out has its numbers.", rest="")
    print_line()


def _found_lines(verdict: dict[str, Any]) -> list[str]:
    """What was measured: one number, or a mean with its 95 % interval for each part of a claim."""
    if "parts" not in verdict:
        return [f"{_format_value(verdict['value'])}{_error_text(verdict)} ({verdict['setting']})"]
    notes = "; ".join(filter(None, (verdict["column"], verdict["setting"])))
    return [
        f"{name}: {_format_value(part['mean'])}{_interval_text(part)}, {part['verdict']} ({notes})"
        for name, part in verdict["parts"].items()
    ]


def _interval_text(part: dict[str, Any]) -> str:
    borders = " and ".join(f"{word} {_format_value(part[word])}" for word in ("above", "below") if word in part)
    interval = "" if part["low"] is None else f" [{_format_value(part['low'])}, {_format_value(part['high'])}]"
    return f"{interval}, to lie {borders}"


def _error_text(verdict: dict[str, Any]) -> str:
    """The standard error of a number; of several, each or the largest."""
    error = verdict["se"]
    if not _has_number(error):
        return ""
    if isinstance(error, dict | list):
        return f"; standard errors {_format_value(error)}"
    return (
        f"; standard errors at most {_format_value(error)}"
        if isinstance(verdict["value"], dict | list)
        else f" ± {_format_value(error)}"
    )


def _has_number(error: Any) -> bool:
    """Whether there is a number in it: one seed has no error."""
    if isinstance(error, dict | list):
        return any(map(_has_number, error.values() if isinstance(error, dict) else error))
    return bool(error)


def _format_value(value: Any) -> str:
    """A measured value in words: parts after their names, numbers with four digits."""
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_format_value(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_format_value, value))
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    return f"{value:.4g}" if isinstance(value, float) else str(value)
