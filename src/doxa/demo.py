"""`doxa demo`: what weight uncertainty is worth, on digits and on a curve, in a minute and without a network."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import active_children, get_context, resource_tracker
from os import PathLike
from pathlib import Path
from typing import Any

import torch

from doxa import data, kl_weights, learners, likelihoods, nets, noise, priors, rates
from doxa.belief import Belief
from doxa.data.card import Card
from doxa.data.curve import CARD as CURVE
from doxa.data.digits import CARD as DIGITS
from doxa.errors import BadInput, whole
from doxa.fit import fit
from doxa.judge.evidence import evidence
from doxa.judge.verdict import judge
from doxa.results import Result, combine, write_result

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
CORES = 2
RATES = (0.1, 0.25, 0.5)  # of dropout, tried on validation rows
WEIGHTS = (1.0, 0.3, 0.1, 0.03)  # of the KL, tried there too
RADIUS = 0.1  # of the attack, where pixels run from 0 to 1
DRAWS = 64

Say = Callable[[str], None]
Pair = tuple[Any, Any]


@dataclass(frozen=True)
class Contender:
    """A way to learn, with the settings to choose from.

    `epochs` and `lr` had the lowest mean validation NLL of three seeds on one grid for all: 60 or 100 epochs at 0.003,
    0.01 or 0.03 on digits, 200 or 400 at 0.005, 0.01 or 0.02 on the curve. Early stopping is what keeps a net without
    a prior from overfitting: it gets it, and the belief does without.
    """

    name: str
    tried: dict[str, Any]
    epochs: int
    lr: float

    @property
    def stops_early(self) -> bool:
        return self.name != "belief"

    def settings(self, choice: str) -> dict[str, Any]:
        """What it learned with, in words."""
        return {
            "learner": choice,
            "chosen among": ", ".join(self.tried) if len(self.tried) > 1 else "–",
            "prior": "none" if self.stops_early else "N(0, 1) on every weight",
            "epochs": self.epochs,
            "epoch kept": "the best on validation rows" if self.stops_early else "the last",
            "learning rate": f"{self.lr:g}, falling as a cosine",
        }


@dataclass(frozen=True)
class Task:
    """What there is to learn, and how it is judged: `show` says what `evidence` needs besides the test rows."""

    contenders: tuple[Contender, ...]
    net: Callable[[], Any]
    likelihood: Any
    batch_size: int
    train: Pair
    validation: Pair
    test: Pair
    show: dict[str, Any]
    settings: dict[str, Any]

    def learn(self, contender: Contender, learner: Any, seed: int) -> Belief:
        torch.manual_seed(seed)
        return fit(
            self.net(),
            self.train,
            learner=learner,
            likelihood=self.likelihood,
            epochs=contender.epochs,
            batch_size=self.batch_size,
            lr=rates.cosine(contender.lr),
            validation=self.validation,
            validation_samples=8 if contender.stops_early else 4,  # the belief's is looked at, not acted on
            # So patient that it never stops: the epoch with the best validation NLL is kept.
            patience=contender.epochs if contender.stops_early else None,
            seed=seed,
            progress=False,
        )


def run(
    folder: str | PathLike[str],
    say: Say,
    seeds: Sequence[int] = SEEDS,
    epochs: int | None = None,
    cores: int = CORES,
) -> list[Result]:
    """Learn, judge and report; results and page are written to `folder`, and the results come back.

    Whatever is chosen is chosen by the NLL of validation rows, with the first seed; the test rows are opened once, at
    the end. Files of an earlier demo are overwritten, and no others. `epochs` cuts every training short; the results
    are the same on any number of `cores`.
    """
    from doxa import report

    seeds, cores, folder = [whole("seeds", seed, least=None) for seed in seeds], whole("cores", cores), Path(folder)
    if not seeds:
        raise BadInput("the demo needs at least one seed")
    _require_own(folder)
    found = {}
    # The beliefs take longest: begun first, all ends together.
    for of, result in _worked(sorted(FILES, key=lambda of: of[1] != "belief"), seeds, epochs, cores):
        found[of] = result
        learner = result["settings"]["learner"]
        say(f"{of[0]}: {of[1]} ({learner}), {result['stamp']['seconds']:.0f} s")
    results = [found[of] for of in FILES]
    for of, result in zip(FILES, results, strict=True):
        write_result(folder / FILES[of], result)
    report.write(results, folder / PAGE)
    return results


def table(results: Sequence[Result]) -> tuple[list[str], list[list[str]]]:
    """The digits' scores for a terminal: a column for each contender, the best of each row with a star."""
    from doxa.report.runs import grouped
    from doxa.report.table import table as scores

    found = scores(grouped(results)[0].runs, COLUMNS)
    marks = {"best": " ★", "close": " ≈", "": "  "}
    columns = [[cell.shown + marks[cell.mark] for cell in cells] for _, cells in found.rows]
    heads = [score.heading for score in found.columns]
    return [run.name for run, _ in found.rows], [list(row) for row in zip(heads, *columns, strict=True)]


def _worked(
    jobs: Sequence[tuple[str, str]], seeds: Sequence[int], epochs: int | None, cores: int
) -> Iterator[tuple[tuple[str, str], Result]]:
    """The result of each job as it is done: here where there is one core, else in processes of their own."""
    if cores == 1:
        yield from ((of, contend(*of, seeds, epochs)) for of in jobs)
        return
    with _workers(cores) as pool:
        with _held_back():
            futures = {pool.submit(contend, *of, seeds, epochs): of for of in jobs}
        for future in as_completed(futures):
            yield futures[future], future.result()


