"""All speeds in one command: prints tables and writes JSON.

    python benchmarks/speed.py [--public CLONE] [--only jssp,greedy] [--seconds 5] [--rounds 2] [--threads 2]

Every measurement is a process of its own, so that threads, imports and peaks of memory do not mix. With `--public`, a clone of the
paper's public code is timed in the same run: ours, public, ours, public. Without it, or where it is not timed, its figures from
another machine are scaled by the plain matrix products of both; memory-bound work does not scale like that, so read such
ratios as rough.

- rate: median of the rounds; +- is half the distance between the slowest and the fastest round.
- outside: share of the time that is not spent in the network (in training: forward and backward).
- GFLOP/s: multiplications and additions that the network needs (without padding, without scheduled operations) by its time, and
  those of a plain 1024 x 1024 product of the same run.
- MB: how far the resident memory rose above that of the loaded network; with `--workers`, and all memory of the workers.
- marks of public figures: `~` extrapolated from some steps, `*` scaled from another machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from cases import BEAM_WIDTH, CASES, ELSEWHERE_GFLOPS, ROUNDS, UNITS, Case, Kind, chosen

HERE = Path(__file__).parent
TITLES: dict[Kind, str] = {
    "sampling": f"Sampling, Gumbeldore {BEAM_WIDTH} x {ROUNDS}",
    "greedy": "Greedy construction",
    "training": "Training, data preparation included",
    "epoch": "One epoch of self-improvement, from sampling to validation",
}
Result = dict[str, Any]


def measured(script: str, case: Case, options: argparse.Namespace, *extra: object) -> Result:
    """One measurement in a process of its own; `error` instead of figures if it failed."""
    command = [
        sys.executable,
        HERE / script,
        "--case",
        case.name,
        "--seconds",
        options.seconds,
        "--threads",
        options.threads,
        *extra,
    ]
    if options.smoke:
        command.append("--smoke")
    threads = {name: str(options.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env={**os.environ, **threads})
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return {"error": lines[-1]}
    result: Result = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def compare(case: Case, options: argparse.Namespace) -> Result:
    """All rounds of one case, interleaved, and their summary."""
    ours: list[Result] = []
    public: list[Result] = []
    for index in range(options.rounds):
        ours.append(measured("ours.py", case, options, "--workers", options.workers))
        say(case, index, "ours", ours[-1])
        if options.public and case.public:
            rows = ours[-1].get("rows")
            extra = ["--rows", rows] if case.extrapolate and case.kind == "sampling" and rows else []
            public.append(measured("public.py", case, options, "--path", options.public, *extra))
            say(case, index, "public", public[-1])
    figures = summary(case, ours, public, options.smoke)
    return {"name": case.name, "kind": case.kind, **figures, "rounds": {"ours": ours, "public": public}}


def say(case: Case, index: int, side: str, result: Result) -> None:
    text = result.get("error") or f"{result['rate']:.4g} {UNITS[case.kind]}"
    print(f"{time.strftime('%H:%M:%S')}  {case.name:<20} round {index + 1} {side:<7} {text}", file=sys.stderr, flush=True)


def summary(case: Case, ours: list[Result], public: list[Result], smoke: bool) -> Result:
    """Medians over the rounds, and how far they are apart."""
    mine, theirs = [r for r in ours if "rate" in r], [r for r in public if "rate" in r]
    if not mine:
        return {"error": ours[-1]["error"]}
    result: Result = {
        "rate": middle(mine, "rate"),
        "spread": spread(mine),
        "product_gflops": middle(mine + theirs, "product_gflops"),
    }
    for name in ("outside", "network_gflops", "peak_mb"):
        result[name] = middle(mine, name)
    if theirs:
        result["public"], result["public_spread"] = middle(theirs, "rate"), spread(theirs)
        result["public_peak_mb"] = middle(theirs, "peak_mb")
        result["public_from"] = "extrapolated" if theirs[0]["extrapolated"] else "timed"
        pairs = [a["rate"] / b["rate"] for a, b in zip(ours, public, strict=True) if "rate" in a and "rate" in b]
        result["ratio"] = result["rate"] / result["public"]
        result["ratio_range"] = [min(pairs), max(pairs)] if pairs else None
    elif public:
        result["public_from"], result["public_error"] = "failed", public[-1]["error"]
    elif case.elsewhere is not None and not smoke:
        result["public"] = case.elsewhere * result["product_gflops"] / ELSEWHERE_GFLOPS
        result["public_from"], result["ratio"] = "scaled", result["rate"] / result["public"]
    return result


def middle(results: list[Result], name: str) -> float | None:
    values = [r[name] for r in results if r.get(name) is not None]
    return median(values) if values else None


def spread(results: list[Result]) -> float:
    """Half the distance between the slowest and the fastest, relative to the median."""
    rates = [r["rate"] for r in results]
    return (max(rates) - min(rates)) / 2 / median(rates)


def table(kind: Kind, results: list[Result]) -> str:
    """A table in Markdown."""
    head = [
        "case",
        UNITS[kind],
        "outside",
        "GFLOP/s (product)",
        "of product",
        "MB",
        f"public, {UNITS[kind]}",
        "public MB",
        "ratio",
    ]
    lines = [f"## {TITLES[kind]}", "", "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    lines += ["| " + " | ".join(row(result)) + " |" for result in results]
    return "\n".join(lines) + "\n"


def row(r: Result) -> list[str]:
    if "error" in r:
        return [r["name"], f"failed: {r['error']}", *[""] * 7]
    network, product = r["network_gflops"], r["product_gflops"]
    mark = {"timed": "", "extrapolated": "~", "scaled": "*"}.get(r.get("public_from", ""), "")
    public = f"{mark}{figure(r['public'])}" if "public" in r else ""
    if "public_error" in r:
        public = "failed"
    if "public_spread" in r:
        public += f" +- {r['public_spread']:.0%}"
    ratio = f"{r['ratio']:.2f}{'*' if mark == '*' else ''}" if "ratio" in r else ""
    if r.get("ratio_range"):
        ratio += " ({:.2f} .. {:.2f})".format(*r["ratio_range"])
    memory = r.get("public_peak_mb")
    return [
        r["name"],
        f"{figure(r['rate'])} +- {r['spread']:.0%}",
        "" if r["outside"] is None else f"{r['outside']:.0%}",
        f"({product:.0f})" if network is None else f"{network:.0f} ({product:.0f})",
        "" if network is None else f"{network / product:.0%}",
        f"{r['peak_mb']:.0f}",
        public,
        "" if memory is None else f"{'> ' if mark == '~' else ''}{memory:.0f}",
        ratio,
    ]


def figure(value: float) -> str:
    """Three digits, and seconds instead of very small rates."""
    if value < 0.1:
        return f"1/{1 / value:.3g} s"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def machine(options: argparse.Namespace) -> Result:
    """What the figures depend on."""
    import torch

    cpu = Path("/proc/cpuinfo")
    names = (
        [line.split(":", 1)[1].strip() for line in cpu.read_text().splitlines() if line.startswith("model name")]
        if cpu.exists()
        else []
    )
    return {
        "cpu": names[0] if names else platform.processor(),
        "cores": os.cpu_count(),
        "threads": options.threads,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "load_before": os.getloadavg()[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--public", type=Path, help="a clone of github.com/grimmlab/gumbeldore, timed in the same run")
    parser.add_argument("--only", default="", help="cases whose name contains one of these words, separated by commas")
    parser.add_argument("--seconds", type=float, default=5.0, help="per measurement, at least (whole runs)")
    parser.add_argument("--rounds", type=int, default=2, help="measurements of each side")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of torch, on both sides")
    parser.add_argument(
        "--workers", type=int, default=0, help="our worker processes of one thread each; 0: one process, all threads"
    )
    parser.add_argument("--json", type=Path, default=HERE / "results" / "speed.json", help="where to write the results")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: checks the benchmark, the figures mean nothing")
    options = parser.parse_args()
    cases = chosen(options.only)
    if not cases:
        raise SystemExit(f"`--only` fits no case. Known: {', '.join(case.name for case in CASES)}.")
    if options.public and not (options.public / "core").is_dir():
        raise SystemExit(f"`--public` must be a clone of github.com/grimmlab/gumbeldore, got {options.public}.")
    about, results = machine(options), []
    for case in cases:
        results.append(compare(case, options))
        options.json.parent.mkdir(parents=True, exist_ok=True)
        settings = {name: getattr(options, name) for name in ("seconds", "rounds", "workers", "smoke")}
        content = {"machine": about, "settings": settings, "cases": results}
        options.json.write_text(json.dumps(content, indent=1) + "\n")
    print(", ".join(f"{name} {value}" for name, value in about.items()), "\n")
    for kind in TITLES:
        of_kind = [result for result in results if result["kind"] == kind]
        if of_kind:
            print(table(kind, of_kind))
    print(f"Written to {options.json}.", file=sys.stderr)


if __name__ == "__main__":
    main()
