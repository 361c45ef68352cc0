"""`doxa replicate`: a table or figure of a document, re-created, and what became of its claims."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from doxa_cli.options import Json, Quiet, argument, flag, option
from doxa_cli.terminal import notes, pairs, paragraph, put, put_json

LIST = "list"


def replicate(
    name: Annotated[
        str, argument("NAME", "Such as weight-uncertainty/figure-2, or weight-uncertainty for all of it; or list.")
    ],
    full: Annotated[bool, flag("--full", "At the document's own size, not in a few minutes on two cores.")] = False,
    seeds: Annotated[int | None, option("N", "So many seeds.", default="the size's own", least=1)] = None,
    device: Annotated[str | None, option("DEVICE", "cpu or cuda.", "--device", default="cpu")] = None,
    out: Annotated[
        Path | None, option("FOLDER", "Write the result as JSON, and keep its parts.", default="not written")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Re-create a table or figure of the documents that Doxa was built from, and judge its claims.

    With --out, what is finished of a long replication is kept there: the same command goes on with the rest.
    """
    from doxa.errors import BadInput, nearest
    from doxa_replicate import TABLE, Ask, perform, write

    if name == LIST:
        _listed(TABLE, as_json)
        return
    chosen = [artefact for artefact in TABLE.values() if artefact.name == name or artefact.name.startswith(f"{name}/")]
    if not chosen:
        raise BadInput(f"there is no replication {name!r}{nearest(name, (*TABLE, LIST), most=20)}")
    say = notes(quiet)
    ask = Ask(full, seeds, device, None if out is None else out / "parts", say, not quiet)  # one: they share parts
    for artefact in chosen:
        say(f"{artefact.name}: {artefact.title} ({artefact.takes[full] or 'some minutes'})")
        found = perform(artefact, ask)
        if out is not None:
            say(f"written to {write(out, found)}")
        if as_json:
            put_json(found)
        else:
            _show(found)


def _listed(artefacts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        put_json({name: {"title": a.title, "rows": a.rows, "takes": a.takes} for name, a in artefacts.items()})
        return
    pairs((name, f"{each.title} ({each.takes[0]}; --full {each.takes[1]})") for name, each in artefacts.items())


def _show(found: dict[str, Any]) -> None:
    paragraph(found["title"], rest="")
    for verdict in found["verdicts"]:
        put()
        paragraph(f"{verdict['claim']} {verdict['verdict']}: {verdict['words']}.")
        paragraph(f"criterion: {verdict['criterion']}", first="  ")
        paragraph(f"found: {_said(verdict['value'])}{_spread(verdict)} ({verdict['setting']})", first="  ")
    if not found["verdicts"]:
        paragraph("No claim rests on it; --json or --out has its numbers.", rest="")
    put()


def _spread(verdict: dict[str, Any]) -> str:
    """The standard error of a number; of several, each or the largest."""
    error = verdict["se"]
    if not _known(error):
        return ""
    if isinstance(error, dict | list):
        return f"; standard errors {_said(error)}"
    return (
        f"; standard errors at most {_said(error)}"
        if isinstance(verdict["value"], dict | list)
        else f" ± {_said(error)}"
    )


def _known(error: Any) -> bool:
    """Whether there is a number in it: one seed has no error."""
    if isinstance(error, dict | list):
        return any(map(_known, error.values() if isinstance(error, dict) else error))
    return bool(error)


def _said(value: Any) -> str:
    """A measured value in words: parts after their names, numbers with four digits."""
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_said(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_said, value))
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    return f"{value:.4g}" if isinstance(value, float) else str(value)
