"""Files with a seal that is right and a header that Doxa never wrote: what someone could send who means harm.

A file that Doxa wrote is taken apart, something in its header or its tensors is exchanged, and it is sealed again. It
is to be refused, or answered from like any other; some of it must be refused.
"""

from __future__ import annotations

import copy
import json
import math
import random
import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

import doxa
from doxa.storage import sealed
from doxa_bench.faults import work
from doxa_bench.faults.attempts import Accepted, note_block, try_each
from doxa_bench.faults.contract import Case, Outcome, Workshop
from doxa_bench.faults.processes.audit import CANARY
from doxa_bench.faults.processes.jobs import Job

BLOCK = 40  # headers in a case
TOLD = "hold NaN or infinity"  # of buffers, with a warning, since some nets mean it
MEMORY = 2 << 30
CODE = f"__import__('os').system('touch {CANARY}')"
DEEP = 2000  # brackets within brackets


class Headers:
    """A block of hostile files."""

    asks = "files sealed again after their headers or tensors were exchanged for hostile ones"
    share = 1.0

    def try_case(self, case: Case, workshop: Workshop) -> Outcome:
        outcome = Outcome()
        subject = [*SUBJECTS][case.number % len(SUBJECTS)]
        with workshop.folder() as folder:
            arguments = {"folder": str(folder), "subject": subject, "seed": f"{case.seed} {case.number}"}
            call = "doxa_bench.faults.kinds.headers:try_headers"
            job = Job(call, arguments, timeout=300, memory=MEMORY, audit=True, within=str(folder))
            note_block(outcome, workshop.run(job), f"hostile headers of {subject}")
            outcome.judge_traces(folder, subject)
        return outcome


def try_headers(folder: str, subject: str, seed: str, number: int = BLOCK) -> dict[str, Any]:
    """Write one file, exchange something in it so many times, and ask."""
    make, ask = SUBJECTS[subject]
    path = make(Path(folder))
    path.with_name("checkpoint-previous.doxa").unlink(missing_ok=True)  # or that is gone on with
    header, tensors = take_apart(path)
    hand = Hand(Path(folder), path, ask)
    hand.show(
        seal(json.dumps(header), tensors)
    )  # sealed again unchanged it is accepted, or nothing here would be tried

    unchanged = json.dumps(header)

    def attempts() -> Iterator[tuple[str, Callable[[], Any]]]:
        for k in range(number):
            rng = random.Random(f"{seed} {k}")
            name, text, changed, must_refuse = exchange(rng, header, tensors)
            while text == unchanged and changed is tensors:  # what was exchanged for the like of it is no attempt
                name, text, changed, must_refuse = exchange(rng, header, tensors)
            yield f"{subject} {k}, {name}", partial(hand.show, seal(text, changed), must_refuse)

    return try_each(attempts())


@dataclass(frozen=True)
class Hand:
    """Shows forged files to who reads them, each in a folder like the first."""

    folder: Path
    path: Path
    ask: Callable[[Path], Any]

    def show(self, content: bytes, must_refuse: bool = False) -> None:
        root = self.folder / "run"
        copied = self.folder / "forged"
        shutil.rmtree(copied, ignore_errors=True)
        shutil.copytree(root, copied)
        path = copied / self.path.relative_to(root)
        path.write_bytes(content)
        with warnings.catch_warnings(record=True) as words:
            warnings.simplefilter("always")
            self.ask(path)
        if must_refuse and not any(TOLD in str(word.message) for word in words):
            raise Accepted("was accepted")


