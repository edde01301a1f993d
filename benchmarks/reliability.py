"""Faults on purpose, around real training processes: docs/how-to/survive-faults.md says what came out.

python benchmarks/reliability.py kills --count 20 --workers 0     kill -9 at random instants, resume, compare with an undisturbed run
python benchmarks/reliability.py damage --count 200               flipped bits, cut-off, empty and missing checkpoints
python benchmarks/reliability.py full --disk DIR                  fill the (small) disk of DIR for a while during a training
python benchmarks/reliability.py memory --minutes 60              resident memory of a training with tiny epochs
python benchmarks/reliability.py trials --minutes 5               wrong inputs, signals at random instants, odd terminals: a table

`memory` trains with the solutions of the last four epochs: the dataset of Algorithm 1, which grows until the validation improves, is
what the method needs and not what is looked for. With --grows it counts, too.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from trials.running import run
from trials.verdicts import table

from gumbeldore.errors import CheckpointError
from gumbeldore.training.checkpoint import NEWEST, Checkpoints, load_state

COMMAND = [sys.executable, "-c", "import sys\nfrom gumbeldore.cli import main\nif __name__ == '__main__': sys.exit(main())"]
TINY = [
    "--problem.cities", "8", "--policy.d", "16", "--policy.layers", "1", "--policy.heads", "2", "--policy.ff", "32",
    "--training.instances", "8", "--training.batches", "4", "--training.batch-size", "16", "--validation.instances", "16",
    "--sampler", "gd:4x2", "--device", "cpu",
]  # fmt: skip


def training(folder: Path, *options: str, output: int = subprocess.PIPE) -> subprocess.Popen[str]:
    """A training process."""
    command = [*COMMAND, "train", "tsp", "--folder", str(folder), *options]
    return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, text=True)


def finished(folder: Path, *options: str) -> str:
    """What a training printed that had to end well."""
    process = training(folder, *options)
    printed, _ = process.communicate()
    if process.returncode != 0:
        raise SystemExit(f"The training in {folder} failed ({process.returncode}):\n{printed}")
    return printed


def result(folder: Path) -> tuple[bytes, list[dict[str, object]]]:
    """The policy and the metrics, without times."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return (folder / "policy.safetensors").read_bytes(), [{k: v for k, v in x.items() if "seconds" not in k} for x in lines]


def kills(where: Path, count: int, epochs: int, workers: int, seed: int) -> None:
    """Kills trainings `count` times, at random instants of their start, work and writing, and lets them end."""
    options = ["--training.epochs", str(epochs), "--workers", str(workers), *TINY]
    began = time.monotonic()
    finished(where / "whole", *options)
    whole, draw, folder = time.monotonic() - began, random.Random(seed), where / "killed"
    print(f"undisturbed: {epochs} epochs in {whole:.0f} s with {workers} workers", flush=True)
    done = early = ended = left = 0
    while done < count or folder.exists():
        process = training(folder, *(["--resume", "--workers", str(workers)] if Checkpoints(folder).exist else options))
        try:
            process.communicate(timeout=draw.uniform(0, whole) if done < count else None)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            done, early = done + 1, early + (not Checkpoints(folder).exist)
            left += len(list(folder.glob(".*.part"))) if folder.exists() else 0
            print(f"kill {done}: in epoch {_epoch(folder) + 1}", flush=True)
            continue
        if process.returncode or result(folder) != result(where / "whole") or list(folder.glob(".*.part")):
            raise SystemExit(
                f"FAILED: after {done} kills a run ended with {process.returncode}, or with something else than undisturbed"
            )
        ended += 1
        shutil.rmtree(folder)  # and another one
    print(f"{count} kills, {early} of them before the first checkpoint; they left {left} half-written files")
    print(
        f"{ended} runs got to their end through them, all with the policy and the metrics of the undisturbed run and no half-written file"
    )


def _epoch(folder: Path) -> int:
    return Checkpoints(folder).load()[0]["epoch"] if Checkpoints(folder).exist else 0


