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
from doxa_bench import beside
from doxa_bench.contenders import Task, quiet
from doxa_bench.digits import Rows, digits
from doxa_bench.kinds import BATCH, KINDS, new, noise_rows
from doxa_bench.settings import Settings
from doxa_bench.steps import GAUSSIAN, Believed, even, plain
from doxa_bench.tables import Table, libraries, refusals, spread
from doxa_bench.timing import Step, figures, in_turn

DRAWS, EACH = 50, 5  # in all, and in a visit
ROUNDS = DRAWS // EACH
CASES = {"mlp1200": 10_000, "lenet5": 1_000}  # rows
SECONDS = {"mlp1200": 240.0, "lenet5": 60.0}
LOWER = torch.bfloat16
LEARNED = "mlp400"
# Every size has a kernel of its own, and not every kernel runs on every CPU that claims to have bfloat16.
TRIED = """
import sys, torch
torch.set_default_device(sys.argv[1])
with torch.no_grad(), torch.autocast(sys.argv[1], dtype=torch.bfloat16):
    for rows in (1, 40, 2048):
        for width in (10, 20, 400, 784, 1200):
            torch.nn.Linear(width, 10 if width < 400 else width)(torch.ones(rows, width))
        torch.nn.Conv2d(1, 6, 5, padding=2)(torch.ones(rows, 1, 28, 28))
"""
EPOCHS = 2  # before its scores are compared


def ask(settings: Settings) -> Iterator[dict[str, Any]]:
    rounds, refused = settings.turns(ROUNDS), cannot_lower(settings.device)
    found: dict[str, Any] = {
        "settings": {"draws": EACH * rounds, "draws_a_visit": EACH, "chunk": CHUNK, "rounds": rounds, "rows": CASES},
        "predictions": {},
        "rivals": {},
        "missing": {},
        "libraries": beside.known(),
        "bfloat16": refused or "measured",
    }
    for kind, rows in CASES.items():
        if not settings.wants(kind):
            continue
        x, _ = noise_rows(kind, rows, settings.device)
        base, own, rivals = predictions(kind, x, refused is None, settings, found["missing"])

        def heard(done: int, kind: str = kind) -> None:
            settings.progress(f"{kind}: {done} rounds")

        limit = settings.seconds(SECONDS.get(kind, 60.0))
        together = own | {f"{case}, {library}": step for (case, library), step in rivals.items()}
        with quiet():
            taken = in_turn(base, together, rounds, limit, settings.device, heard)
        measured = {name: figures(pairs) for name, pairs in taken.items()}
        if refused is None:
            lower = f"{kind} plain bfloat16"
            for name in (n for n in own if n.endswith("belief bfloat16")):
                pairs = [(a[1], b[1]) for a, b in zip(taken[lower], taken[name], strict=True)]
                measured[name] |= {"to_plain_bfloat16": figures(pairs)["ratio"]}
        for name, figure in measured.items():
            settings.say(f"{name}: {figure['ratio']:.2f} times the plain passes")
        found["predictions"] |= {name: measured[name] for name in own}
        for case, library in rivals:
            found["rivals"].setdefault(case, {})[library] = measured[f"{case}, {library}"]
        yield found
    if refused is None and settings.wants(LEARNED):
        train, _, test = digits(settings.device)
        found["scores"] = scores(train, test, settings)
        yield found


def cannot_lower(device: str) -> str | None:
    """Why torch cannot multiply in bfloat16 here, or None; another process tries, since some CPUs end it."""
    ended = subprocess.run([sys.executable, "-c", TRIED, device.partition(":")[0]], capture_output=True, text=True)
    if ended.returncode == 0:
        return None
    lines = ended.stderr.strip().splitlines()
    why = lines[-1] if ended.returncode > 0 and lines else f"the process ends with signal {-ended.returncode}"
    return f"torch cannot multiply in it on this device: {why}"


def predictions(
    kind: str, x: Tensor, lower: bool, settings: Settings, missing: dict[str, dict[str, str]]
) -> tuple[Step, dict[str, Step], dict[tuple[str, str], Step]]:
    """Passes of the plain net, predictions of beliefs, and of other libraries."""
    device = settings.device
    rows = noise_rows(kind, device=device)
    passes = partial(plain(new(kind, device)).outputs, x, EACH)
    belief = Believed(new(kind, device), rows, doxa.learners.variational(GAUSSIAN)).belief()
    own: dict[str, Step] = {f"{kind} belief": partial(belief.predict, x, EACH)}
    if lower:
        own[f"{kind} plain bfloat16"] = lowered(passes, device)
        own[f"{kind} belief bfloat16"] = partial(belief.predict, x, EACH, autocast=LOWER)
    net = new(kind, device)
    rivals: dict[tuple[str, str], Step] = {}
    task: Callable[[str], Task] = lambda noise: Task(net, even(net), noise=noise)  # noqa: E731
    for noise, library, offer in beside.pupils(task, *rows):
        case = f"{kind} draws"
        if noise != "shared":  # a prediction knows draws alone, whatever they were learned with
            continue
        if isinstance(offer, str):
            missing.setdefault(case, {})[library] = offer
        else:
            rivals[case, library] = partial(offer.outputs, x, EACH)
    return passes, own, rivals


