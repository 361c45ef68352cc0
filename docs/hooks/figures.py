"""Tables and numbers of the pages that are made from files and code, never typed.

A page with `generated: true` at its head may call the functions below in double braces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import addresses
import claims
import jinja2
from cells import table
from page_elements import render_elements
from replications import RESULTS, artefacts, count, every_claim, every_replication
from requirements import every_requirement, requirements_count

BENCH = Path(__file__).resolve().parents[2] / "results" / "bench"
NET = re.compile(r"\d+(-\d+)+|LeNet-5")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in the page."""
    return fill_in(markdown) if page.meta.get("generated") else markdown


def fill_in(markdown: str) -> str:
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


def answer(question: str, which: int | None = None, file: str | None = None) -> str:
    """The tables of a benchmark as the command line shows them, with notes; or one of them, alone.

    `file` names another machine's answer.
    """
    from doxa_bench.runner import result_tables

    tables = result_tables(question, bench(file or question))
    if which is not None:
        return _markdown(tables[which])
    parts = []
    for bench_table in tables:
        notes = "\n".join(f"- {note}" for note in bench_table.notes)
        parts += [f"{bench_table.title}:", _markdown(bench_table), *([notes] if notes else [])]
    return "\n\n".join(parts)


def replicated(name: str) -> str:
    """Charts and tables of a replication whose result is kept, and where the whole of it stands."""
    artefact = artefacts()[name]
    result = claims.load_result(artefact, RESULTS)
    shown = (
        render_elements(artefact.show(result), f"quoted-{addresses.anchor(artefact)}") if result else "*Not run yet.*"
    )
    return f"{shown}\n\nFrom {addresses.link(artefact)}."


def scale_growth() -> str:
    """How far Adam moves ρ in an epoch under the KL alone, by the minibatches that share it."""
    from doxa.kl_weights import geometric

    rows = [(f"{m:,}", f"{geometric().growth(m):.1f}", f"{m:,}") for m in (8, 64, 128, 468, 1875)]
    return table(("minibatches of an epoch", "halving shares: learning rates an epoch", "even shares"), rows)


def campaign_kinds() -> str:
    """The kinds of cases that `doxa bench faults` knows."""
    from doxa_bench.faults.kinds import KINDS

    return table(("kind", "what is tried"), [(f"`{name}`", kind.asks) for name, kind in KINDS.items()], text_columns=2)


def campaign_problems() -> str:
    """What `doxa bench faults` counts."""
    from doxa_bench.faults.contract import PROBLEMS

    return table(("counted as", "what it means"), [*PROBLEMS.items()], text_columns=2)


def campaign_runs() -> str:
    """The runs whose counts were added, with their seeds and commits."""
    runs = bench("faults").get("runs") or [bench("faults")]
    rows = [
        (", ".join(map(str, run["seeds"])), f"{run['seconds'] / 60:.0f}", f"{run['commit']}", run["device"])
        for run in runs
    ]
    return table(("seeds", "minutes", "commit", "device"), rows, text_columns=4)


def mnist_score(weight: float, score: str) -> str:
    """One test score of MNIST with its standard error over seeds."""
    from doxa_bench.tables import with_error

    rows = bench("mnist_ten_epochs")["rows"].values()
    return with_error(next(row for row in rows if row["weight"] == weight)["summary"][score])


def mnist_best() -> float:
    """The KL weight with the lowest validation NLL."""
    nll_by_weight = bench("mnist_ten_epochs")["validation_nll"]
    return float(min(nll_by_weight, key=nll_by_weight.get))


def stamp(name: str) -> str:
    """Where the numbers of a benchmark come from."""
    result = bench(name)
    versions = ", ".join(f"{k} {v}" for k, v in result["versions"].items())
    seeds = ", ".join(map(str, result["seeds"]))
    return (
        f"*{versions}; {result['device']}; seeds {seeds}; {result['seconds']:.0f} s in all; commit "
        f"`{result['commit']}`; `results/bench/{name}.json`.*"
    )


def settings(name: str) -> str:
    """The settings that a benchmark wrote down."""

    def shown(value: Any) -> str:
        if isinstance(value, dict):
            return ", ".join(f"{key} {shown(each)}" for key, each in value.items())
        return ", ".join(map(shown, value)) if isinstance(value, list) else str(value)

    return "; ".join(f"{k.replace('_', ' ')} {shown(v)}" for k, v in bench(name)["settings"].items())


def scaling(device: str) -> str:
    """Curves of steps a second and memory against width, nets and samples, on a device."""
    from doxa_bench.scaling_curves import panels

    drawn = "".join(panels(bench(f"scaling_{device}")["points"], f"scaling-{device}"))
    caption = (
        "Both axes are logarithmic. Solid: the belief, at the measured points. Dashed: one plain net. "
        "Dotted: the belief's first point, grown in proportion."
    )
    return f'<figure class="curves">{drawn}<figcaption>{caption}</figcaption></figure>'


def scaling_points(device: str) -> str:
    """Every point of the curves."""
    from doxa_bench.runner import result_tables

    return _markdown(result_tables("scaling", bench(f"scaling_{device}"))[0])


def scaling_parts(device: str) -> str:
    """The parts of some steps in microseconds for each net, as far as they were measured."""
    shown = [p for p in bench(f"scaling_{device}")["points"] if p["parts"] and _is_telling(p)]
    names = list(dict.fromkeys(name for p in shown for name in p["parts"]))
    rows = []
    for p in shown:
        work = f"{p['width']:,}", f"{p['nets']}", f"{p['samples']}", p["noise"]
        spent = (f"{1e6 * p['parts'][n] / p['nets']:,.0f}" if n in p["parts"] else "–" for n in names)
        rows.append((*work, *spent, f"{1e6 * p['seconds'] / p['nets']:,.0f}"))
    return table(("width", "K", "S", "noise", *(f"{n}, µs" for n in names), "step, µs"), rows, text_columns=0)


