"""`doxa fit`: from a table or a named data set to a run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from doxa_cli.options import Json, Quiet, flag, option
from doxa_cli.scores import MAIN, show_findings, show_scores
from doxa_cli.settings import KINDS, merged
from doxa_cli.taking import SETTINGS, taking
from doxa_cli.terminal import Say, notes, printable, put, put_json, reading

if TYPE_CHECKING:
    from doxa.runs import Material, Opened


@taking(SETTINGS)
def fit(
    *,
    resume: Annotated[bool, flag("--resume", "Go on with an interrupted run, to the bit.")] = False,
    config: Annotated[Path | None, option("FILE", "TOML with settings, named as the options.")] = None,
    assignments: Annotated[
        list[str] | None, option("NAME=VALUE", "A setting that overrides the file's; give several.", "--set")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Learn a belief from a table or a named data set, judge it on rows held out, and write both to a folder.

    Settings come from --config, then --set, then the options: the later one counts.

    Whatever has a name takes arguments after a colon, as in --prior laplace:0.5.
    """
    say = notes(quiet)
    if settings["source"] is not None:
        say(f"reading {settings['source']}")
    learned(merged(config, assignments or [], settings), resume, say, as_json, quiet)


def learned(settings: dict[str, Any], resume: bool, say: Say, as_json: bool, quiet: bool) -> None:
    """From settings, those of the rows among them, to a run and what is said of it."""
    from doxa.errors import BadInput
    from doxa.runs import Plan, gathered, learn
    from doxa.runs.learn import require_free

    about = {name: settings.pop(name) for name in KINDS if name in settings}
    where = about.pop("source", None)
    if where is None:
        raise BadInput("say what to learn from: doxa fit FILE.csv --target COLUMN, or a data set by name")
    folder = Path(about.pop("out", Path("runs") / (Path(where).stem or "run")))
    about["drop"] = tuple(about.get("drop", ()))
    plan = Plan.of(settings)
    if "learner" in settings:
        plan.require_used()
    require_free(folder, resume)
    material = gathered(where, seed=plan.seed, say=reading(say), **about)
    if "hold_out" in about and material.again is not None and material.preparation is None:
        say(f"--hold-out is of no use here: {where} has test rows of its own")
    plan = Plan.of({**settings, **_assumed(settings, material, say)})
    say(_summary(material))
    try:
        run = learn(material, plan, folder, resume=resume, progress=not quiet, say=say)
    except KeyboardInterrupt:
        kept = f"; what was learned is kept in {folder}: the same command with --resume goes on"
        raise KeyboardInterrupt(f"interrupted{kept if folder.exists() else ''}") from None
    _show(run, as_json, quiet)


def _assumed(settings: dict[str, Any], material: Material, say: Say) -> dict[str, Any]:
    """What is decided for images, of which there are too many to try settings on; said aloud."""
    images = material.train[0].dim() == 4
    if "learner" in settings or not images:
        return {}
    from doxa.runs.learn import enough_epochs

    assumed = {"kl_weight": "0.1", "epochs": enough_epochs(len(material.train[1]), settings.get("batch_size"))}
    assumed = {"learner": "variational", **{k: v for k, v in assumed.items() if k not in settings}}
    say("images: assumed " + " ".join(f"--{k.replace('_', '-')} {v}" for k, v in assumed.items()))
    return assumed


def _summary(material: Material) -> str:
    rows = f"{len(material.train[1]):,} rows to learn from, {len(material.test[1]):,} held out"
    kind = f"{len(material.classes):,} classes" if material.classes else "a quantity"
    return f"{material.name}: {material.target} is {kind} ({material.task}); {rows}"


def _show(run: Opened, as_json: bool, quiet: bool) -> None:
    result, spec = run.result(), run.spec
    if as_json:
        kept = ("data", "task", "target", "classes", "rows", "held_out", "plan", "kl_weight", "noise", "trials")
        found = {name: spec[name] for name in kept if name in spec}
        seconds = result["stamp"]["seconds"]
        put_json(
            {
                "run": str(run.folder),
                **found,
                "scores": result["scores"],
                "findings": result["findings"],
                "seconds": seconds,
            }
        )
        return
    if quiet:
        put(run.folder)
        return
    show_scores(f"On {spec['held_out']:,} rows held out", result["scores"], MAIN)
    show_findings(result["findings"])
    folder = shlex.quote(printable(run.folder))
    print("\nNext:")
    if run.preparation is not None:
        print(f"  doxa predict {folder} NEW.csv --out predictions.csv")
    print(f"  doxa judge {folder}")
    print(f"  doxa report {folder} --out report.html")
