"""What does a training cost with the code of one source tree, as a ratio to that of another?

    python benchmarks/engine_cost.py OLD NEW            two checkouts, the same one twice for the noise alone
    python benchmarks/engine_cost.py OLD NEW --cases 'small/*' 'cuda/*' --seconds 60 --out found.json

Three processes take turns, never two at a time: one with the old tree, its twin with the old tree once more, and one
with the new tree. In every round each of them works for a moment in the midst of the same `doxa.fit`, `doxa.fleet` or
`bandits.play`, in another order each time; what counts is the median over the rounds of new/old, and of twin/old, which
differs from 1 by noise alone. All three are started afresh several times, another of them first each time, for a
process keeps what falls to it at its start, such as where its tensors lie; intervals resample the starts, and the
rounds within each. The processor's time is told beside the clock's: the better witness of what one thread does on a
machine that others use too. Set-up is left out: a fit is timed between two calls of its `watch`, a game as the
difference of a long one and a short one. Peak memory is that of a process of its own for each case.

Only the public API of Doxa is used, so that any two versions of it can be compared. A case that fails is told of, and
the rest go on; the exit code is 0 whatever is found.
"""

from __future__ import annotations

import argparse
import fnmatch
import functools
import gc
import importlib
import importlib.util
import itertools
import json
import math
import os
import random
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

STEPS = 150_000  # of a fit that is broken off when it has been timed: fewer than Doxa would compile its nets for
MOMENT = 0.1  # seconds of work in a turn, at least
LEAST = 5  # rounds of three processes
DRAWS = 2000  # of the bootstrap
ORDERS = (0, 3, 4, 5, 2, 1)  # of the permutations of three: after three starts each process was first, second and third
MEGABYTE = 1 << 20


class Enough(Exception):
    """Ends a training that has been timed."""


# Of the table: which process to which clock is compared with the old one.
COLUMNS = {
    "old again / old": ("twin", "wall"),
    "new / old": ("new", "wall"),
    "old again / old, CPU": ("twin", "cpu"),
    "new / old, CPU": ("new", "cpu"),
}
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
Seconds = dict[str, float]  # by clock

# Called at the end of every moment of work, with its seconds where they are not simply those since the last call.
Beat = Callable[..., None]


@dataclass(frozen=True)
class Case:
    """Work that goes on for ever: `work(device, every, beat)` calls beat after every so many epochs."""

    work: Callable[[str, int, Beat], None]
    device: str = "cpu"


def rows(count: int, *shape: int) -> torch.Tensor:
    return torch.randn(count, *shape, generator=torch.Generator().manual_seed(0))


def regression() -> tuple[torch.Tensor, torch.Tensor]:
    x = rows(500, 13)
    return x, x[:, :1].sin() + x[:, 1:2] * x[:, 2:3]


def images(count: int = 4096, *shape: int) -> tuple[torch.Tensor, torch.Tensor]:
    return rows(count, *(shape or (784,))), torch.arange(count) % 10


