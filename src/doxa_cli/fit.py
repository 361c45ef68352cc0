"""`doxa fit`: from a table or a named data set to a run."""

from __future__ import annotations

import shlex
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from doxa_cli.options import Json, Quiet, flag, option
from doxa_cli.scores import MAIN, show_findings, show_scores
from doxa_cli.setting_options import SETTINGS, with_setting_options
from doxa_cli.settings import DATA_TYPES, merge_settings
from doxa_cli.terminal import Say, note_printer, print_json, print_line, printable, row_count_printer

if TYPE_CHECKING:
    from doxa.runs import SavedRun, TrainingData


@with_setting_options(SETTINGS)
def fit(
    *,
    resume: Annotated[
        bool,
        flag("--resume", "Go on with the interrupted run in the folder, given the same arguments, to the same result."),
    ] = False,
    config: Annotated[
        Path | None,
        option("FILE", "Read settings from this TOML file, named as the options are, as in batch_size = 64."),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        option(
            "NAME=VALUE",
            "Set one setting, over that of the file, as in epochs=20; repeat the option for several.",
            "--set",
        ),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Learn a belief from a table or a named data set, judge it on rows held out, and write both to a folder.

    Example: doxa fit houses.csv --target price --out runs/houses

    Example: doxa fit mnist --net lenet5 --learner variational --prior laplace:0.5 --epochs 10

    Settings are taken from --config, then from --set, then from the options; of several values the last one counts.

    Whatever is chosen by name takes arguments after a colon, as in laplace:0.5 or laplace:scale=0.5.
    """
    say = note_printer(quiet)
    if settings["source"] is not None:
        say(f"reading {settings['source']}")
    learn_and_show(merge_settings(config, assignments or [], settings), resume, say, as_json, quiet)


def learn_and_show(settings: dict[str, Any], resume: bool, say: Say, as_json: bool, quiet: bool) -> None:
    """From settings, those of the rows among them, to a run and what is said of it."""
    from doxa.errors import BadInput, Interrupted
    from doxa.runs import Plan, learn, load_training_data
    from doxa.runs.claim import require_free_folder
    from doxa.runs.image_recipe import assume_for_images

    data_settings = {name: settings.pop(name) for name in DATA_TYPES if name in settings}
    source = data_settings.pop("source", None)
    if source is None:
        raise BadInput(
            "say what to learn from: doxa fit FILE.csv --target COLUMN, or doxa fit NAME with a name of doxa data list"
        )
    folder = Path(data_settings.pop("out", Path("runs") / (Path(source).stem or "run")))
    data_settings["drop"] = tuple(data_settings.get("drop", ()))
    plan = Plan.from_settings(settings)
    if "learner" in settings:
        plan.require_used()
    require_free_folder(folder, resume)
    training_data = load_training_data(source, seed=plan.seed, say=row_count_printer(say), **data_settings)
    if "hold_out" in data_settings and training_data.reload_arguments is not None and training_data.preparation is None:
        say(f"--hold-out is of no use here: {source} has test rows of its own")
    assumed = assume_for_images(settings, training_data)
    if assumed:
        say("images: assumed " + " ".join(f"--{k.replace('_', '-')} {v}" for k, v in assumed.items()))
    plan = Plan.from_settings({**settings, **assumed})
    say(_summary(training_data))
    try:
        run = learn(training_data, plan, folder, resume=resume, progress=not quiet, say=say)
    except KeyboardInterrupt as error:
        resume_hint = f"; what was learned is kept in {folder}: the same command with --resume goes on"
        words = f"interrupted{resume_hint if folder.exists() else ''}"
        raise Interrupted(words, signal=getattr(error, "signal", signal.SIGINT)) from None
    _show(run, as_json, quiet)


def _summary(training_data: TrainingData) -> str:
    rows = f"{len(training_data.train[1]):,} rows to learn from, {len(training_data.test[1]):,} held out"
    kind = f"{len(training_data.classes):,} classes" if training_data.classes else "a quantity"
    return f"{training_data.name}: {training_data.target} is {kind} ({training_data.task}); {rows}"


def _show(run: SavedRun, as_json: bool, quiet: bool) -> None:
    result, spec = run.result(), run.spec
    if as_json:
        shown_names = ("data", "task", "target", "classes", "rows", "held_out", "plan", "kl_weight", "noise", "trials")
        shown_spec = {name: spec[name] for name in shown_names if name in spec}
        seconds = result["stamp"]["seconds"]
        print_json(
            {
                "run": str(run.folder),
                **shown_spec,
                "scores": result["scores"],
                "findings": result["findings"],
                "seconds": seconds,
            }
        )
        return
    if quiet:
        print_line(run.folder)
        return
    show_scores(f"On {spec['held_out']:,} rows held out", result["scores"], MAIN)
    show_findings(result["findings"])
    folder = shlex.quote(printable(run.folder))
    print("\nNext:")
    if run.preparation is not None:
        print(f"  doxa predict {folder} NEW.csv --out predictions.csv")
    print(f"  doxa judge {folder}")
    print(f"  doxa report {folder} --out report.html")
