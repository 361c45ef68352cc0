"""What do draws of a prediction cost, as a ratio to as many passes of the same plain net?

Fifty draws, ten visits of five, each all rows in chunks: `belief.predict` against five passes of the plain net in
evaluation mode over the same chunks, in turn, in one process; the ratio is the median over visits. In float32, and in
bfloat16 where torch can multiply in it on the device. What the lower precision does to the scores is measured on
MNIST's test set, with the same fifty draws of the weights.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

import doxa
from doxa.data.rows import as_pair
from doxa.judge import ece
from doxa.predict.sweep import ROWS as CHUNK
from doxa_bench import comparison
from doxa_bench.contenders import LearningTask, suppress_warnings
from doxa_bench.mnist_data import LabeledRows, mnist_splits
from doxa_bench.net_kinds import BATCH, KINDS, new_net, random_rows
from doxa_bench.settings import BenchSettings
from doxa_bench.tables import BenchTable, format_quartiles, library_notes, missing_library_notes
from doxa_bench.timing import Step, summarize_pairs, time_in_turn
from doxa_bench.trainables import GAUSSIAN, BeliefTrainer, equal_scales, plain_model

DRAWS, EACH = 50, 5  # in all, and in a visit
ROUNDS = DRAWS // EACH
CASES = {"mlp1200": 10_000, "lenet5": 1_000}  # rows
SECONDS = {"mlp1200": 240.0, "lenet5": 60.0}
LOW_PRECISION = torch.bfloat16
LEARNED = "mlp400"
# Every size has a kernel of its own, and not every kernel runs on every CPU that claims to have bfloat16.
BFLOAT16_PROBE = """
import sys, torch
torch.set_default_device(sys.argv[1])
with torch.no_grad(), torch.autocast(sys.argv[1], dtype=torch.bfloat16):
    for rows in (1, 40, 2048):
        for width in (10, 20, 400, 784, 1200):
            torch.nn.Linear(width, 10 if width < 400 else width)(torch.ones(rows, width))
        torch.nn.Conv2d(1, 6, 5, padding=2)(torch.ones(rows, 1, 28, 28))