def take_apart(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The header and the tensors of a sealed file."""
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        header: dict[str, Any] = json.loads(json.loads(file.metadata()["doxa"])["header"])
        return header, {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118


def seal(text: str, tensors: dict[str, Tensor]) -> bytes:
    """A file with any header and the digest that belongs to it."""
    metadata = {"doxa": json.dumps({"header": text, "sha256": sealed.sha256_of(text, tensors)})}
    return save({name: tensor.clone() for name, tensor in tensors.items()}, metadata=metadata)


def exchange(
    rng: random.Random, header: dict[str, Any], tensors: dict[str, Tensor]
) -> tuple[str, str, dict[str, Tensor], bool]:
    """A name for what was done, the header's text, the tensors, and whether that must be refused."""
    if rng.random() < 0.25:
        name, changed, must_refuse = exchange_tensor(rng, tensors)
        return name, json.dumps(header), changed, must_refuse
    header = copy.deepcopy(header)
    if rng.random() < 0.15:
        value = rng.choice(VERSIONS)
        return f"version {value!r}", json.dumps({**header, "version": value}), tensors, True
    places = list(_places(header))
    container, key, name = rng.choice(places)
    what = rng.random()
    if what < 0.1:
        del container[key]
        return f"without {name}", json.dumps(header), tensors, False
    if what < 0.3:
        other, other_key, other_name = rng.choice(places)
        container[key] = copy.deepcopy(other[other_key])
        return f"{name} like {other_name}", json.dumps(header), tensors, False
    if what < 0.45:
        container[key] = "@"
        raw = rng.choice(RAW)
        return f"{name} = {raw[:30]}", json.dumps(header).replace('"@"', raw), tensors, False
    value = rng.choice(VALUES)
    container[key] = value
    return f"{name} = {str(value)[:40]!r}", json.dumps(header), tensors, False


def _places(value: Any, name: str = "") -> Iterator[tuple[Any, Any, str]]:
    """Every place in nested tables and lists, with its name."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key, f"{name}.{key}"
        yield from _places(inner, f"{name}.{key}")


def exchange_tensor(rng: random.Random, tensors: dict[str, Tensor]) -> tuple[str, dict[str, Tensor], bool]:
    """One tensor less, another shape or kind of numbers, or numbers that are none."""
    name = rng.choice(sorted(tensors))
    tensor, changed = tensors[name], dict(tensors)
    what = rng.choice(("missing", "renamed", "longer", "flat", "empty", "of bytes", "NaN", "infinite"))
    if what in ("NaN", "infinite") and (not tensor.is_floating_point() or not tensor.numel()):
        what = "missing"
    if what in ("missing", "renamed"):
        del changed[name]
        if what == "renamed":
            changed[f"{name}.{CANARY}"] = tensor
        return f"{name} {what}", changed, False
    if what == "longer":
        changed[name] = torch.cat([tensor.reshape(-1), tensor.reshape(-1)[:1]])
    elif what == "flat":
        changed[name] = tensor.reshape(-1)[:1].clone()
    elif what == "empty":
        changed[name] = tensor.reshape(-1)[:0].clone()
    elif what == "of bytes":
        changed[name] = tensor.to(torch.uint8)
    else:
        changed[name] = tensor.clone()
        place = rng.randrange(tensor.numel())
        changed[name].view(-1)[place] = math.nan if what == "NaN" else math.inf
        in_buffer = name.endswith("rows") and place % tensor.shape[-1] >= sum(
            p.numel() for p in work.net().parameters()
        )
        return f"{name} {what}", changed, _holds_weights(name) and not in_buffer
    return f"{name} {what}", changed, changed[name].shape != tensor.shape and _holds_weights(name)


def _holds_weights(name: str) -> bool:
    """Whether a tensor is a posterior's, each number of which a prediction depends on."""
    return "optimiser" not in name and name.split(".")[-1] in ("mean", "rho", "rows")


VERSIONS = [-1, 0, sealed.VERSION + 1, 10**9, math.inf, -math.inf, math.nan, 1.5, True, "1", None, [], "Infinity"]
VALUES: list[Any] = [
    *(-1, 0, 1, 2, 10**9, 2**31, 2**63, 2**64, -(2**63), 10**30, 0.5, -0.5, 1e308, -1e308, 1e-320),
    *(math.inf, -math.inf, math.nan, None, True, False, "", "x", "a" * 10_000, [], {}, [[]], [None], [0] * 10_000),
    *(
        [10**9],
        [10**5, 10**5],
        [-1],
        [2**62, 4],
        {"": ""},
        {"is": "Gaussian"},
        {"is": CODE},
        {"is": "Gaussian", "scale": []},
    ),
    *(
        {"is": "Gaussian", "scale": []},
        {"is": "Mixture", "parts": 10**9},
        {"is": "categorical"},
        {"members": 10**9},
        10**9 + 0.5,
    ),
    *(CODE, f"{CANARY}.{CANARY}", "os.system", "builtins.eval", "../../../etc/passwd", "\0", "\ud800", "nan", "1e999"),
    *("F64", "torch.float64", "doxa.priors.gaussian", "__class__", "%s" * 50, "{0.__class__}"),
]
RAW = [
    "[" * DEEP + "]" * DEEP,
    '{"is":' * DEEP + "1" + "}" * DEEP,
    "9" * 5000,
    "1e400",
    "-1e400",
    "Infinity",
    "NaN",
    '"\\ud800"',
    '"\\u0000"',
    "[" + "1," * 100_000 + "1]",
    '{"a":1,"a":2}',
    "[" * 100_000,
    "",
    "nul",
]


def _belief_of(learner: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        work.learn(str(folder / "run"), learner)
        return folder / "run" / "belief.doxa"

    return make


def _ask_belief(path: Path) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        draws = doxa.load(path, work.net()).predict(work.rows(7)[0], 2)
    if not bool(draws.outputs.isfinite().all()) and not any(TOLD in str(w.message) for w in told):
        raise Accepted("predicts numbers that are none, without a word")


def _checkpoint(folder: Path) -> Path:
    work.learn(str(folder / "run"), "shared")
    return folder / "run" / "checkpoint.doxa"


def _search_checkpoint(folder: Path) -> Path:
    work.find(str(folder / "run"), pool=False)
    return folder / "run" / "checkpoint.doxa"


def _game_checkpoint(folder: Path) -> Path:
    work.play(str(folder / "run"))
    return folder / "run" / "part-0" / "checkpoint.doxa"


# How a file comes to be, and how it is read.
SUBJECTS: dict[str, tuple[Callable[[Path], Path], Callable[[Path], Any]]] = {
    "a belief": (_belief_of("shared"), _ask_belief),
    "a belief of samples": (_belief_of("langevin"), _ask_belief),
    "an ensemble": (_belief_of("ensemble"), _ask_belief),
    "dropout": (_belief_of("dropout"), _ask_belief),
    "a checkpoint": (_checkpoint, lambda path: work.learn(str(path.parent), "shared") and None),
    "a search": (_search_checkpoint, lambda path: work.find(str(path.parent), pool=False) and None),
    "a game": (_game_checkpoint, lambda path: work.play(str(path.parent.parent)) and None),
}
