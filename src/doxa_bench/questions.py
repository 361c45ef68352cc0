"""The questions by name. To add one: a file with `measure` and `show`, and a line here."""

from __future__ import annotations

from typing import NamedTuple


class BenchQuestion(NamedTuple):
    """What is asked, and how long the answer takes on two cores, in words; its file or folder has the same name."""

    asks: str
    takes: str
    everywhere: bool = False  # whether each device has an answer, and a file, of its own


TABLE: dict[str, BenchQuestion] = {
    "step_cost": BenchQuestion(
        "What does one training step of a belief cost, as a ratio to the same plain net with fused Adam?",
        "2 min; 9 beside other libraries",
    ),
    "memory": BenchQuestion(
        "How much memory does learning a belief take, as a ratio to the same plain net?",
        "10 s; 1 min beside other libraries",
    ),
    "fleet_cost": BenchQuestion("What does a fleet gain over its members one after the other?", "30 s"),
    "captured_cost": BenchQuestion(
        "What does a captured step cost on a GPU, as a ratio to the same plain net, captured too?", "4 min; needs CUDA"
    ),
    "scaling": BenchQuestion(
        "How do time and memory grow with width, nets and samples?", "7 min; 3 on a GPU", everywhere=True
    ),
    "prediction_cost": BenchQuestion(
        "What do draws of a prediction cost, as a ratio to as many passes of the same plain net?",
        "2 min; 5 beside other libraries; needs MNIST",
    ),
    "gradient_variance": BenchQuestion(
        "How much do the gradients of a step vary with each noise, and what does a step cost?",
        "2 min; 5 beside other libraries; needs MNIST",
    ),
    "time_to_accuracy": BenchQuestion(
        "How long does a belief about MNIST take to an error and an NLL that were set beforehand?",
        "1 min; 12 beside other libraries; needs MNIST",
    ),
    "estimators": BenchQuestion(
        "Are the estimators' defaults good? Untouched, on data they were not made for.", "13 min; needs UCI data"
    ),
    "mnist_ten_epochs": BenchQuestion(
        "How good is a belief about MNIST after ten epochs on a CPU?", "14 min; needs MNIST"
    ),
    "search_episodes": BenchQuestion(
        "Are policies found by the returns of episodes alone, and how long does it take?", "20 min; needs doxa[rl]"
    ),
    "search_cost": BenchQuestion(
        "How many perturbations does a search evaluate in a second, beside the least that products cost and evotorch?",
        "2 min; 4 beside evotorch; needs Fashion-MNIST",
        everywhere=True,
    ),
    "search_faults": BenchQuestion(
        "What becomes of a search whose workers, or which itself, are killed or frozen, and how long until it goes on?",
        "13 min; needs doxa[ray] for Ray",
    ),
    "faults": BenchQuestion(
        "What is lost, silent or executed when processes are killed, disks fill up, and files and input are hostile?",
        "10 min, or --minutes",
    ),
    "sealing_cost": BenchQuestion(
        "What do seals, checks, locks and flushes add to a fit of a minute, and to opening a run of 100 MB?",
        "3 min; needs MNIST",
    ),
    "search_scaling": BenchQuestion(
        "What does a generation cost for so many workers and weights, in time, bytes and memory?",
        "3 min",
        everywhere=True,
    ),
}
