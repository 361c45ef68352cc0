"""What do a thousand samples of a net of a hundred thousand weights take, and do they survive being killed?

    python benchmarks/kept_samples.py [--samples 1000] [--kills 10] [--device cpu] [--out found.json]

Langevin dynamics keep their samples on disk. The peak of memory of learning, saving, loading and predicting is taken in
processes of their own, with many samples and with ten; the former may take 20 MB more. Then the same run is killed, by
SIGKILL at some time, so many times, each time resumed, and its belief must be the same file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROWS, BATCH, FEW = 128, 64, 10


def learn(folder: Path, samples: int, device: str, resume: bool) -> None:
    """One sample a step over the second half of the run."""
    import torch

    import doxa

    torch.set_num_threads(1)
    torch.manual_seed(0)
    x, y = torch.randn(ROWS, 100), torch.randint(0, 10, (ROWS,))
    net = doxa.nets.mlp(100, (270, 270), 10)
    chain = doxa.learners.langevin(doxa.priors.gaussian(1.0), burn_in=0.5, thinning=1, on_disk=True)
    epochs = 2 * samples * BATCH // ROWS
    belief = doxa.fit(
        net,
        (x, y),
        learner=chain,
        likelihood=doxa.likelihoods.categorical(),
        epochs=epochs,
        batch_size=BATCH,
        lr=0.01,
        device=device,
        checkpoint=folder,
        checkpoint_steps=37,
        resume=resume,
        progress=False,
    )
    again = doxa.load(folder / "belief.doxa", net)
    draws = again.predict(x[:64], samples=samples)
    assert torch.equal(draws.mean, belief.to("cpu").predict(x[:64], samples=samples).mean) or device != "cpu"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    weights = sum(p.numel() for p in net.parameters())
    print(json.dumps({"weights": weights, "samples": len(draws), "peak_mb": round(peak, 1)}))


def start_process(folder: Path, samples: int, device: str, resume: bool) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--learn", str(folder), "--samples", str(samples), "--device", device]
    return subprocess.Popen([*command, *(["--resume"] if resume else [])], stdout=subprocess.PIPE, text=True)


def wait_for_result(process: subprocess.Popen[str]) -> dict[str, Any]:
    output, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"a run ended with exit code {process.returncode}")
    answer: dict[str, Any] = json.loads(output)
    return answer


def digest(folder: Path) -> str:
    return hashlib.sha256((folder / "belief.doxa").read_bytes()).hexdigest()


def kill_repeatedly(folder: Path, samples: int, device: str, kills: int, seconds: float) -> int:
    """Kill a run at some time again and again, then let it end; how often it was killed in the midst of learning."""
    times, lived = random.Random(0), 0
    for _ in range(kills):
        process = start_process(folder, samples, device, resume=True)
        time.sleep(times.uniform(0.3, 0.9) * seconds / 2)
        lived += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
    wait_for_result(start_process(folder, samples, device, resume=True))
    return lived


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--learn", type=Path)
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    if options.learn is not None:
        learn(options.learn, options.samples, options.device, options.resume)
        return
    started_at = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        few = wait_for_result(start_process(root / "few", FEW, options.device, resume=False))
        begun = time.perf_counter()
        many = wait_for_result(start_process(root / "many", options.samples, options.device, resume=False))
        seconds = time.perf_counter() - begun
        midst = kill_repeatedly(root / "killed", options.samples, options.device, options.kills, seconds)
        same = digest(root / "many") == digest(root / "killed")
    results = {"few": few, "many": many, "more_mb": round(many["peak_mb"] - few["peak_mb"], 1)}
    results |= {"killed": options.kills, "killed_in_the_midst": midst, "same_bytes": same, "seconds": round(seconds, 1)}
    print(json.dumps(results, indent=1))
    if options.out is not None:
        from doxa.results.stamp import stamp

        settings = {"samples": options.samples, "kills": options.kills, "device": options.device}
        record = stamp(settings, [0], started_at) | {"when": datetime.now(UTC).isoformat(timespec="seconds")}
        options.out.write_text(json.dumps(record | {"found": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
