"""Tables, command lines and settings files that nobody would write; the same by the seed."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

CELLS = (
    "", "1", "-1", "0", "1.5", "1e308", "1e400", "-1e-320", "nan", "inf", "-inf", "NA", "?", "x", "=1+1", "@x", "+x",
    "2024-01-31", "2024-02-30", "0001-01-01", "9999-12-31T23:59:59Z", "2024-01-31T00:00:00-23:59", "1,5", "1.234,5",
    "1,234", "007", '"', '""', '"a', 'a"b', '"a,b"', '"a\nb"', "\ufeff", "é", "\u202e", "😀", "\x85", "\u2028", "\x1c",
    "٣", "1_000", "True", "a" * 300, "9" * 400, "0x10", " ", "\t", "1 000", "−1", "½",
)  # fmt: skip
ENCODINGS = ("utf-8", "utf-8-sig", "latin-1", "utf-16", "utf-16-le", "utf-32", "cp1252")


def odd_csv(rng: random.Random) -> bytes:
    """A table in which some cells, rows, line ends, letters or bytes are odd."""
    columns, rows = rng.choice([1, 2, 2, 3, 3, 8]), rng.choice([0, 1, 12, 20, 20, 40, 40])
    separator, end = rng.choice(",,,;\t|"), rng.choice(["\n", "\n", "\r\n", "\r"])
    names = [rng.choice(["a", "b", "y", "", "y ", *CELLS]) if rng.random() < 0.05 else f"c{k}" for k in range(columns)]
    kinds = [rng.choice(["number", "number", "word", "any", "one"]) for _ in names]
    kinds[0] = rng.choice(["number", "word"])
    lines = [separator.join(names)]
    for _ in range(rows):
        cells = [_cell(rng, kind) for kind in kinds]
        if rng.random() < 0.003:
            cells = cells[: rng.randrange(columns + 1)] * rng.choice([1, 2])
        lines.append(separator.join(cells))
    text = rng.choice(["", "", "\n\n", "\ufeff"]) + end.join(lines) + rng.choice(["", end])
    content = text.encode(rng.choice(ENCODINGS) if rng.random() < 0.2 else "utf-8", "replace")
    return _damaged(rng, content) if rng.random() < 0.15 else content


def _cell(rng: random.Random, kind: str) -> str:
    if kind == "any" or rng.random() < 0.005:
        return rng.choice(CELLS)
    return {"number": f"{rng.gauss(0, 10):.3g}", "word": rng.choice("uvw"), "one": "1"}[kind]


def _damaged(rng: random.Random, content: bytes) -> bytes:
    damaged = bytearray(content or b"x")
    for _ in range(rng.choice([1, 1, 5, 40])):
        position = rng.randrange(len(damaged))
        kind = rng.randrange(4)
        if kind == 0:
            damaged[position] ^= 1 << rng.randrange(8)
        elif kind == 1:
            damaged[position:position] = rng.choice([b"\0", b"\xff", b'"', b"\r", b",", b"\n" * 9, b"1" * 5000])
        elif kind == 2:
            del damaged[position + 1 :]
        else:
            damaged[position] = rng.randrange(256)
    return bytes(damaged)


NAMES = (
    "source", "target", "task", "drop", "keep_constant", "hold_out", "encoding", "out", "net", "prior", "posterior",
    "likelihood", "random", "learner", "noise", "kl_weight", "samples", "antithetic", "dropout", "input_dropout",
    "temperature", "burn_in", "thinning", "on_disk", "average_from", "average_every", "average_decay", "members",
    "same_start", "perturbation", "objective", "population", "perturbation_scale", "lr", "optimiser", "autocast",
    "patience", "validation_samples", "checkpoint_every", "checkpoint_steps", "seed", "device",
)  # fmt: skip
# Of sizes and times that end; what is odd in them is not that they are large.
TEXT = """
    x none true 0 1 -1 2 0.5 1e400 -1e-320 nan inf 0x1f mlp mlp: mlp:0 mlp:-3 mlp:3,x mlp:1.5 mlp:99999999999999999999
    mlp:3,activation= mlp:2,batch_norm=true mlp:2,batch_norm=7 lenet5 lenet5:3 gaussian gaussian:0 gaussian:-1
    gaussian:nan gaussian:inf gaussian:1e-300 gaussian:1e300 gaussian:x laplace:0.5 laplace(0.5) laplace(( laplace:
    laplace:1e-320 scale_mixture:share=2 scale_mixture:share=0.25,wide=1 student_t horseshoe mean_field:rho=(1,2,3)
    mean_field:layer,scale=0 mean_field:scale=1e300 annealed:5,of=tempered(0.1) annealed:of=annealed(of=annealed)
    annealed:0 tempered:-1 cosine:0.001 cosine:nan step:0.01,10 step:0.01,0 polynomial:0 warmup sgd sgd:momentum=2
    sgd:momentum=x adam:lr=1 adam:betas=(1,2) adam:amsgrad=true rmsprop:alpha=9 point variational dropout swa ema
    langevin swag laplace_approximation search auto ensemble swa:learner=swa local flipout shared local:1 low_rank:0
    low_rank:-1 low_rank:1e9 weight_space zero_one f1 categorical bernoulli gaussian_learned gaussian_learned:0
    gaussian_per_input:least=-1 bfloat16 float16 float99 cpu cuda:99 meta cpu:7 mps regression classification * *.bias
    [ ((((( a=b=c = , ,,, : é 😀 ../x /dev/null /dev/full /proc/self/mem utf-16 idna punycode hex rot13 zip
    unicode_escape undefined base64 mbcs c1 y kind price
"""
WORDS = (
    *TEXT.split(),
    "", " ", "\u202e", "\udcff", "9" * 5000, "1" + "0" * 25, ")" * 50, "x" * 5000,
)  # fmt: skip
LEARNERS = ("variational", "variational", "point", "dropout", "swa", "ema", "langevin", "search", "auto")
# What fits a setting, so that not every case ends at its first odd word.
FITTING = {
    "keep_constant": ("true",), "hold_out": ("0.2", "0.5"), "net": ("mlp:3", "mlp:2,batch_norm=true", "mlp:"),
    "prior": ("laplace:0.5", "gaussian:1e-300", "gaussian:1e300"), "noise": ("flipout", "shared", "local"),
    "kl_weight": ("0", "1e-30", "annealed:1", "1e30"), "samples": ("1", "2"), "antithetic": ("true", "false"),
    "dropout": ("0", "0.9"), "temperature": ("0", "1e30"), "burn_in": ("0", "0.99"), "members": ("1", "2"),
    "lr": ("1e-300", "1e30", "cosine:0.001", "step:0.01,10"), "optimiser": ("sgd", "adam", "rmsprop:alpha=0.9"),
    "patience": ("1",), "seed": ("-1", "18446744073709551615"), "population": ("2", "4"),
    "perturbation": ("low_rank:1",),
    "perturbation_scale": ("1e-30", "1e30"), "checkpoint_steps": ("1",), "average_from": ("0",),
    "average_decay": ("0",),
    "random": ("*.bias", "*"), "posterior": ("mean_field:layer", "mean_field:scale=1e30"),
    "likelihood": ("categorical",),
}  # fmt: skip
FLAGS = ("--resume", "--json", "--quiet", "--antithetic", "--on-disk", "--same-start", "--keep-constant", "--force")
QUICK = {"epochs": "1", "draws": "2"}
FUNCTIONS = ("sphere", "himmelblau", "rosenbrock", "rastrigin", "nothing-v1", "Nothing/x-v0")


def _odd_pairs(rng: random.Random) -> dict[str, str]:
    """Some settings that fit, and one or none that hardly does."""
    learner = rng.choice(LEARNERS)
    fitting = {name: rng.choice(FITTING[name]) for name in rng.sample([*FITTING], rng.randrange(0, 3))}
    odd = {name: rng.choice(WORDS) for name in rng.sample(NAMES[1:], rng.choice([0, 1, 1, 2]))}
    pairs = {**QUICK, "learner": learner, **fitting, **odd}
    if learner == "search":
        pairs.setdefault("population", "2")
    return pairs


def odd_settings(rng: random.Random, source: str) -> bytes:
    """A TOML file of settings, known and unknown, with values of every kind."""
    lines = [f'source = "{source}"']
    for name, word in _odd_pairs(rng).items():
        key = rng.choice([name.replace("_", "-"), f'"{name}"', f"{name}.x", f"[{name}]\nx"])
        fits = name in QUICK or word in FITTING.get(name, LEARNERS)
        value = (word if re.fullmatch(r"-?[\d.]+|true|false", word) else f'"{word}"') if fits else _toml_value(rng, 0)
        lines.append(f"{key if rng.random() < 0.03 else name} = {value}")
    content = "\n".join(lines).encode("utf-8", "surrogateescape")
    return _damaged(rng, content) if rng.random() < 0.15 else content


def _toml_value(rng: random.Random, depth: int) -> str:
    kind = rng.randrange(9)
    if kind < 3:
        text = rng.choice(WORDS)
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\udcff", "\\uD800") + '"'
    if kind == 3:
        return rng.choice(
            ["1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "0x" + "f" * 4000, "9" * 4400, "1" + "0" * 30, "0o7"]
        )
    if kind == 4:
        return rng.choice(
            ["nan", "-inf", "1e400", "-0.0", "1e-320", "true", "false", '"\\u0000"', "'a\0'", '"\\U0010FFFF"']
        )
    if kind == 5 and depth < 3:
        return "[" + ", ".join(_toml_value(rng, depth + 1) for _ in range(rng.randrange(4))) + "]"
    if kind == 6 and depth < 3:
        return "{a = " + _toml_value(rng, depth + 1) + "}"
    if kind == 7:
        return rng.choice(["[" * 3000, "{a=" * 3000, '"' * 7, "", "epochs", '"' + "x" * 5000 + '"'])
    return str(rng.choice([0, 1, 2, -1, 3, 0.5, 0.99, 1.0]))


def odd_command(rng: random.Random, sources: Sequence[str], runs: Sequence[str]) -> list[str]:
    """A command line of commands that end soon, on these tables and runs, or on none."""
    word, source, run = rng.choice(WORDS), rng.choice(sources), rng.choice([*runs, rng.choice(WORDS)])
    options = [
        piece
        for name, value in _odd_pairs(rng).items()
        for piece in rng.choice(
            [("--set", f"{name}={value}"), ("--set", f"{name}={value}")]
            if value in ("true", "false")
            else [(f"--{name.replace('_', '-')}", value), ("--set", f"{name}={value}")]
        )
    ]
    flags = rng.sample(FLAGS, rng.randrange(0, 2))
    kind = rng.randrange(10)
    if kind < 4:
        target = rng.choice(["price", "kind", "c0", "c1", word])
        return ["fit", source, *(("--target", target) if rng.random() < 0.9 else ()), *options, *flags]
    if kind == 4:
        sizes = ["--generations", rng.choice(["1", "2", word]), "--population", rng.choice(["2", "4"])]
        start = rng.choice([[], ["--start", rng.choice(["1,2", "nan,1", "1e308,1e308", "1", ",", word])]])
        return ["search", rng.choice([*FUNCTIONS, source]), *sizes, *start, *flags]
    if kind == 5:
        return [
            "predict",
            run,
            source,
            "--samples",
            rng.choice(["1", "2", word]),
            "--level",
            rng.choice(["0.9", word]),
            *flags,
        ]
    if kind == 6:
        return [
            "judge",
            run,
            source,
            "--samples",
            "2",
            *rng.choice([[], ["--shift", word], ["--encoding", word]]),
            *flags,
        ]
    if kind == 7:
        options = rng.choice([["--radius", word], ["--attack", word], ["--rows", word], ["--device", word]])
        return ["attack", run, source, "--samples", "1", *options, *flags]
    if kind == 8:
        return ["report", run, *rng.choice([[], [source], [word]]), "--out", rng.choice(["r.html", word]), *flags]
    return rng.choice(
        [
            ["prune", run, source, "--fraction", word, "--out", rng.choice(["p", word])],
            ["data", rng.choice(["show", "path", "list", word]), word],
            ["replicate", rng.choice(["list", "nothing"]), word],
            ["bench", rng.choice(["nothing", word]), "--only", word],
            [word, *flags],
            ["version", *flags, word],
        ]
    )
