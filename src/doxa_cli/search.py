"""`doxa search`: from values alone to the best weights, or the best point of a function."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from doxa_cli.devices import device_of
from doxa_cli.fit import learn_and_show
from doxa_cli.options import Json, Quiet, argument, flag, option
from doxa_cli.setting_options import SETTINGS, with_setting_options
from doxa_cli.settings import merge_settings
from doxa_cli.terminal import note_printer, print_json, print_line, print_pairs
from doxa_settings.names import DATA, FUNCTIONS

ENVIRONMENT = re.compile(r"[\w./:-]+-v\d+")  # as gymnasium names them
# Options of a function's search, and what to do on data.
FUNCTION_OPTIONS = {"generations": "give --epochs instead", "start": "leave it out"}
LEARNING_OPTIONS = (
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
DATA_OPTIONS = ("target", "perturbation", "objective", "lr", "epochs", "batch_size")  # of use on data alone
POLICY = "policy.doxa"


@with_setting_options(LEARNING_OPTIONS)
def search(
    context: typer.Context,
    source: Annotated[
        str,
        argument(
            "WHAT",
            "Search on this data set or table, for the minimum of this function "
            f"({', '.join(FUNCTIONS)}), or in this gymnasium environment, as in CartPole-v1.",
            (*FUNCTIONS, *DATA),
        ),
    ],
    *,
    start: Annotated[
        str | None,
        option("NUMBERS", "Begin the search of a function at this point, as in 1,-2.", default="the function's own"),
    ] = None,
    generations: Annotated[
        int | None,
        option(
            "N", "Search a function or an environment for at most this many generations.", default="2000", minimum=1
        ),
    ] = None,
    out: Annotated[
        Path | None,
        option(
            "FOLDER",
            "Write the run to this folder, or for a function or an environment what --resume needs, and the policy "
            f"({POLICY}).",
            default="on data runs/ and the source's name; else nothing is kept",
        ),
    ] = None,
    resume: Annotated[
        bool,
        flag(
            "--resume", "Go on with the interrupted search in the folder, given the same arguments, to the same result."
        ),
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Learn without gradients: a net on a data set or a table, the minimum of a function, or a policy.

    Example: doxa search two_moons --net mlp:16 --population 50

    Example: doxa search rosenbrock --start -1,2

    On data it ends as a run, as doxa fit --learner search does, which can be judged, pruned, attacked and reported.

    The defaults below are those on data. For a function the scale is 1, and the population goes by its dimension.

    For an environment the net is mlp:64,64,activation=tanh, the scale 0.5 and the population 40.
    """
    from doxa.errors import BadInput, require_whole

    say = note_printer(quiet)
    if settings["population"] is not None:
        setting = SETTINGS["population"][1]
        require_whole("population", settings["population"], setting.minimum, setting.maximum)
    if source in FUNCTIONS:
        _refuse_options(context, ("net", "device", *DATA_OPTIONS), "a function")
        search_result = _minimise_function(source, start, generations, settings, out, resume, quiet)
        _show(source, search_result, as_json, quiet)
        return
    if ENVIRONMENT.fullmatch(source):
        _refuse_options(context, ("start", *DATA_OPTIONS), "a policy")
        _search_policy(source, generations, settings, out, resume, as_json, quiet)
        return
    for name, advice in FUNCTION_OPTIONS.items():
        if context.params[name] is not None:
            raise BadInput(
                f"--{name} belongs to the search of a function ({', '.join(FUNCTIONS)}) or a policy, and {source} is "
                f"taken for data; {advice}"
            )
    say(f"reading {source}")
    learn_and_show(merge_settings(None, [], context.params) | {"learner": "search"}, resume, say, as_json, quiet)


def _refuse_options(context: typer.Context, names: Sequence[str], goal: str) -> None:
    """Say which option has nothing to do here."""
    from doxa.errors import BadInput

    for name in names:
        if context.params[name] is not None:
            raise BadInput(f"--{name.replace('_', '-')} is of no use to this search, which is for {goal}; leave it out")


def _search_policy(
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

    from doxa.runs.plan import build_net
    from doxa.search import engines, policy
    from doxa.search.episodes.environments import EnvironmentSpec

    device = device_of(settings["device"] or "cpu")
    env_spec = EnvironmentSpec(name)
    seed, workers = settings["seed"] or 0, settings["workers"]
    torch.manual_seed(seed)
    options: dict[str, Any] = {"size": settings["population"], "scale": settings["perturbation_scale"]}
    learned_policy = policy(
        name,
        build_net(settings["net"] or "mlp:64,64,activation=tanh", env_spec.observation_shape, env_spec.output_count).to(
            device
        ),
        seed=seed,
        generations=generations or 2000,
        engine=engines.pool(workers) if workers else None,
        checkpoint=out,
        resume=resume,
        progress=not quiet,
        **{k: v for k, v in options.items() if v is not None},
    )
    if out is not None:
        learned_policy.save(out / POLICY)
    returns = learned_policy.play(100, seed=seed + 1)
    error = float(returns.std() / len(returns) ** 0.5)
    summary = {
        "environment": name,
        "return": float(returns.mean()),
        "error": error,
        "episodes": len(returns),
        "solved": learned_policy.solved,
        "generations": len(learned_policy.trajectory),
        "policy": None if out is None else str(out / POLICY),
    }
    if as_json:
        print_json({**summary, "trajectory": learned_policy.trajectory})
    elif quiet:
        print_line(summary["return"])
    else:
        return_text = f"{summary['return']:.1f} ± {error:.1f} over {len(returns)} new episodes"
        solved = "yes" if learned_policy.solved else "no"
        policy_row = [] if out is None else [("policy", str(out / POLICY))]
        print_pairs(
            [("return", return_text), ("solved", solved), *_search_summary(learned_policy.trajectory), *policy_row]
        )


def _minimise_function(
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
        start_point = function.start if start is None else tuple(float(word) for word in start.split(","))
    except ValueError:
        raise BadInput(f"--start takes numbers with commas between them, as in 1,-2; got {start!r}") from None
    function.require_width(len(start_point))
    scale, workers = settings["perturbation_scale"], settings["workers"]
    return minimise(
        function,
        list(start_point),
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


def _show(name: str, search_result: Any, as_json: bool, quiet: bool) -> None:
    summary = {
        "function": name,
        "best": search_result.best.tolist(),
        "value": search_result.value,
        "generations": len(search_result.trajectory),
        "scale": search_result.scale.tolist(),
    }
    if as_json:
        print_json({**summary, "trajectory": search_result.trajectory})
    elif quiet:
        print_line(search_result.value)
    else:
        numbers = ", ".join(f"{v:.6g}" for v in summary["best"])
        print_pairs(
            [("best", numbers), ("value", f"{search_result.value:.6g}"), *_search_summary(search_result.trajectory)]
        )


def _search_summary(trajectory: Sequence[Mapping[str, float]]) -> list[tuple[str, str]]:
    """How a search went: how many generations, and the scale and the norms of the slopes in the last of them."""
    if not trajectory:  # the point that it began at was found wanting before any other
        return [("generations", "0")]
    last = trajectory[-1]
    return [
        ("generations", str(len(trajectory))),
        ("last scale", f"{last['scale']:.3g}"),
        ("last gradient", f"{last['gradient']:.3g} by the mean, {last['scale_gradient']:.3g} by the log of the scales"),
    ]