def lowered(step: Step, device: str) -> Step:
    def run() -> object:
        with torch.autocast(device.partition(":")[0], dtype=LOWER):
            return step()

    return run


def scores(train: Rows, test: Rows, settings: Settings) -> dict[str, Any]:
    """Test scores of a belief that learned a little, in both precisions, by the same draws."""
    torch.manual_seed(0)
    learned = Believed(
        new(LEARNED, settings.device),
        (train[0][:BATCH], train[1][:BATCH]),
        doxa.learners.variational(GAUSSIAN, doxa.noise.local),
        size=len(train[0]),
    )
    for _ in range(EPOCHS):
        for index in torch.randperm(len(train[0])).to(settings.device).split(BATCH):
            learned.step(learned.batch(train[0][index], train[1][index]))
        settings.progress("learning for the scores")
    belief = learned.belief()
    errors = doxa.judge(belief, test, samples=DRAWS).as_dict()["scores"]
    full, low = (judged(belief, test, autocast) for autocast in (None, LOWER))
    return {
        name: {"float32": full[name], "bfloat16": low[name], "monte_carlo_error": errors[name]["error"]}
        for name in full
    }


def judged(belief: doxa.Belief, test: Rows, autocast: torch.dtype | None) -> dict[str, float]:
    x, y = as_pair(test, belief.posterior.mean, "test")
    draws = belief.predict(x, DRAWS, autocast=autocast)
    p = draws.mean
    chosen = draws.log_predictive(y)
    return {
        "error": float((p.argmax(-1) != y).double().mean()),
        "nll": -float(chosen.double().mean()),
        "ece": float(ece(p, y)),
    }


def show(found: dict[str, Any]) -> list[Table]:
    rows, rivals = [], found.get("rivals", {})
    draws = found["settings"]["draws"]
    for case, r in found["predictions"].items():
        kind, _, how = case.partition(" ")
        rows.append((*_shown(kind, found), "Doxa" if "belief" in how else "plain net", _precision(how), *_numbers(r)))
    for case, others in rivals.items():
        kind = case.partition(" ")[0]
        rows += [(*_shown(kind, found), library, "float32", *_numbers(r)) for library, r in others.items()]
    heads = ("net", "rows", "who", "precision", "plain, ms a draw", "ms a draw", "ratio", "spread", "to plain bfloat16")
    notes = [f"bfloat16: {found['bfloat16']}" if found["bfloat16"] != "measured" else "", *libraries(found)]
    notes += refusals(found.get("missing", {}))
    order = sorted(rows, key=lambda row: list(_order(found)).index(row[0]))
    shown = [
        Table(
            f"{draws} draws of a prediction, times as many passes of the plain net in float32",
            heads,
            order,
            4,
            [note for note in notes if note],
        )
    ]
    if "scores" in found:
        of_scores = [
            (
                name,
                f"{s['float32']:.5f}",
                f"{s['bfloat16']:.5f}",
                f"{s['bfloat16'] - s['float32']:+.5f}",
                f"{s['monte_carlo_error']:.5f}",
            )
            for name, s in found["scores"].items()
        ]
        columns = ("score", "float32", "bfloat16", "difference", "Monte-Carlo error")
        shown.append(Table(f"MNIST's test set, {DRAWS} draws of a belief after {EPOCHS} epochs", columns, of_scores))
    return shown


def _shown(kind: str, found: dict[str, Any]) -> tuple[str, str]:
    return KINDS[kind].shown, f"{found['settings']['rows'][kind]:,}"


def _order(found: dict[str, Any]) -> dict[str, None]:
    return {KINDS[kind].shown: None for kind in found["settings"]["rows"]}


def _precision(how: str) -> str:
    return "bfloat16" if how.endswith("bfloat16") else "float32"


def _numbers(r: dict[str, float]) -> tuple[str, ...]:
    lower = f"{r['to_plain_bfloat16']:.2f}" if "to_plain_bfloat16" in r else "–"
    return f"{r['plain_ms'] / EACH:.1f}", f"{r['ms'] / EACH:.1f}", f"{r['ratio']:.2f}", spread(r), lower