def _is_telling(point: dict[str, Any]) -> bool:
    """Whether a point is at an end of its curve, or where it turns."""
    is_single = point["nets"] == point["samples"] == 1
    return (
        (is_single and point["width"] in (100, 400, 1200, 4000))
        or 2 in (point["nets"], point["samples"])
        or (point["nets"] == 64 or point["samples"] == 32)
    )


def scaled(device: str, what: str, width: int, nets: int = 1, samples: int = 1, noise: str = "shared") -> str:
    """One number of the curves, by a name below; of one net, and "draw" and "descend" in nanoseconds a weight."""
    point_key = {"width": width, "nets": nets, "samples": samples, "noise": noise}
    content = bench(f"scaling_{device}")
    points, floor = content["points"], content["floor"]["belief"]
    point = next(p for p in points if point_key.items() <= p.items())
    single_point = next(p for p in points if {**point_key, "nets": 1, "samples": 1}.items() <= p.items())
    # Gains compare ratios to the plain net, measured in the same rounds: no hour is faster than another.
    values = {
        "ratio": f"{point['ratio']:.2f}",
        "microseconds": f"{1e6 * point['seconds']:,.0f}",
        "plain_microseconds": f"{1e6 * point['plain_seconds']:,.0f}",
        "nanoseconds": f"{1e9 * point['seconds'] / point['weights'] / nets:.1f}",
        "vectors": f"{point['bytes'] / (4 * point['weights'] * nets):.1f}",
        "vectors_above": f"{(point['bytes'] - floor) / (4 * point['weights'] * nets):.1f}",
        "plain_vectors": f"{point['plain_bytes'] / (4 * point['weights']):.1f}",
        "gain": f"{single_point['ratio'] / point['ratio']:.2f}",
        "draw": f"{1e9 * point['parts'].get('draw', 0) / point['weights'] / nets / samples:.1f}",
        "descend": f"{1e9 * point['parts'].get('descend', 0) / point['weights'] / nets:.1f}",
        "page_faults": f"{point.get('page_faults', 0):,.0f}",
        "times_alone": f"{point['ratio'] / single_point['ratio']:.2f}",
    }
    return values[what]


def times_weights(narrow: int, wide: int) -> str:
    """How many times as many weights a wider net of the curves has."""
    from doxa_bench.scaling import WorkloadPoint

    return f"{WorkloadPoint(wide).weights / WorkloadPoint(narrow).weights:.0f}"


def scaling_floor(device: str, kind: str) -> str:
    """The memory that even a net of single units takes."""
    return _bytes(bench(f"scaling_{device}")["floor"][kind])


def cache(level: str) -> str:
    """The size of a cache of the machine that measured the curves."""
    return _bytes(bench("scaling_cpu")["settings"]["caches"][level])


def data_sets() -> str:
    """Every data set in a line."""
    from doxa import data

    rows = [
        (f"[`{c.name}`](#{anchor(c.name)})", c.task, f"{c.rows:,}", _shape(c.shape), _bytes(c.bytes))
        for c in data.cards()
    ]
    return table(("name", "task", "rows", "a row", "files"), rows, text_columns=2)


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


def _command(path: str, command: Any) -> list[str]:
    inner = getattr(command, "commands", {})
    if inner:
        return [part for name, each in inner.items() for part in _command(f"{path} {name}", each)]
    paragraphs = [_with_example_as_code(" ".join(part.split())) for part in (command.help or "").split("\n\n")]
    options, arguments = [], []
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            arguments.append(f" {parameter.metavar}" if parameter.required else f" [{parameter.metavar}]")
        elif parameter.name != "help":
            options.append((_flags(parameter), parameter.help, _default(parameter)))
    lines = [f"### {path}", "", "```", f"{path}{''.join(arguments)} [OPTIONS]", "```", "", "\n\n".join(paragraphs)]
    listed = [p for p in command.params if p.param_type_name == "argument"]
    lines += [""] if listed else []
    lines += [f"- `{p.metavar}`: {p.help}" for p in listed]
    return [
        "\n".join(lines),
        *([table(("option", "what it does", "default"), options, text_columns=3)] if options else []),
    ]


def _with_example_as_code(paragraph: str) -> str:
    lead, colon, command_line = paragraph.partition("Example: ")
    return f"{colon}`{command_line}`" if colon and not lead else paragraph


def _flags(option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in option.opts)
    return names if not option.metavar else f"{names[:-1]} {option.metavar}`"


def _default(option: Any) -> str:
    shown_default = option.show_default
    if isinstance(shown_default, str):
        return shown_default
    return f"{option.default}" if shown_default and option.default is not None else ""


def _markdown(bench_table: Any) -> str:
    rows = [[_unbroken(cell) for cell in row] for row in bench_table.rows]
    return table([_unbroken(head) for head in bench_table.headers], rows, bench_table.text_columns)


def _unbroken(cell: str) -> str:
    """The name of a net with hyphens at which no line breaks."""
    return NET.sub(lambda match: match.group().replace("-", "‑"), cell)


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
        cache,
        campaign_kinds,
        campaign_problems,
        campaign_runs,
        cost,
        count,
        data_cards,
        data_sets,
        every_claim,
        every_replication,
        every_requirement,
        has_bench,
        memory_ratio,
        mnist_best,
        mnist_score,
        replicated,
        scale_growth,
        requirements_count,
        scaled,
        scaling,
        scaling_floor,
        scaling_parts,
        scaling_points,
        times_weights,
        settings,
        stamp,
    )
}