def damage(where: Path, count: int, seed: int) -> None:
    """Damages the newest checkpoint; every time the one before must be found, and say so."""
    finished(where / "run", "--training.epochs", "2", "--workers", "0", *TINY)
    newest, draw = where / "run" / NEWEST, random.Random(seed)
    content = newest.read_bytes()

    def flipped() -> bytes:
        changed, bit = bytearray(content), draw.randrange(8 * len(content))
        changed[bit // 8] ^= 1 << bit % 8
        return bytes(changed)

    kinds = {"flipped bits": flipped, "cut off": lambda: content[: draw.randrange(len(content))], "empty": lambda: b""}
    for kind, damaged in kinds.items():
        found = 0
        tries = 1 if kind == "empty" else count
        for _ in range(tries):
            newest.write_bytes(damaged())
            state, note = Checkpoints(where / "run").load()
            found += state["epoch"] == 1 and bool(note)
        print(f"{kind}: {found} of {tries} found, the checkpoint before was used", flush=True)
    newest.unlink()
    print(f"missing: {Checkpoints(where / 'run').load()[1]}")
    newest.write_bytes(flipped())
    print(finished(where / "run", "--resume", "--training.epochs", "3", "--workers", "0"))


def full(where: Path, epochs: int) -> None:
    """Fills the disk when a training is at work, and makes room again after the training has complained."""
    options = ["--training.epochs", str(epochs), "--workers", "0", *TINY]
    process, filler = training(where / "run", *options), where / "filler"
    complaints, waiting = 0, True
    for line in process.stdout or ():
        print(line, end="", flush=True)
        complaints += "disk is full" in line
        if waiting and re.match(r"epoch +2 ", line):
            _fill(filler)
            waiting = False
        if complaints == 3 and filler.exists():
            filler.unlink()
            print("--- room again")
    with tempfile.TemporaryDirectory() as other:
        finished(Path(other) / "whole", *options)
        same = process.wait() == 0 and result(where / "run") == result(Path(other) / "whole")
    print(f"{complaints} complaints; policy and metrics {'equal' if same else 'DIFFER FROM'} those of an undisturbed run")
    if not same or complaints < 3:
        raise SystemExit(1)


def _fill(path: Path) -> None:
    """Writes until the disk is full."""
    free = shutil.disk_usage(path.parent).free
    if free > 1 << 30:
        raise SystemExit(f"{path.parent} has {free >> 20} MB left: use a small disk (mount -t tmpfs -o size=1m none DIR).")
    try:
        with open(path, "wb", buffering=0) as handle:
            while handle.write(bytes(1024)):
                pass
    except OSError:
        print("--- the disk is full now")


def trials(where: Path, journal: Path, minutes: float, count: int, seed: int, only: str) -> None:
    """Wrong inputs, damaged files, odd terminals, and every signal `count` times to every command; then the table of all in the journal."""
    verdicts = run(where, journal, count, seed, minutes, only)
    print("\n" + table(verdicts))
    if any(not verdict.fine for verdict in verdicts):
        raise SystemExit(1)


def memory(where: Path, minutes: float, workers: int, grows: bool) -> None:
    """Resident memory of the main process by time, after its first picture: the mean of the last tenth of the time against the second.

    The dataset holds the solutions of four epochs, unless it `grows` (by design, until the validation improves).
    """
    window = "None" if grows else "4"
    endless = ["--training.epochs", "1000000", "--workers", str(workers), "--training.replay-window", window, *TINY]
    process = training(where / "run", *endless, output=subprocess.DEVNULL)
    while not (where / "run" / "training.png").exists():
        if process.poll() is not None:
            raise SystemExit(f"FAILED: the training ended at once ({process.returncode}).")
        time.sleep(1)
    sizes = _sizes(process, 60 * minutes)
    process.terminate()
    process.wait()
    epochs = load_state(where / "run" / NEWEST)["epoch"]
    early, late = (_mean_size(sizes, 60 * minutes, tenth) for tenth in (1, 9))
    print(
        f"{epochs} epochs in {minutes} minutes: {early:.1f} MB on average in the second tenth of the time, {late:.1f} MB in the last, "
        f"{100 * (late / early - 1):+.2f} %"
    )


def _sizes(process: subprocess.Popen[str], seconds: float) -> list[tuple[float, float]]:
    """Seconds and MB, many times; some of them are printed."""
    sizes: list[tuple[float, float]] = []
    began, printed = time.monotonic(), 0
    while process.poll() is None and (now := time.monotonic() - began) < seconds:
        pages = Path(f"/proc/{process.pid}/statm").read_text().split()[1]
        sizes.append((now, int(pages) * resource.getpagesize() / 2**20))
        if now >= printed * seconds / 20:
            print(f"{now:7.0f} s {sizes[-1][1]:8.1f} MB", flush=True)
            printed += 1
        time.sleep(min(10, seconds / 100))
    return sizes


def _mean_size(sizes: list[tuple[float, float]], seconds: float, tenth: int) -> float:
    """In a tenth of the time, from 0."""
    within = [size for now, size in sizes if tenth <= 10 * now / seconds < tenth + 1 and size > 0]
    if not within:
        raise SystemExit("FAILED: the training ended early")
    return statistics.fmean(within)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    options = {
        "kills": ("count", "epochs", "workers", "seed"),
        "damage": ("count", "seed"),
        "full": ("disk", "epochs"),
        "trials": ("journal", "minutes", "count", "seed", "only"),
    }
    defaults = {
        "count": 20,
        "epochs": 12,
        "workers": 0,
        "seed": 0,
        "minutes": 5.0,
        "only": "",
        "disk": Path(),
        "journal": Path("trials.jsonl"),
    }
    for name, known in {**options, "memory": ("minutes", "workers")}.items():
        command = commands.add_parser(name)
        for option in known:
            kind = Path if isinstance(defaults[option], Path) else type(defaults[option])
            command.add_argument(f"--{option}", type=kind, default=defaults[option])
    commands.choices["memory"].add_argument(
        "--grows", action="store_true", help="the dataset grows until the validation improves"
    )
    arguments = vars(parser.parse_args())
    action, disk = (
        {"kills": kills, "damage": damage, "full": full, "memory": memory, "trials": trials}[arguments.pop("command")],
        arguments.pop("disk", None),
    )
    with tempfile.TemporaryDirectory(dir=disk) as where:
        try:
            action(Path(where), **arguments)
        except CheckpointError as error:
            raise SystemExit(f"FAILED: {error}") from error


if __name__ == "__main__":
    main()
