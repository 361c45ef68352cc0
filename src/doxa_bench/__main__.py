"""`python -m doxa_bench QUESTION`: the benchmarks where there is no command line, as beside other libraries."""

from __future__ import annotations

import argparse
from pathlib import Path

from doxa.errors import BadInput
from doxa_bench.questions import TABLE
from doxa_bench.runner import add_to_earlier, measure_question, result_tables, select_questions, write_result
from doxa_bench.settings import BenchSettings
from doxa_bench.tables import BenchTable


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m doxa_bench", description=__doc__)
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help=f"{', '.join(TABLE)}, or all")
    parser.add_argument("--rounds", type=int, help="so many rounds, where the question has rounds")
    parser.add_argument("--quick", action="store_true", help="a look, not a measurement")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--only", default="", help="only cases whose name holds one of these words, between commas")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other random cases")
    parser.add_argument("--minutes", type=float, help="so long, where the question is a campaign")
    parser.add_argument("--add", action="store_true", help="add to the counts that --out already holds")
    parser.add_argument("--out", type=Path, help="a folder for the answers as JSON")
    args = parser.parse_args()
    if not args.questions:
        for name, question in TABLE.items():
            print(f"{name:18s}{question.asks} ({question.takes})")
        return
    settings = BenchSettings(args.rounds, args.quick, args.device, args.only, args.seed, args.minutes, say)
    try:
        names = select_questions(args.questions, args.device)
        for name in names:
            measure_and_print(name, settings, args.out, args.add)
    except BadInput as error:
        parser.error(str(error))


def measure_and_print(name: str, settings: BenchSettings, out: Path | None, add: bool = False) -> None:
    """Measure, keep and print."""
    combine = add_to_earlier(out, name, settings.device) if add else None
    result = None
    try:
        for result in measure_question(name, settings):
            result = result if combine is None else combine(result)
            if out is not None:
                write_result(out, name, result)
    finally:
        if result is not None:
            for table in result_tables(name, result):
                print(plain_text(table), end="\n\n")


def say(text: object) -> None:
    print(text, flush=True)


def plain_text(table: BenchTable) -> str:
    """A table in plain letters."""
    lines = [list(table.headers), *(list(row) for row in table.rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = [
        "  ".join(
            cell.ljust(width) if column_index < table.text_columns else cell.rjust(width)
            for column_index, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    return "\n".join([table.title, *rows, *(f"- {note}" for note in table.notes)])


if __name__ == "__main__":
    main()