def measures() -> dict[str, Case]:
    """Every case by its name; made where the Doxa to be timed can be imported."""
    import doxa
    from doxa import learners, likelihoods, nets, noise, optimisers, priors, search

    # Versions before 0.1.0's rooms had their bandits among the judges; without this none of them can be measured.
    bandits: Any = importlib.import_module(
        "doxa.bandits" if importlib.util.find_spec("doxa.bandits") else "doxa.judge.bandits"
    )

    gaussian = priors.gaussian(1.0)
    kinds: dict[str, Any] = {
        "point": learners.point(),
        "shared": learners.variational(gaussian),
        "local": learners.variational(gaussian, noise.local),
        "flipout": learners.variational(gaussian, noise.flipout),
        "samples=2": learners.variational(gaussian, samples=2),
    }

    def small() -> Any:
        return nets.mlp(13, (50,), 1)

    def trains(net: Callable[[], Any], data: Callable[[], Any], batch_size: int, **arguments: Any) -> Any:
        """A fit, or a fleet where it has learners, of one net on some data."""
        train = doxa.fleet if "learners" in arguments else doxa.fit

        def work(device: str, every: int, beat: Beat) -> None:
            torch.manual_seed(0)
            x, y = data()
            batches = math.ceil(len(y) / batch_size)
            likelihood = likelihoods.gaussian(0.5) if y.is_floating_point() else likelihoods.categorical()
            common: dict[str, Any] = {
                "likelihood": likelihood,
                "batch_size": batch_size,
                "epochs": STEPS // batches,
                "device": device,
            }

            def watch(beliefs: Any) -> Any:
                beat()
                return [{} for _ in beliefs] if isinstance(beliefs, list) else {}

            train(net(), (x, y), watch=watch, watch_every=every, progress=False, **common, **arguments)

        return work

    def plays(short: int, long: int, updates: int) -> Any:
        """Agents at a bandit: what the longer game takes more than the shorter one."""
        contexts = rows(500, 20)
        expected = contexts[:, :2].contiguous()
        bandit = bandits.Bandit("timed", contexts, expected, lambda rows, u: expected[rows] + u[:, :1], ("a", "b"))
        agents = [bandits.agent(kinds["shared"], bandits.thompson(), seed) for seed in range(4)]

        def work(device: str, every: int, beat: Beat) -> None:
            torch.manual_seed(0)
            net = nets.mlp(22, (50,), 1)
            rules: dict[str, Any] = {
                "updates": updates,
                "likelihood": likelihoods.gaussian(0.5),
                "device": device,
                "progress": False,
            }
            while True:
                spent = []
                for steps in (short, long):
                    begun = read_clocks()
                    bandits.play(net, bandit, agents, steps=steps, **rules)
                    synchronize(device)
                    spent.append(subtract(read_clocks(), begun))
                beat(subtract(spent[1], spent[0]))

        return work

    sgd, adamw = optimisers.sgd(momentum=0.9), functools.partial(torch.optim.AdamW, lr=1e-3)
    many = [learners.variational(priors.gaussian(1.0 + k)) for k in range(16)]
    cases = {f"small/{k}": Case(trains(small, regression, 32, learner=v)) for k, v in kinds.items()}
    cases |= {
        "small/sgd": Case(trains(small, regression, 32, learner=kinds["shared"], optimiser=sgd)),
        "small/adamw": Case(trains(small, regression, 32, learner=kinds["shared"], optimiser=adamw)),
        "small/ensemble of 5": Case(trains(small, regression, 32, learner=learners.ensemble(learners.point(), 5))),
        "small/search": Case(trains(small, regression, 32, learner=search.learner(size=50))),
        "small/fleet of 16": Case(trains(small, regression, 32, learners=many, seeds=list(range(16)))),
        "small/bandit": Case(plays(20, 200, 16)),
        "100 units/fleet of 4": Case(
            trains(functools.partial(nets.mlp, 784, (100,)), images, 128, learners=many[:4], seeds=list(range(4)))
        ),
    }
    for name in ("point", "shared", "local", "flipout"):
        cases[f"400 units/{name}"] = Case(trains(functools.partial(nets.mlp, 784), images, 128, learner=kinds[name]))
    long = functools.partial(images, 1 << 14)
    for width in (400, 1200):
        wide = functools.partial(nets.mlp, 784, (width, width))
        for name in ("shared", "local", "samples=2"):
            cases[f"cuda/{width} units/{name}"] = Case(trains(wide, long, 128, learner=kinds[name]), "cuda")
    pictures = functools.partial(images, 1 << 14, 1, 28, 28)
    fleet: dict[str, Any] = {"learners": many, "seeds": list(range(16))}
    return cases | {
        "cuda/LeNet-5/shared": Case(trains(nets.lenet5, pictures, 128, learner=kinds["shared"]), "cuda"),
        "cuda/400 units/fleet of 16": Case(trains(functools.partial(nets.mlp, 784), long, 128, **fleet), "cuda"),
        "cuda/bandit": Case(plays(500, 2500, 16), "cuda"),
    }


def read_clocks() -> Seconds:
    return {name: clock() for name, clock in CLOCKS.items()}


def subtract(later: Seconds, sooner: Seconds) -> Seconds:
    return {name: later[name] - sooner[name] for name in CLOCKS}


def synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


# In a process with one of the trees: do what is asked for, line by line.


