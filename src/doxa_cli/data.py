"""`doxa data`: every data set by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from doxa_cli.options import Json, Quiet, argument, option
from doxa_cli.plain_flags import PlainFlagsCommand, PlainFlagsGroup
from doxa_cli.terminal import (
    NOTE_INTERVAL,
    Say,
    note_printer,
    print_json,
    print_line,
    print_pairs,
    print_table,
    throttled,
)
from doxa_settings.names import DATA

if TYPE_CHECKING:
    from doxa.data import Card

app = typer.Typer(cls=PlainFlagsGroup, invoke_without_command=True)

Name = Annotated[str, argument("NAME", "Take the data set of this name, as doxa data list prints it.", DATA)]


@app.callback()
def data(context: typer.Context) -> None:
    """List the data sets known by name, fetch their files and show what is known of them.

    Example: doxa data list
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command("list", cls=PlainFlagsCommand)
def list_cards(as_json: Json = False) -> None:
    """List every data set, its size, and whether its files are here.

    Example: doxa data list --json
    """
    from doxa import data as room

    cards = room.cards()
    if as_json:
        print_json([_describe_card(card) for card in cards])
        return
    rows = [(c.name, c.task, f"{c.rows:,}", _size(c.bytes) if c.files else "–", _presence(c)) for c in cards]
    print_table("Data sets by name", ["name", "task", "rows", "files", "here"], rows)


@app.command(cls=PlainFlagsCommand)
def get(
    name: Name,
    timeout: Annotated[float, option("SECONDS", "Give up when nothing comes for so long.", default=True)] = 30.0,
    deadline: Annotated[float, option("SECONDS", "Give up when a file takes so long in all.", default=True)] = 1800.0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fetch those files of a data set that are missing, verify them, and print where all of them are.

    What has arrived of a file is kept, and the next call goes on from there.

    Example: doxa data get mnist
    """
    from doxa import data as room

    paths = room.get(name, _fetch_progress(note_printer(quiet)), timeout, deadline)
    _print_paths(name, paths, as_json, quiet)


@app.command(cls=PlainFlagsCommand)
def path(name: Name, as_json: Json = False, quiet: Quiet = False) -> None:
    """Print where the files of a data set are, or where they belong.

    Example: doxa data path mnist
    """
    from doxa import data as room

    _print_paths(name, room.path(name), as_json, quiet)


@app.command(cls=PlainFlagsCommand)
def show(name: Name, as_json: Json = False) -> None:
    """Print what is known of a data set: its rows, licence, citation and source.

    Example: doxa data show mnist
    """
    from doxa import data as room

    card = room.card(name)
    if as_json:
        print_json(_describe_card(card))
        return
    shape = " × ".join(map(str, card.shape))
    rows: list[tuple[str, object]] = [("name", card.name), ("what", card.description), ("task", card.task)]
    rows += [("rows", f"{card.rows:,}, each {shape}"), ("licence", card.licence), ("cite", card.citation)]
    rows += [
        ("source", card.home),
        ("files", _size(card.bytes) if card.files else "none needed"),
        ("here", _presence(card)),
    ]
    print_pairs([*rows, *([("note", card.note)] if card.note else [])])


def _print_paths(name: str, paths: list[Any], as_json: bool, quiet: bool) -> None:
    if as_json:
        print_json({"name": name, "paths": [str(p) for p in paths]})
        return
    if not paths:
        note_printer(quiet)(f"{name} needs no files")
    for file_path in paths:
        print_line(file_path)


def _describe_card(card: Card) -> dict[str, Any]:
    fields = ("name", "description", "task", "rows", "shape", "licence", "citation", "home", "note", "bytes")
    return {**{field: getattr(card, field) for field in fields}, "here": _presence(card) != "no"}


def _presence(card: Card) -> str:
    from doxa.data.files import locate

    return "yes" if all(locate(file) for file in card.files) else "no"


def _size(count: int) -> str:
    power = min(3, (len(str(count)) - 1) // 3)
    return f"{count / 1000**power:.3g} {('B', 'kB', 'MB', 'GB')[power]}"


def _fetch_progress(say: Say) -> Any:
    progress = throttled(say, since=-NOTE_INTERVAL)
    return lambda file, done: progress(f"{file.path}: {_size(done)} of {_size(file.bytes)}")
