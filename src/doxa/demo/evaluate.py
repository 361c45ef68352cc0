"""A contender at its best setting, over seeds."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch

from doxa.demo.tasks import TASKS, Contender, DemoTask
from doxa.judge.evidence import evidence
from doxa.judge.verdict import judge
from doxa.predict.belief import Belief
from doxa.results import Result, combine

DRAWS = 64


def evaluate_contender(data_set: str, name: str, seeds: Sequence[int], epochs: int | None = None) -> Result:
    """One contender at its best setting on one data set, over seeds."""
    started, threads = time.perf_counter(), torch.get_num_threads()
    torch.set_num_threads(1)  # nets this small lose time on more
    try:
        task = TASKS[data_set](epochs)
        contender = next(c for c in task.contenders if c.name == name)
        choice, first = _best_setting(task, contender, seeds[0])
        beliefs = [first, *(task.learn(contender, contender.candidates[choice], seed) for seed in seeds[1:])]
        settings = {**contender.settings(choice), **task.settings, "draws": DRAWS}
        evidence_options = {"samples": DRAWS, **task.evidence_options}
        seconds_each = (time.perf_counter() - started) / len(seeds)  # the time of the choice is shared among the seeds
        return combine(
            [
                evidence(
                    b,
                    task.test,
                    name=name,
                    settings=settings,
                    started=time.perf_counter() - seconds_each,
                    **evidence_options,
                )
                for b in beliefs
            ]
        )
    finally:
        torch.set_num_threads(threads)


def _best_setting(task: DemoTask, contender: Contender, seed: int) -> tuple[str, Belief]:
    """The setting with the lowest NLL on validation rows, and the belief learned with it."""
    beliefs = {choice: task.learn(contender, learner, seed) for choice, learner in contender.candidates.items()}
    if len(beliefs) == 1:
        return next(iter(beliefs.items()))
    nll = {choice: judge(belief, task.validation, DRAWS)["nll"] for choice, belief in beliefs.items()}
    best = min(nll, key=lambda choice: nll[choice])
    return best, beliefs[best]
