"""`doxa search`: from values alone to the best weights, or the best point of a function."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from doxa_cli.devices import device_of
from doxa_cli.fit import learned
from doxa_cli.options import Json, Quiet, argument, flag, option
from doxa_cli.settings import merged
from doxa_cli.taking import taking
from doxa_cli.terminal import notes, pairs, put, put_json
from doxa_settings.names import DATA, FUNCTIONS

ENVIRONMENT = re.compile(r"[\w./:-]+-v\d+")  # as gymnasium names them
# Options of a function's search; a net's has its own.
OF_FUNCTIONS = ("generations", "start")
TAKEN = (
    "target",
    "net",
    "perturbation",
    "objective",
    "population",
    "perturbation_scale",
    "workers",
    "lr",
    "epochs",
    "batch_size",
    "seed",
    "device",
)  # of the settings of doxa fit
POLICY = "policy.doxa"


@taking(TAKEN)
def search(
    context: typer.Context,
    source: Annotated[
        str,
        argument(
            "WHAT",
            "A data set by name, a table's file, a test function, or a gymnasium environment.",
            (*FUNCTIONS, *DATA),
        ),
    ],
    *,
    start: Annotated[str | None, option("NUMBERS", "Where a function's search begins, as in 1,-2.")] = None,
    generations: Annotated[
        int | None, option("N", "Of a function's or an environment's search.", default="2000", least=1)
    ] = None,
    out: Annotated[
        Path | None,
        option(
            "FOLDER",
            "Of the run; for a function's search, of a file to --resume from; for an environment's, of that and of "
            f"the policy ({POLICY}).",
            default="on data runs/ and the source's name; else nothing is kept",
        ),
    ] = None,
    resume: Annotated[bool, flag("--resume", "Go on with an interrupted search, to the bit.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Learn without gradients: a net on named data or a table, the lowest point of a function, or a policy.

    On data it ends as a run, like that of doxa fit --learner search: to be judged, pruned, attacked, reported.
    """
    from doxa.errors import BadInput

    say = notes(quiet)
    if source in FUNCTIONS:
        _refuse(context, ("target", "net", "perturbation", "objective", "lr", "epochs", "batch_size", "device"))
        found = _function(source, start, generations, settings, out, resume, quiet)
        _show(source, found, as_json, quiet)
        return
    if ENVIRONMENT.fullmatch(source):
        _refuse(context, ("target", "perturbation", "objective", "lr", "epochs", "batch_size", "start"))
        _act(source, generations, settings, out, resume, as_json, quiet)
        return
    for name in OF_FUNCTIONS:
        if context.params[name] is not None:
            raise BadInput(
                f"--{name} belongs to the search of a function ({', '.join(FUNCTIONS)}) or a policy; leave it out"
            )
    say(f"reading {source}")
    learned(merged(None, [], context.params) | {"learner": "search"}, resume, say, as_json, quiet)


def _refuse(context: typer.Context, names: Sequence[str]) -> None:
    """Say which option has nothing to do here."""
    from doxa.errors import BadInput

    for name in names:
        if context.params[name] is not None:
            raise BadInput(f"--{name.replace('_', '-')} is of no use to this search; leave it out")


def _act(
    name: str,
    generations: int | None,
    settings: Mapping[str, Any],
    out: Path | None,
    resume: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """A policy for an environment, and what it earns in new episodes."""
    import torch

    from doxa.runs.plan import built
    from doxa.search import engines, policy
    from doxa.search.episodes.stage import Scenery

    where = device_of(settings["device"] or "cpu")
    scenery = Scenery(name)
    seed, workers = settings["seed"] or 0, settings["workers"]
    torch.manual_seed(seed)
    given: dict[str, Any] = {"size": settings["population"], "scale": settings["perturbation_scale"]}
    found = policy(
        name,
        built(settings["net"] or "mlp:64,64,activation=tanh", scenery.shape, scenery.outputs).to(where),
        seed=seed,
        generations=generations or 2000,
        engine=engines.pool(workers) if workers else None,
        checkpoint=out,
        resume=resume,
        progress=not quiet,
        **{k: v for k, v in given.items() if v is not None},
    )
    if out is not None:
        found.save(out / POLICY)
    returns = found.play(100, seed=seed + 1)
    error = float(returns.std() / len(returns) ** 0.5)
    told = {
        "environment": name,
        "return": float(returns.mean()),
        "error": error,
        "episodes": len(returns),
        "solved": found.solved,
        "generations": len(found.trajectory),
        "policy": None if out is None else str(out / POLICY),
    }
    if as_json:
        put_json({**told, "trajectory": found.trajectory})
    elif quiet:
        put(told["return"])
    else:
        earned = f"{told['return']:.1f} ± {error:.1f} over {len(returns)} new episodes"
        solved = "yes" if found.solved else "no"
        kept = [] if out is None else [("policy", str(out / POLICY))]
        pairs([("return", earned), ("solved", solved), *_went(found.trajectory), *kept])


def _function(
    name: str,
    start: str | None,
    generations: int | None,
    settings: Mapping[str, Any],
    out: Path | None,
    resume: bool,
    quiet: bool,
) -> Any:
    from doxa.errors import BadInput
    from doxa.search import engines, minimise
    from doxa.search.functions import TABLE

    function = TABLE[name]
    try:
        begins = function.start if start is None else tuple(float(word) for word in start.split(","))
    except ValueError:
        raise BadInput(f"--start takes numbers with commas between them, as in 1,-2; got {start!r}") from None
    function.require_width(len(begins))
    scale, workers = settings["perturbation_scale"], settings["workers"]
    return minimise(
        function,
        list(begins),
        seed=settings["seed"] or 0,
        generations=generations or 2000,
        size=settings["population"],
        scale=1.0 if scale is None else scale,
        batched=True,
        engine=engines.pool(workers) if workers else None,
        checkpoint=out,
        resume=resume,
        progress=not quiet,
    )


def _show(name: str, found: Any, as_json: bool, quiet: bool) -> None:
    told = {
        "function": name,
        "best": found.best.tolist(),
        "value": found.value,
        "generations": len(found.trajectory),
        "scale": found.scale.tolist(),
    }
    if as_json:
        put_json({**told, "trajectory": found.trajectory})
    elif quiet:
        put(found.value)
    else:
        numbers = ", ".join(f"{v:.6g}" for v in told["best"])
        pairs([("best", numbers), ("value", f"{found.value:.6g}"), *_went(found.trajectory)])


def _went(trajectory: Sequence[Mapping[str, float]]) -> list[tuple[str, str]]:
    """How a search went: how many generations, and the scale and the norms of the slopes in the last of them."""
    last = trajectory[-1]
    return [
        ("generations", str(len(trajectory))),
        ("last scale", f"{last['scale']:.3g}"),
        ("last gradient", f"{last['gradient']:.3g} by the mean, {last['scale_gradient']:.3g} by the log of the scales"),
    ]
