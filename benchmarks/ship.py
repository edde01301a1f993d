"""Takes a trained policy into the package: weights without what only training needs, and a manifest, from which `make docs` makes the model card.

python benchmarks/ship.py --kit tsp --run RUN --name tsp-small --results TABLE.json ... --trained "TSP 50 and 100" --hours 2.5 --default

RUN is the folder of a training, TABLE.json what `gumbeldore evaluate` wrote for it. --last takes the averaged weights of the newest checkpoint instead of
the best ones by validation, which few instances may have chosen by luck.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

from gumbeldore.io.policy_files import load_policy, read_weights, save_policy
from gumbeldore.kits.registry import kit_named
from gumbeldore.training.checkpoint import load_state

ROOT = Path(__file__).resolve().parent.parent


def results(tables: list[Path], beside: list[str]) -> list[dict[str, object]]:
    """The rows of the policy, and of baselines `beside` it, in what `gumbeldore evaluate` wrote: sets, searches, gaps with their intervals."""
    rows = [row for table in tables for row in json.loads(table.read_text())["rows"]]
    rows = [row for row in rows if row.get("evaluations") or row["method"] in beside]
    keys = {
        "set": "set",
        "search": "method",
        "gap": "gap",
        "low": "gap_low",
        "high": "gap_high",
        "instances": "instances",
        "reference": "reference",
    }
    plain = [{name: row[key] for name, key in keys.items() if row.get(key) is not None} for row in rows]
    return [{name: 100 * value if name in ("gap", "low", "high") else value for name, value in row.items()} for row in plain]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("kit", "name", "trained", "summary", "how"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--hours", type=float, required=True, help="core-hours")
    parser.add_argument("--results", type=Path, nargs="*", default=[])
    parser.add_argument("--beside", nargs="*", default=[], help="baselines of these tables to show beside it")
    parser.add_argument("--value", nargs=3, metavar=("SET", "SEARCH", "VALUE"), help="a result without a gap, of a game, say")
    parser.add_argument("--commands", nargs="*", default=[])
    parser.add_argument("--default", action="store_true")
    parser.add_argument("--last", action="store_true", help="the averaged weights after the last epoch")
    given = parser.parse_args()
    kit = kit_named(given.kit)
    folder = ROOT / "src/gumbeldore/problems" / given.kit / "policies"
    folder.mkdir(exist_ok=True)
    source = given.run / "policy.safetensors" if given.run.is_dir() else given.run
    policy, (_, header) = load_policy(source), read_weights(source)
    if given.last:
        saved = load_state(given.run / "checkpoint.pt")
        policy.load_state_dict(saved["averaged"])
        header["epoch"] = str(saved["epoch"])
    heads = {name: 0.0 for name in ("successor_weight", "assignment_weight") if policy.config.get(name)}
    if heads:  # only training needs them
        lean = type(policy).from_config({**policy.config, **heads})
        lean.load_state_dict({name: policy.state_dict()[name] for name in lean.state_dict()})
        policy = lean
    path = folder / f"{given.name}.safetensors"
    save_policy(path, policy, **{name: header[name] for name in ("problem", "epoch", "trained_on") if name in header})
    manifest = {
        "summary": given.summary,
        "default": given.default,
        "problem": kit.summary,
        "network": f"{type(policy).__name__}({', '.join(f'{key}={value}' for key, value in policy.config.items())})",
        "weights": sum(parameter.numel() for parameter in policy.parameters()),
        "trained": given.trained,
        "how": given.how,
        "hours": f"{given.hours:g} core-hours",
        "licence": "MIT",
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "commands": given.commands,
        "results": results(given.results, given.beside)
        + ([dict(zip(("set", "search", "value"), given.value, strict=True))] if given.value else []),
    }
    path.with_suffix(".json").write_text(json.dumps(manifest, indent=1) + "\n")
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
