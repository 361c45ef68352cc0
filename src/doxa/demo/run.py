"""`doxa demo`: what weight uncertainty is worth, on digits and on a curve, in a minute and without a network."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from os import PathLike
from pathlib import Path

from doxa.demo.evaluate import evaluate_contender
from doxa.demo.workers import delay_interrupts, worker_pool
from doxa.errors import BadInput, require_whole
from doxa.results import Result, write_result

SEEDS = (0, 1, 2)
COLUMNS = ("error", "nll", "brier", "ece", "auroc_entropy", "error_pruned_95", "accuracy_attacked")
PAGE = "report.html"
FILES = {  # by data set and contender, in the order of the page
    ("digits", "plain net"): "digits-plain.json",
    ("digits", "dropout"): "digits-dropout.json",
    ("digits", "belief"): "digits-belief.json",
    ("curve", "plain net"): "curve-plain.json",
    ("curve", "belief"): "curve-belief.json",
}
DEFAULT_CORES = 2

Say = Callable[[str], None]


def run(
    folder: str | PathLike[str],
    say: Say,
    seeds: Sequence[int] = SEEDS,
    epochs: int | None = None,
    cores: int = DEFAULT_CORES,
) -> list[Result]:
    """Learn, judge and report; results and page are written to `folder`, and the results come back.

    Whatever is chosen is chosen by the NLL of validation rows, with the first seed; the test rows are opened once, at
    the end. Files of an earlier demo are overwritten, and no others. `epochs` cuts every training short; the results
    are the same on any number of `cores`.
    """
    from doxa import report

    seeds, cores, folder = (
        [require_whole("seeds", seed, least=None) for seed in seeds],
        require_whole("cores", cores),
        Path(folder),
    )
    if not seeds:
        raise BadInput("the demo needs at least one seed")
    _require_demo_folder(folder)
    result_by_job = {}
    # The beliefs take longest: begun first, all ends together.
    for job, result in _run_jobs(sorted(FILES, key=lambda job: job[1] != "belief"), seeds, epochs, cores):
        result_by_job[job] = result
        learner = result["settings"]["learner"]
        say(f"{job[0]}: {job[1]} ({learner}), {result['stamp']['seconds']:.0f} s")
    results = [result_by_job[job] for job in FILES]
    for job, result in zip(FILES, results, strict=True):
        write_result(folder / FILES[job], result)
    report.write(results, folder / PAGE)
    return results


def table(results: Sequence[Result]) -> tuple[list[str], list[list[str]]]:
    """The digits' scores for a terminal: a column for each contender, the best of each row with a star."""
    from doxa.report.runs import group_runs
    from doxa.report.table import table as scores

    score_table = scores(group_runs(results)[0].runs, COLUMNS)
    marks = {"best": " ★", "close": " ≈", "": "  "}
    columns = [[cell.text + marks[cell.mark] for cell in cells] for _, cells in score_table.rows]
    heads = [score.heading for score in score_table.columns]
    return [run.name for run, _ in score_table.rows], [list(row) for row in zip(heads, *columns, strict=True)]


def _run_jobs(
    jobs: Sequence[tuple[str, str]], seeds: Sequence[int], epochs: int | None, cores: int
) -> Iterator[tuple[tuple[str, str], Result]]:
    """The result of each job as it is done: here where there is one core, else in processes of their own."""
    if cores == 1:
        yield from ((job, evaluate_contender(*job, seeds, epochs)) for job in jobs)
        return
    with worker_pool(cores) as pool:
        with delay_interrupts():
            futures = {pool.submit(evaluate_contender, *job, seeds, epochs): job for job in jobs}
        for future in as_completed(futures):
            yield futures[future], future.result()


def _require_demo_folder(folder: Path) -> None:
    """Refuse to overwrite what no demo has written."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file; choose another folder for the demo's output")
    for name in (PAGE, *FILES.values()):
        path = folder / name
        if path.exists() and not (path.is_file() and _is_demo_file(path)):
            raise BadInput(f"{path} was not written by the demo; move it away, or choose another folder")


def _is_demo_file(path: Path) -> bool:
    text = path.read_bytes()
    if path.name == PAGE:
        return b'<meta name="generator" content="doxa report">' in text[:2000]
    try:
        content = json.loads(text)
    except ValueError:
        return False
    return isinstance(content, dict) and content.get("kind") == "doxa result"