def work(threads: int) -> None:
    """Answer every line of JSON that comes with a line of JSON."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever is printed is no answer
    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)
    import doxa

    def send(answer: dict[str, Any]) -> None:
        print(json.dumps(answer), file=answers, flush=True)

    def receive() -> dict[str, Any]:
        line = sys.stdin.readline()
        return json.loads(line) if line else {"do": "end"}

    cases = measures()
    send({"source": str(Path(doxa.__file__).parents[1]), "cases": {name: case.device for name, case in cases.items()}})
    while (command := receive())["do"] != "end":
        case = cases.get(command.get("case", ""))
        if case is None:
            send({"error": "there is no such case here"})
        elif command["do"] == "measure memory":
            send(run_in_fork(functools.partial(peak, case)))
        else:
            try:
                case.work(case.device, command["every"], Clock(case.device, send, receive))
            except Enough:
                pass
            except Exception as error:
                send({"error": f"{type(error).__name__}: {error}"})
            gc.collect()


class Clock:
    """Tells how long each moment of work took, and lets no other begin before it is asked for."""

    def __init__(
        self, device: str, send: Callable[[dict[str, Any]], None], receive: Callable[[], dict[str, Any]]
    ) -> None:
        self.device, self.send, self.receive = device, send, receive
        self.since = read_clocks()

    def __call__(self, seconds: Seconds | None = None) -> None:
        synchronize(self.device)
        self.send({"seconds": subtract(read_clocks(), self.since) if seconds is None else seconds})
        if self.receive()["do"] != "go on":
            raise Enough
        self.since = read_clocks()


def peak(case: Case) -> dict[str, Any]:
    """The most memory that two moments of a case take, this process's own included on a CPU."""
    left = [2]

    def beat(seconds: Seconds | None = None) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Enough

    with suppress(Enough):
        case.work(case.device, 1, beat)
    if case.device == "cuda":
        return {"bytes": torch.cuda.max_memory_allocated()}
    return {"bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}


def run_in_fork(task: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What a task finds in a copy of this process, in which nothing has been worked on yet."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = task()
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        os.write(writing, json.dumps(answer).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as lines:
        answer_text = lines.read()
    os.waitpid(child, 0)
    return json.loads(answer_text) if answer_text else {"error": "the process was killed"}


# In the process that compares.


class Failed(Exception):
    """What a worker says of a case that it cannot do."""


class Worker:
    """A process with one source tree, which works while it is asked to and waits otherwise."""

    def __init__(self, tree: Path, threads: int) -> None:
        source = tree / "src"
        environment = {**os.environ, "PYTHONPATH": str(source)}
        command = [sys.executable, str(Path(__file__).resolve()), "--worker", str(threads)]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        hello = self.receive()
        self.cases: dict[str, str] = hello["cases"]
        if Path(hello["source"]).resolve() != source.resolve():
            raise Failed(f"{tree} has no Doxa of its own: {hello['source']} was imported instead of {source}")

    def send(self, **command: Any) -> None:
        assert self.process.stdin is not None
        try:
            print(json.dumps(command), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            raise Failed("the process ended") from None

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise Failed("the process ended")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise Failed(answer["error"])
        return answer

    def begin(self, case: str, every: int) -> None:
        """Set up a case and do its first moment of work, which is not counted."""
        self.send(do="begin", case=case, every=every)
        self.receive()

    def go_on(self) -> Seconds:
        self.send(do="go on")
        seconds: Seconds = self.receive()["seconds"]
        return seconds

    def memory(self, case: str) -> int:
        self.send(do="measure memory", case=case)
        return int(self.receive()["bytes"])

    def leave(self) -> None:
        self.send(do="leave")

    def end(self) -> None:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()


@contextmanager
def start_workers(trees: dict[str, Path], threads: int) -> Iterator[dict[str, Worker]]:
    """Workers by name, ended again whatever happens."""
    workers: dict[str, Worker] = {}
    try:
        for name, tree in trees.items():
            workers[name] = Worker(tree, threads)
        yield workers
    finally:
        for worker in workers.values():
            worker.end()


def compare(workers: dict[str, Worker], case: str, seconds: float, most: int) -> dict[str, list[Seconds]]:
    """Seconds of every worker in every round, for about so many seconds in all."""
    first = next(iter(workers.values()))
    first.begin(case, 1)
    epoch_seconds = first.go_on()["wall"]
    every = max(1, math.ceil(MOMENT / epoch_seconds))
    for worker in workers.values():
        if worker is not first:
            worker.begin(case, every)
        elif every > 1:
            worker.leave()
            worker.begin(case, every)
    rounds = max(LEAST, min(most, round(seconds / (len(workers) * every * epoch_seconds))))
    names = list(workers)
    seconds_by_worker: dict[str, list[Seconds]] = {name: [] for name in names}
    for number in range(rounds):
        turn = number % len(names)
        order = names[turn:] + names[:turn]
        for name in order if number % 2 else order[::-1]:
            seconds_by_worker[name].append({clock: spent / every for clock, spent in workers[name].go_on().items()})
    for worker in workers.values():
        worker.leave()
    return seconds_by_worker


def median(starts: Sequence[Sequence[float]]) -> float:
    """The median over starts of their medians over rounds."""
    return statistics.median(statistics.median(rounds) for rounds in starts)


def resample(starts: Sequence[Sequence[float]], choose: random.Random) -> list[list[float]]:
    """Starts drawn from these, and rounds from those of each."""
    return [choose.choices(rounds, k=len(rounds)) for rounds in choose.choices(starts, k=len(starts))]


def geometric_mean(cases: Sequence[Sequence[Sequence[float]]]) -> list[float]:
    """The geometric mean over cases of their medians, and its 95 % interval by the bootstrap within each."""
    choose = random.Random(0)

    def mean(medians: Iterator[float]) -> float:
        return math.exp(statistics.fmean(map(math.log, medians)))

    drawn = sorted(mean(median(resample(ratios_by_start, choose)) for ratios_by_start in cases) for _ in range(DRAWS))
    return [
        mean(median(ratios_by_start) for ratios_by_start in cases),
        drawn[round(0.025 * DRAWS)],
        drawn[round(0.975 * DRAWS) - 1],
    ]


def ratios(starts: Sequence[dict[str, list[Seconds]]], name: str, clock: str) -> list[list[float]]:
    """Of every round of every start, how much longer one process took than the old one."""
    return [
        [spent[clock] / old[clock] for spent, old in zip(seconds[name], seconds["old"], strict=True)]
        for seconds in starts
    ]


def summary(starts: Sequence[dict[str, list[Seconds]]]) -> dict[str, Any]:
    old = median([[spent["wall"] for spent in seconds["old"]] for seconds in starts])
    row: dict[str, Any] = {"old_seconds": old}
    for name, clock in COLUMNS.values():
        row[f"{name}/old, {clock}"] = geometric_mean([ratios(starts, name, clock)])
    return {**row, "starts": len(starts), "rounds": sum(len(seconds["old"]) for seconds in starts)}


def format_interval(numbers: Sequence[float]) -> str:
    return "{:.3f} [{:.3f}, {:.3f}]".format(*numbers)


def show(results: dict[str, Any]) -> str:
    """What was found, as a table."""
    head = ("case", "old, ms", *COLUMNS, "rounds", "old, MB", "new, MB")
    lines = [head]
    for name, row in results["cases"].items():
        memory = [f"{b / MEGABYTE:.0f}" if b else "" for b in (row.get("memory", {}).get(k) for k in ("old", "new"))]
        if "rounds" in row:
            cells = [format_interval(row[f"{process}/old, {clock}"]) for process, clock in COLUMNS.values()]
            lines.append((name, f"{1000 * row['old_seconds']:.2f}", *cells, str(row["rounds"]), *memory))
        else:
            lines.append((name, "", row.get("error", ""), *[""] * (len(COLUMNS)), *memory))
    if "mean" in results:
        cells = [format_interval(results["mean"][f"{process}/old, {clock}"]) for process, clock in COLUMNS.values()]
        lines.append(("geometric mean", "", *cells, "", "", ""))
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def measure(options: argparse.Namespace, keep: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Everything that is asked for; what there is after every start is kept, should the rest never come."""
    trees = {"old": options.old, "twin": options.old, "new": options.new}
    results: dict[str, Any] = {"cases": {}}
    gpu = torch.cuda.is_available()

    def wanted(cases: dict[str, str]) -> list[str]:
        runnable = [name for name, device in cases.items() if gpu or device == "cpu"]
        return [name for name in runnable if any(fnmatch.fnmatch(name, pattern) for pattern in options.cases)]

    times: dict[str, list[dict[str, list[Seconds]]]] = {}
    orders = list(itertools.permutations(trees))
    for start in range(options.starts):
        left: list[str] | None = None
        order = {name: trees[name] for name in orders[ORDERS[start % len(ORDERS)]]}
        while left is None or left:  # a case that fails takes its processes with it
            with start_workers(order, options.threads) as workers:
                left = wanted(workers["old"].cases) if left is None else left
                left = measure_cases(workers, left, times, results["cases"], options)
        results |= summarize(results["cases"], times) | {"complete": False}
        keep(results)
    if options.memory:
        with start_workers({"old": options.old, "new": options.new}, options.threads) as workers:
            for name in wanted(workers["old"].cases):
                results["cases"].setdefault(name, {})["memory"] = memories(workers, name)
    results["complete"] = True
    keep(results)
    return results


def summarize(cases: dict[str, Any], times: dict[str, list[dict[str, list[Seconds]]]]) -> dict[str, Any]:
    """Cases with their medians and intervals, the mean of all, and the seconds they come from."""
    for name in times:
        cases[name] |= summary(times[name])
    columns = {f"{name}/old, {clock}": (name, clock) for name, clock in COLUMNS.values()} if times else {}
    means = {
        key: geometric_mean([ratios(starts, *column) for starts in times.values()]) for key, column in columns.items()
    }
    return {"cases": cases, **({"mean": means} if means else {}), "seconds": times}


def measure_cases(
    workers: dict[str, Worker],
    names: list[str],
    times: dict[str, list[dict[str, list[Seconds]]]],
    cases: dict[str, Any],
    options: argparse.Namespace,
) -> list[str]:
    """Measure case after case; those that are left when one has failed."""
    for number, name in enumerate(names):
        cases.setdefault(name, {})
        try:
            spent = compare(workers, name, options.seconds / options.starts, options.rounds // options.starts)
        except Failed as error:
            cases[name]["error"] = str(error)
            print(f"{name}: {error}", file=sys.stderr)
            return names[number + 1 :]
        times.setdefault(name, []).append(spent)
        print(f"{name}: new/old {median(ratios(times[name], 'new', 'wall')):.3f}", file=sys.stderr)
    return []


def memories(workers: dict[str, Worker], name: str) -> dict[str, Any]:
    bytes_by_tree: dict[str, Any] = {}
    for tree, worker in workers.items():
        try:
            bytes_by_tree[tree] = worker.memory(name)
        except Failed as error:
            bytes_by_tree["error"] = str(error)
    return bytes_by_tree


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        work(int(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="a checkout: the folder that has src/doxa")
    parser.add_argument("new", type=Path, help="another")
    parser.add_argument("--cases", nargs="+", default=["*"], metavar="PATTERN", help="e.g. 'small/*'; all by default")
    parser.add_argument("--seconds", type=float, default=14.0, help="of work for each case, about")
    parser.add_argument("--rounds", type=int, default=60, help="of each case, at most")
    parser.add_argument("--starts", type=int, default=3, help="times that all three processes are started afresh")
    parser.add_argument("--threads", type=int, default=2, help="of torch")
    parser.add_argument("--no-memory", dest="memory", action="store_false", help="leave peak memory out")
    parser.add_argument("--commits", nargs=2, metavar=("OLD", "NEW"), help="of the two, for the record")
    parser.add_argument("--out", type=Path, help="a file for all of it, as JSON")
    options = parser.parse_args()
    try:
        results = measure(options, result_writer(options))
    except Failed as error:
        print(f"nothing was measured: {error}")
        return
    print(show(results))


def result_writer(options: argparse.Namespace) -> Callable[[dict[str, Any]], None]:
    """Writes what was found into the file that was asked for, with its settings, versions, device, commit and time."""
    begun = time.perf_counter()
    if options.out is None:
        return lambda found: None
    from doxa.results.stamp import stamp  # of whichever Doxa is installed: the trees are imported by the workers

    names = ("cases", "seconds", "rounds", "starts", "threads", "commits")
    settings = {name: getattr(options, name) for name in names}
    torch.set_num_threads(options.threads)

    def write(results: dict[str, Any]) -> None:
        when = datetime.now(UTC).isoformat(timespec="seconds")
        options.out.write_text(json.dumps({**stamp(settings, [], begun), "when": when, **results}, indent=1) + "\n")

    return write


if __name__ == "__main__":
    main()
