"""Tables and numbers of the pages that are made from files and code, never typed.

A page with `generated: true` at its head may call the functions below in double braces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jinja2

BENCH = Path(__file__).resolve().parents[2] / "results" / "bench"
NET = re.compile(r"\d+(-\d+)+|LeNet-5")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in the page."""
    return rendered(markdown) if page.meta.get("generated") else markdown


def rendered(markdown: str) -> str:
    """The Markdown of a page with every call in double braces replaced by what it gives."""
    return jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(markdown).render(**FUNCTIONS)


def bench(name: str) -> dict[str, Any]:
    """The results of a benchmark, as it wrote them."""
    return json.loads((BENCH / f"{name}.json").read_text(encoding="utf-8"))


def has_bench(name: str) -> bool:
    """Whether a benchmark has been run and its results kept."""
    return (BENCH / f"{name}.json").exists()


def cost(step: str) -> str:
    """How many times a plain step one step of a belief takes, e.g. of `mlp1200 local gaussian`."""
    return f"{bench('step_cost')['steps'][step]['ratio']:.1f}"


def memory_ratio(step: str) -> str:
    """How many times the memory of a plain net learning a belief takes."""
    return f"{bench('memory')['steps'][step]['ratio']:.1f}"


def answer(question: str, which: int | None = None) -> str:
    """The tables of a benchmark as the command line shows them, with notes; or one of them, alone."""
    from doxa_bench.asking import tables

    found = tables(question, bench(question))
    if which is not None:
        return _markdown(found[which])
    parts = []
    for each in found:
        notes = "\n".join(f"- {note}" for note in each.notes)
        parts += [f"{each.title}:", _markdown(each), *([notes] if notes else [])]
    return "\n\n".join(parts)


def mnist_score(weight: float, score: str) -> str:
    """One test score of MNIST with its standard error over seeds."""
    from doxa_bench.tables import with_error

    rows = bench("mnist_ten_epochs")["rows"].values()
    return with_error(next(row for row in rows if row["weight"] == weight)["summary"][score])


def mnist_best() -> float:
    """The KL weight with the lowest validation NLL."""
    found = bench("mnist_ten_epochs")["validation_nll"]
    return float(min(found, key=found.get))


def stamp(name: str) -> str:
    """Where the numbers of a benchmark come from."""
    found = bench(name)
    versions = ", ".join(f"{k} {v}" for k, v in found["versions"].items())
    seeds = ", ".join(map(str, found["seeds"]))
    return (
        f"*{versions}; {found['device']}; seeds {seeds}; {found['seconds']:.0f} s in all; commit "
        f"`{found['commit']}`; `results/bench/{name}.json`.*"
    )


def settings(name: str) -> str:
    """The settings that a benchmark wrote down."""

    def shown(value: Any) -> str:
        if isinstance(value, dict):
            return ", ".join(f"{key} {shown(each)}" for key, each in value.items())
        return ", ".join(map(shown, value)) if isinstance(value, list) else str(value)

    return "; ".join(f"{k.replace('_', ' ')} {shown(v)}" for k, v in bench(name)["settings"].items())


def data_sets() -> str:
    """Every data set in a line."""
    from doxa import data

    rows = [
        (f"[`{c.name}`](#{anchor(c.name)})", c.task, f"{c.rows:,}", _shape(c.shape), _bytes(c.bytes))
        for c in data.cards()
    ]
    return table(("name", "task", "rows", "a row", "files"), rows, words=2)


def data_cards() -> str:
    """All that is known of every data set."""
    from doxa import data

    parts = []
    for card in data.cards():
        home = f"<{card.home}>" if card.home.startswith("http") else card.home
        lines = [f"## {card.name} {{ #{anchor(card.name)} }}", "", card.description, ""]
        lines += [f"- Cite: {card.citation}.", f"- Licence: {card.licence}.", f"- Source: {home}"]
        lines += [f"- {card.note}"] if card.note else []
        lines += [f"- Files: {', '.join(f'`{file.path}`' for file in card.files)}"] if card.files else []
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def commands() -> str:
    """Every command with its arguments and options, as `doxa … --help` has them."""
    import typer

    from doxa_cli.app import app

    return "\n\n".join(_command("doxa", typer.main.get_command(app)))


def anchor(name: str) -> str:
    return name.replace("/", "-").replace("_", "-").lower()


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1) -> str:
    """A Markdown table, its first `words` columns to the left and the others to the right."""
    lines = [heads, ["---" if place < words else "---:" for place in range(len(heads))], *rows]
    return "\n".join(f"| {' | '.join(str(cell).replace('|', '&#124;') for cell in line)} |" for line in lines)


def _command(path: str, command: Any) -> list[str]:
    inner = getattr(command, "commands", {})
    if inner:
        return [part for name, each in inner.items() for part in _command(f"{path} {name}", each)]
    said = [" ".join(part.split()) for part in (command.help or "").split("\n\n")]
    options, arguments = [], []
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            arguments.append(f" {parameter.metavar}" if parameter.required else f" [{parameter.metavar}]")
        elif parameter.name != "help":
            options.append((_flags(parameter), parameter.help, _default(parameter)))
    lines = [f"### {path}", "", "```", f"{path}{''.join(arguments)} [OPTIONS]", "```", "", "\n\n".join(said)]
    listed = [p for p in command.params if p.param_type_name == "argument"]
    lines += [""] if listed else []
    lines += [f"- `{p.metavar}`: {p.help}" for p in listed]
    return ["\n".join(lines), *([table(("option", "what it does", "default"), options, words=3)] if options else [])]


def _flags(option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in option.opts)
    return names if not option.metavar else f"{names[:-1]} {option.metavar}`"


def _default(option: Any) -> str:
    said = option.show_default
    if isinstance(said, str):
        return said
    return f"{option.default}" if said and option.default is not None else ""


def _markdown(found: Any) -> str:
    rows = [[_unbroken(cell) for cell in row] for row in found.rows]
    return table([_unbroken(head) for head in found.heads], rows, found.words)


def _unbroken(cell: str) -> str:
    """The name of a net with hyphens at which no line breaks."""
    return NET.sub(lambda found: found.group().replace("-", "‑"), cell)


def _shape(shape: Sequence[int]) -> str:
    return "\u00a0×\u00a0".join(map(str, shape))


def _bytes(count: int) -> str:
    if not count:
        return "none"
    power = min(3, (len(str(count)) - 1) // 3)
    return f"{count / 1000**power:.3g}\u00a0{('B', 'kB', 'MB', 'GB')[power]}"


FUNCTIONS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        answer,
        commands,
        cost,
        data_cards,
        data_sets,
        has_bench,
        memory_ratio,
        mnist_best,
        mnist_score,
        settings,
        stamp,
    )
}
