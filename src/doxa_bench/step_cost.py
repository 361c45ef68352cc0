"""What does one training step of a belief cost, as a ratio to the same plain net with fused Adam?

A step is forward, loss, backward and Adam on 128 rows. For each kind of net all steps, Doxa's and those of the
libraries that are installed, are taken in turn, many rounds, in one process; each ratio is the median over rounds. Slow
nets get fewer rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import doxa
from doxa.engine.contracts import Learner
from doxa_bench import beside
from doxa_bench.contenders import Task, quiet
from doxa_bench.kinds import BATCH, KINDS, ROWS, new, noise_rows, shown
from doxa_bench.settings import Settings
from doxa_bench.steps import GAUSSIAN, MIXTURE, Believed, even, plain
from doxa_bench.tables import Table, spread
from doxa_bench.timing import Step, figures, in_turn

ROUNDS = 31
# A kind's rounds end when the next would take it past so many seconds.
SECONDS = {"mlp1200": 130.0, "mlp400": 50.0, "lenet5": 120.0, "vgg": 240.0}

variational = doxa.learners.variational
LEARNERS: dict[str, Learner] = {
    "shared gaussian": variational(GAUSSIAN),
    "shared scale_mixture": variational(MIXTURE),
    "shared gaussian, two samples": variational(GAUSSIAN, samples=2),
    "local gaussian": variational(GAUSSIAN, doxa.noise.local),
    "flipout gaussian": variational(GAUSSIAN, doxa.noise.flipout),
    "dropout": doxa.learners.dropout(0.5),
    "point": doxa.learners.point(),
}
NOISES = ("shared gaussian", "local gaussian", "flipout gaussian")
CASES = {"mlp1200": tuple(LEARNERS), "mlp400": NOISES, "lenet5": NOISES, "vgg": NOISES}


def ask(settings: Settings) -> Iterator[dict[str, Any]]:
    found: dict[str, Any] = {
        "settings": {"batch": BATCH, "rows": ROWS, "rounds": settings.turns(ROUNDS)},
        "steps": {},
        "rivals": {},
        "missing": {},
        "libraries": beside.known(),
    }
    for kind in CASES:
        base, own, rivals = steps(kind, settings, found["missing"])
        if not own and not rivals:
            continue

        def heard(done: int, kind: str = kind) -> None:
            settings.progress(f"{kind}: {done} rounds")

        together = own | {f"{case}, {library}": step for (case, library), step in rivals.items()}
        limit = settings.seconds(SECONDS.get(kind, 60.0))
        with quiet():
            taken = in_turn(base, together, settings.turns(ROUNDS), limit, settings.device, heard)
        measured = {name: figures(pairs) for name, pairs in taken.items()}
        for name, figure in measured.items():
            settings.say(f"{name}: {figure['ratio']:.2f} times the plain step")
        found["steps"] |= {case: measured[case] for case in own}
        for case, library in rivals:
            found["rivals"].setdefault(case, {})[library] = measured[f"{case}, {library}"]
        yield found


def steps(
    kind: str, settings: Settings, missing: dict[str, dict[str, str]]
) -> tuple[Step, dict[str, Step], dict[tuple[str, str], Step]]:
    """The plain step of a kind of net, Doxa's by case, other libraries' by case and name; what is missing is noted."""
    device = settings.device
    x, y = noise_rows(kind, device=device)
    own: dict[str, Step] = {}
    for how in CASES[kind]:
        if settings.wants(f"{kind} {how}"):
            belief = Believed(new(kind, device), (x, y), LEARNERS[how])
            own[f"{kind} {how}"] = partial(belief.step, belief.batch(x, y))
    rivals: dict[tuple[str, str], Step] = {}
    net = new(kind, device)
    task: Callable[[str], Task] = lambda noise: Task(net, even(net), noise=noise)  # noqa: E731
    if any(settings.wants(f"{kind} {how}") for how in NOISES):
        for noise, library, offer in beside.pupils(task, x, y):
            case = f"{kind} {noise} gaussian"
            if not settings.wants(case):
                continue
            if isinstance(offer, str):
                missing.setdefault(case, {})[library] = offer
            else:
                rivals[case, library] = partial(offer.step, x, y)
    return partial(plain(new(kind, device)).step, x, y), own, rivals


def show(found: dict[str, Any]) -> list[Table]:
    rows = [
        (*shown(case), f"{r['plain_ms']:.1f}", f"{r['ms']:.1f}", f"{r['ratio']:.2f}", spread(r))
        for case, r in found["steps"].items()
    ]
    heads = ("net", "learned with", "plain, ms", "belief, ms", "ratio", "spread of the ratio")
    own = Table("A step of a belief, times a step of the plain net", heads, rows, 2)
    columns = {kind: KINDS[kind].shown for kind in KINDS}
    others = beside.matrix(
        "A step of a belief in each library, times a step of the plain net", found, columns, "{kind} {noise} gaussian"
    )
    return [own] if others is None else [own, others]