@contextmanager
def _workers(cores: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that leave Ctrl-C to this one; whatever ends the work here ends theirs at once."""
    others = {*active_children()}
    pool = ProcessPoolExecutor(cores, get_context("spawn"), _deaf)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in {*active_children()} - others:
            child.terminate()
        raise
    pool.shutdown()


def _deaf() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _held_back() -> Iterator[None]:
    """Ctrl-C waits; processes started here never hear it, not even while they import what they need to be deaf."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    masked = hasattr(signal, "pthread_sigmask")  # a mask is inherited, a handler is not
    if masked:
        resource_tracker.ensure_running()  # started beside the first process, it would take the mask away
    handler = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if masked else set()
    try:
        yield
    finally:
        if masked:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
    if heard:
        signal.raise_signal(signal.SIGINT)


def contend(data_set: str, name: str, seeds: Sequence[int], epochs: int | None = None) -> Result:
    """One contender at its best setting on one data set, over seeds."""
    started, threads = time.perf_counter(), torch.get_num_threads()
    torch.set_num_threads(1)  # nets this small lose time on more
    try:
        task = TASKS[data_set](epochs)
        contender = next(c for c in task.contenders if c.name == name)
        choice, first = _chosen(task, contender, seeds[0])
        beliefs = [first, *(task.learn(contender, contender.tried[choice], seed) for seed in seeds[1:])]
        settings = {**contender.settings(choice), **task.settings, "draws": DRAWS}
        show = {"samples": DRAWS, **task.show}
        each = (time.perf_counter() - started) / len(seeds)  # the time of the choice is shared among the seeds
        return combine(
            [
                evidence(b, task.test, name=name, settings=settings, started=time.perf_counter() - each, **show)
                for b in beliefs
            ]
        )
    finally:
        torch.set_num_threads(threads)


def _chosen(task: Task, contender: Contender, seed: int) -> tuple[str, Belief]:
    """The setting with the lowest NLL on validation rows, and the belief learned with it."""
    learned = {choice: task.learn(contender, learner, seed) for choice, learner in contender.tried.items()}
    if len(learned) == 1:
        return next(iter(learned.items()))
    nll = {choice: judge(belief, task.validation, DRAWS)["nll"] for choice, belief in learned.items()}
    best = min(nll, key=lambda choice: nll[choice])
    return best, learned[best]


def _digits(epochs: int | None) -> Task:
    digits = data.digits()
    x, x_test = digits.images()
    held = len(x) // 5
    return Task(
        contenders=(
            Contender("plain net", {"maximum likelihood": learners.point()}, epochs or 100, 1e-2),
            Contender("dropout", {f"dropout {rate:g}": learners.dropout(rate) for rate in RATES}, epochs or 100, 1e-2),
            Contender("belief", {f"KL weight {w:g}": _bayes(w) for w in WEIGHTS}, epochs or 60, 3e-2),
        ),
        net=lambda: nets.mlp(64, (100, 100), 10),
        likelihood=likelihoods.categorical(),
        batch_size=64,
        train=(x[held:], digits.y_train[held:]),
        validation=(x[:held], digits.y_train[:held]),
        test=(x_test, digits.y_test),
        show={"about": _about(DIGITS), "out_of_distribution": 1 - x_test, "attack_radius": RADIUS},
        settings={
            "net": "64-100-100-10, ReLU",
            "batch size": 64,
            "rows learned from": len(x) - held,
            "rows for validation": held,
            "out of distribution": "the same digits in negative",
            "FGSM radius": RADIUS,
        },
    )


def _curve(epochs: int | None) -> Task:
    curve, truth = data.curve(), data.curve(noise=0.0)
    held = len(curve.x_train) // 4
    train = (curve.x_train[held:], curve.y_train[held:])
    seen = ((curve.x_test >= 0.0) & (curve.x_test <= 0.5)).flatten()
    return Task(
        contenders=(
            Contender("plain net", {"maximum likelihood": learners.point()}, epochs or 400, 2e-2),
            Contender("belief", {"KL weight 1": _bayes(1.0)}, epochs or 400, 1e-2),
        ),
        net=lambda: nets.mlp(1, (50, 50), 2),
        likelihood=likelihoods.gaussian_per_input(),
        batch_size=128,
        train=train,
        validation=(curve.x_train[:held], curve.y_train[:held]),
        test=(curve.x_test[seen], curve.y_test[seen]),
        show={
            "about": _about(CURVE),
            "out_of_distribution": curve.x_test[~seen][::3],  # as many as inside
            "train": train,
            "truth": (truth.x_test, truth.y_test),
        },
        settings={
            "net": "1-50-50-2, ReLU",
            "batch size": 128,
            "rows learned from": len(train[0]),
            "rows for validation": held,
            "noise of the data": "learned, its size depends on x",
            "judged on": "0 ≤ x ≤ 0.5, where the training data lie",
            "out of distribution": "the rest of −0.5 ≤ x ≤ 1.5",
        },
    )


TASKS = {"digits": _digits, "curve": _curve}


def _bayes(weight: float) -> Any:
    return learners.variational(priors.gaussian(1.0), noise.local, kl_weight=kl_weights.tempered(weight))


def _about(card: Card) -> dict[str, str]:
    return {"name": card.name, "source": card.citation, "licence": card.licence}


def _require_own(folder: Path) -> None:
    """Refuse to overwrite what no demo has written."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file; choose another folder for the demo's output")
    for name in (PAGE, *FILES.values()):
        path = folder / name
        if path.exists() and not (path.is_file() and _is_own(path)):
            raise BadInput(f"{path} was not written by the demo; move it away, or choose another folder")


def _is_own(path: Path) -> bool:
    text = path.read_bytes()
    if path.name == PAGE:
        return b'<meta name="generator" content="doxa report">' in text[:2000]
    try:
        found = json.loads(text)
    except ValueError:
        return False
    return isinstance(found, dict) and found.get("kind") == "doxa result"