"""
EPOCHS = 2  # before its scores are compared


def measure(settings: BenchSettings) -> Iterator[dict[str, Any]]:
    rounds, bfloat16_refusal = settings.round_count(ROUNDS), why_no_bfloat16(settings.device)
    result: dict[str, Any] = {
        "settings": {"draws": EACH * rounds, "draws_a_visit": EACH, "chunk": CHUNK, "rounds": rounds, "rows": CASES},
        "predictions": {},
        "rivals": {},
        "missing": {},
        "libraries": comparison.describe_all_libraries(),
        "bfloat16": bfloat16_refusal or "measured",
    }
    for kind, rows in CASES.items():
        if not settings.wants(kind):
            continue
        x, _ = random_rows(kind, rows, settings.device)
        base, doxa_steps, rivals = prediction_steps(kind, x, bfloat16_refusal is None, settings, result["missing"])

        def report_round(done: int, kind: str = kind) -> None:
            settings.progress(f"{kind}: {done} rounds")

        limit = settings.time_limit(SECONDS.get(kind, 60.0))
        all_steps = doxa_steps | {f"{case}, {library}": step for (case, library), step in rivals.items()}
        with suppress_warnings():
            timings = time_in_turn(base, all_steps, rounds, limit, settings.device, report_round)
        figures = {name: summarize_pairs(pairs) for name, pairs in timings.items()}
        if bfloat16_refusal is None:
            lower = f"{kind} plain bfloat16"
            for name in (n for n in doxa_steps if n.endswith("belief bfloat16")):
                pairs = [(a[1], b[1]) for a, b in zip(timings[lower], timings[name], strict=True)]
                figures[name] |= {"to_plain_bfloat16": summarize_pairs(pairs)["ratio"]}
        for name, figure in figures.items():
            settings.say(f"{name}: {figure['ratio']:.2f} times the plain passes")
        result["predictions"] |= {name: figures[name] for name in doxa_steps}
        for case, library in rivals:
            result["rivals"].setdefault(case, {})[library] = figures[f"{case}, {library}"]
        yield result
    if bfloat16_refusal is None and settings.wants(LEARNED):
        train, _, test = mnist_splits(settings.device)
        result["scores"] = measure_scores(train, test, settings)
        yield result


def why_no_bfloat16(device: str) -> str | None:
    """Why torch cannot multiply in bfloat16 here, or None; another process tries, since some CPUs end it."""
    process = subprocess.run(
        [sys.executable, "-c", BFLOAT16_PROBE, device.partition(":")[0]], capture_output=True, text=True
    )
    if process.returncode == 0:
        return None
    lines = process.stderr.strip().splitlines()
    reason = lines[-1] if process.returncode > 0 and lines else f"the process ends with signal {-process.returncode}"
    return f"torch cannot multiply in it on this device: {reason}"


def prediction_steps(
    kind: str, x: Tensor, lower: bool, settings: BenchSettings, missing: dict[str, dict[str, str]]
) -> tuple[Step, dict[str, Step], dict[tuple[str, str], Step]]:
    """Passes of the plain net, predictions of beliefs, and of other libraries."""
    device = settings.device
    rows = random_rows(kind, device=device)
    plain_passes = partial(plain_model(new_net(kind, device)).outputs, x, EACH)
    belief = BeliefTrainer(new_net(kind, device), rows, doxa.learners.variational(GAUSSIAN)).belief()
    doxa_steps: dict[str, Step] = {f"{kind} belief": partial(belief.predict, x, EACH)}
    if lower:
        doxa_steps[f"{kind} plain bfloat16"] = in_bfloat16(plain_passes, device)
        doxa_steps[f"{kind} belief bfloat16"] = partial(belief.predict, x, EACH, autocast=LOW_PRECISION)
    net = new_net(kind, device)
    rivals: dict[tuple[str, str], Step] = {}
    task: Callable[[str], LearningTask] = lambda noise: LearningTask(net, equal_scales(net), noise=noise)  # noqa: E731
    for noise, library, offer in comparison.trainable_models(task, *rows):
        case = f"{kind} draws"
        if noise != "shared":  # a prediction knows draws alone, whatever they were learned with
            continue
        if isinstance(offer, str):
            missing.setdefault(case, {})[library] = offer
        else:
            rivals[case, library] = partial(offer.outputs, x, EACH)
    return plain_passes, doxa_steps, rivals


def in_bfloat16(step: Step, device: str) -> Step:
    def run() -> object:
        with torch.autocast(device.partition(":")[0], dtype=LOW_PRECISION):
            return step()

    return run


def measure_scores(train: LabeledRows, test: LabeledRows, settings: BenchSettings) -> dict[str, Any]:
    """Test scores of a belief that learned a little, in both precisions, by the same draws."""
    torch.manual_seed(0)
    trainer = BeliefTrainer(
        new_net(LEARNED, settings.device),
        (train[0][:BATCH], train[1][:BATCH]),
        doxa.learners.variational(GAUSSIAN, doxa.noise.local),
        size=len(train[0]),
    )
    for _ in range(EPOCHS):
        for index in torch.randperm(len(train[0])).to(settings.device).split(BATCH):
            trainer.step(trainer.batch(train[0][index], train[1][index]))
        settings.progress("learning for the scores")
    belief = trainer.belief()
    errors = doxa.judge(belief, test, samples=DRAWS).as_dict()["scores"]
    full, low = (score_predictions(belief, test, autocast) for autocast in (None, LOW_PRECISION))
    return {
        name: {"float32": full[name], "bfloat16": low[name], "monte_carlo_error": errors[name]["error"]}
        for name in full
    }


def score_predictions(belief: doxa.Belief, test: LabeledRows, autocast: torch.dtype | None) -> dict[str, float]:
    x, y = as_pair(test, belief.posterior.mean, "test")
    draws = belief.predict(x, DRAWS, autocast=autocast)
    p = draws.mean
    log_predictive = draws.log_predictive(y)
    return {
        "error": float((p.argmax(-1) != y).double().mean()),
        "nll": -float(log_predictive.double().mean()),
        "ece": float(ece(p, y)),
    }


def show(result: dict[str, Any]) -> list[BenchTable]:
    rows, rivals = [], result.get("rivals", {})
    draws = result["settings"]["draws"]
    for case, r in result["predictions"].items():
        kind, _, variant = case.partition(" ")
        rows.append(
            (
                *_net_and_rows(kind, result),
                "Doxa" if "belief" in variant else "plain net",
                _precision(variant),
                *_format_timings(r),
            )
        )
    for case, others in rivals.items():
        kind = case.partition(" ")[0]
        rows += [
            (*_net_and_rows(kind, result), library, "float32", *_format_timings(r)) for library, r in others.items()
        ]
    headers = (
        "net",
        "rows",
        "who",
        "precision",
        "plain, ms a draw",
        "ms a draw",
        "ratio",
        "spread",
        "to plain bfloat16",
    )
    notes = [f"bfloat16: {result['bfloat16']}" if result["bfloat16"] != "measured" else "", *library_notes(result)]
    notes += missing_library_notes(result.get("missing", {}))
    order = sorted(rows, key=lambda row: list(_order(result)).index(row[0]))
    shown = [
        BenchTable(
            f"{draws} draws of a prediction, times as many passes of the plain net in float32",
            headers,
            order,
            4,
            [note for note in notes if note],
        )
    ]
    if "scores" in result:
        score_rows = [
            (
                name,
                f"{s['float32']:.5f}",
                f"{s['bfloat16']:.5f}",
                f"{s['bfloat16'] - s['float32']:+.5f}",
                f"{s['monte_carlo_error']:.5f}",
            )
            for name, s in result["scores"].items()
        ]
        columns = ("score", "float32", "bfloat16", "difference", "Monte-Carlo error")
        shown.append(
            BenchTable(f"MNIST's test set, {DRAWS} draws of a belief after {EPOCHS} epochs", columns, score_rows)
        )
    return shown


def _net_and_rows(kind: str, result: dict[str, Any]) -> tuple[str, str]:
    return KINDS[kind].title, f"{result['settings']['rows'][kind]:,}"


def _order(result: dict[str, Any]) -> dict[str, None]:
    return {KINDS[kind].title: None for kind in result["settings"]["rows"]}


def _precision(variant: str) -> str:
    return "bfloat16" if variant.endswith("bfloat16") else "float32"


def _format_timings(r: dict[str, float]) -> tuple[str, ...]:
    lower = f"{r['to_plain_bfloat16']:.2f}" if "to_plain_bfloat16" in r else "–"
    return f"{r['plain_ms'] / EACH:.1f}", f"{r['ms'] / EACH:.1f}", f"{r['ratio']:.2f}", format_quartiles(r), lower
