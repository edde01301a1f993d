"""What is tried: wrong command lines, files and kits; commands that are stopped; files that are damaged."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterator
from pathlib import Path

from trials.verdicts import wrote

ROOT = Path(__file__).resolve().parents[2]
TINY = [
    "--problem.cities", "8", "--policy.d", "16", "--policy.layers", "1", "--policy.heads", "2", "--policy.ff", "32",
    "--training.instances", "8", "--training.batches", "4", "--training.batch-size", "16", "--validation.instances", "16",
    "--sampler", "gd:4x2", "--device", "cpu",
]  # fmt: skip
HUGE, BEYOND = "99999999999999", "1180591620717411303424"
INSTANCES = ROOT / "tests/data/instances"
FLOW_SHOP = str(ROOT / "examples/flow_shop.py")
DAMAGED = "damaged"
"""The folder of damaged files."""


def wrong_values(folder: Path) -> Iterator[list[str]]:
    """Options with values that cannot be."""
    train = ["train", "tsp", "--folder", str(folder / "run"), "--training.epochs", "1", *TINY]
    numbers = ("0", "-1", HUGE, BEYOND, "1.5", "nan", "x", "")
    for option in (
        "epochs",
        "instances",
        "batches",
        "batch-size",
        "part-size",
        "seed",
        "patience",
        "local-search",
        "relabel",
        "replay-window",
    ):
        may = {"0"} if option in ("seed", "local-search", "relabel") else set()
        endless = ("epochs", "patience", "replay-window", "part-size", "batches", "local-search", "relabel")
        large = {HUGE} if option in ("seed", *endless) else set()
        large |= {BEYOND} if large and option != "seed" else set()  # without an end, but a number
        yield from ([*train, f"--training.{option}", value] for value in numbers if value not in may | large)
    for option, values in {
        "training.learning-rate": ("0", "-1", "nan", "inf", "x"),
        "training.final-learning-rate": ("0", "nan", "1.0"),
        "training.ema": ("1", "-0.1", "nan"),
        "training.goal": ("nan", "inf"),
        "training.precision": ("fp8", "16"),
        "training.generating": ("worst",),
        "sampler": (
            "magic",
            "gd",
            "gd:0x4",
            "gd:4x4,sigma=x",
            "gd:4x4,p=2",
            "gd:4x4,p=0.9..0.1",
            "beam:-1",
            "wr:x",
            "gd:4x4,,",
            "",
        ),
        "policy.heads": ("0", "3", "x"),
        "policy.d": ("0", "-8", "x"),
        "policy.features": ("magic",),
        "problem.cities": ("0", "1", "x", "nan"),
        "device": ("gpu", "cuda:99", ""),
        "workers": ("-1", "x"),
        "max-time": ("0x", "yesterday", ""),
        "preset": ("huge", ""),
        "settings": (str(folder / "nothing.toml"), str(folder)),
        "from": (str(folder / "nothing.safetensors"), "tsp-nothing"),
        "cluster": ("nowhere", "127.0.0.1:1"),
        "folder": ("/proc/nothing", "/dev/null/x"),
        "nonsense": ("1",),
    }.items():
        yield from ([*train, f"--{option}", value] for value in values)


def wrong_commands(folder: Path) -> Iterator[list[str]]:
    """Commands without what they need, or with what they do not know."""
    out = str(folder / "out.npz")
    for command in (
        "train",
        "imitate",
        "evaluate",
        "generate",
        "label",
        "check",
        "report",
        "status",
        "info",
        "import",
        "new",
        "nonsense",
    ):
        yield [command]
        if command != "new":  # which takes any name
            yield [command, "nonsense"]
        yield [command, str(folder / "nothing.py") + ":KIT"]
    yield from (["new", name] for name in ("a-b", "class", "tsp", "json", "Big", "1st", ""))
    yield from (["status", str(folder), "--every", value] for value in ("0", "-1", "x"))
    yield from (["report", str(folder), "--out", name] for name in ("page.txt", "/proc/x.html"))
    yield from (["generate", "tsp", "--out", name] for name in ("x.txt", "/proc/x.npz", str(folder)))
    yield from (
        ["generate", "tsp", "--out", out, f"--{o}", v]
        for o, v in (("count", "0"), ("cities", "-1"), ("seed", BEYOND), ("count", HUGE))
    )
    yield from (["label", "tsp", "--out", out, "--solver", name] for name in ("magic", ""))
    yield from (
        ["label", "tsp", "--out", out, f"--{o}", v]
        for o, v in (("seconds", "0"), ("seconds", "nan"), ("work", "-1"), ("workers", "0"))
    )
    yield from (["imitate", "tsp", "--labels", name] for name in (str(folder / "no.npz"), str(INSTANCES / "berlin52.tsp")))
    evaluate = ["evaluate", "tsp", "--folder", str(folder / "table"), "--workers", "0"]
    yield [*evaluate]
    yield [*evaluate, "--random", "0"]
    yield [*evaluate, "--random", "2", "--seed", BEYOND]
    for option, values in {
        "sets": ("nothing", "cvrp100", "/dev/null"),
        "policies": ("nothing", "/dev/null", str(folder)),
        "samplers": (
            "magic",
            "gd",
            "gd:0x4",
            "gd:4x4,sigma=x",
            "gd:4x4,p=2",
            "gd:4x4,p=0.9..0.1",
            "beam:-1",
            "wr:x",
            "gd:4x4,,",
        ),
        "baselines": ("magic", "pyvrp:x", "nearest-neighbour:2s", "local-search:0s"),
        "solutions": ("nothing", "a=", "a=/dev/null"),
        "first": ("0", "-1"),
        "repeats": ("0",),
        "against": ("nobody",),
        "workers": ("-1", "x"),
    }.items():
        yield from ([*evaluate, "--random", "2", "--baselines", "nearest-neighbour", f"--{option}", value] for value in values)


def wrong_files(folder: Path) -> Iterator[list[str]]:
    """Files that are not what they should be."""
    draw = random.Random(0)
    noise = bytes(draw.randrange(256) for _ in range(500))
    shipped = (ROOT / "src/gumbeldore/problems/tsp/policies/tsp-small.safetensors").read_bytes()
    for number, content in enumerate((b"", noise, b"{}", b"\x00" * 100, "no \ud7ff".encode(), b"NAME: x\nTYPE: TSP\n")):
        for suffix in (".tsp", ".npz", ".safetensors", ".toml", ".json", ".pt"):
            path = wrote(folder / f"wrong-{number}{suffix}", content)
            if suffix in (".tsp", ".npz"):
                yield ["solve", path, "--folder", str(folder / "solved")]
            elif suffix == ".safetensors":
                yield ["info", path]
                yield ["solve", str(INSTANCES / "berlin52.tsp"), "--policy", path, "--folder", str(folder / "solved")]
                yield ["train", "tsp", "--from", path, "--folder", str(folder / "run")]
            elif suffix == ".pt":
                yield ["import", path, "--out", str(folder / "out.safetensors")]
            elif content and (content.strip() != b"{}" or suffix == ".toml"):  # no settings at all are fine
                yield ["train", "tsp", "--settings", path, "--folder", str(folder / "run")]
    for number, header in enumerate(_headers()):
        path = wrote(folder / f"header-{number}.safetensors", _with_header(shipped, header))
        yield ["info", path]
        yield ["solve", str(INSTANCES / "berlin52.tsp"), "--policy", path, "--folder", str(folder / "solved")]


def _headers() -> Iterator[dict[str, object]]:
    """Entries of a policy's header that cannot be."""
    for config in ("null", "[]", "{", "3", '{"d": null}', '{"d": "x"}', '{"d": 7}', '{"magic": 1}'):
        yield {"config": config}
    yield from ({"policy": name} for name in ("", "Nobody", "os.system"))
    yield {"format": "gumbeldore-9"}


def _with_header(content: bytes, changes: dict[str, object]) -> bytes:
    size = struct.unpack("<Q", content[:8])[0]
    entries = json.loads(content[8 : 8 + size])
    entries["__metadata__"] = {k: v for k, v in {**entries["__metadata__"], **changes}.items() if k != "sha256"}
    head = json.dumps(entries).encode()
    return struct.pack("<Q", len(head)) + head + content[8 + size :]


def wrong_kits(folder: Path) -> Iterator[list[str]]:
    """A kit that works, with one fault each."""
    good = Path(FLOW_SHOP).read_text()
    faults = {
        "import": ("KIT = Kit(", "raise RuntimeError('oh dear')\nKIT = Kit("),
        "mask": ("        return ~state.done\n", "        raise ValueError('oh dear')\n"),
        "nothing_allowed": ("        return ~state.done\n", "        return state.done & ~state.done\n"),
        "mask_shape": ("        return ~state.done\n", "        return ~state.done[:, :3]\n"),
        "objective_nan": ("        return -state.free[:, -1]", "        return state.free[:, -1] * float('nan')"),
        "objective_shape": ("        return -state.free[:, -1]", "        return -state.free"),
        "horizon": ("        return int((~state.done).sum(1).max())", "        return 2"),
        "done": ("        return state.done.all(1)", "        return state.done.any()"),
        "step": ("        free = ends(", "        raise KeyError('gone')\n        free = ends("),
        "verify": ("    return Verdict(True, ", "    raise IndexError('gone')\n    return Verdict(True, "),
        "verdict": ("    return Verdict(True, -max", "    return Verdict(True, -1 - max"),
        "features": ("item_features, whole_features = 6, 2", "item_features, whole_features = 5, 2"),
        "syntax": ("KIT = Kit(", "KIT = = Kit("),
        "name": ('    "flowshop",', '    "flow shop-2",'),
        "no_kit": ("KIT = Kit(", "OTHER = Kit("),
    }
    for name, (before, after) in faults.items():
        assert before in good, name
        path = wrote(folder / f"kit_{name}.py", good.replace(before, after))
        yield ["check", f"{path}:KIT"]


def damaged_files(folder: Path, draw: random.Random) -> Iterator[tuple[str, list[str]]]:
    """Files that were whole: cut off, with flipped bits, with bytes put in or taken out, or with a piece of themselves twice."""
    shipped = ROOT / "src/gumbeldore/problems/tsp/policies/tsp-small.safetensors"
    sources = [INSTANCES / name for name in ("berlin52.tsp", "A-n32-k5.vrp", "ft06.txt", "ulysses16.tsp")]
    sources += [shipped, _small_set(folder / DAMAGED / "set.npz")]
    for source in sources:
        content = source.read_bytes()
        for number in range(12):
            kind = ("cut off", "flipped", "put in", "taken out", "twice")[number % 5]
            name = f"{number}-{kind.replace(' ', '-')}-{source.name}"
            path = wrote(folder / DAMAGED / name, _damaged(content, kind, draw))
            usual = ["info", path] if source == shipped else ["solve", path, "--time-limit", "0.2"]
            yield f"{source.name} {kind} {number}", usual if source == shipped else [*usual, "--folder", str(folder / "solved")]


def _small_set(path: Path) -> Path:
    import numpy as np

    points = np.random.RandomState(0).random_sample((2, 8, 2))
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, format=np.array("gumbeldore-instances-1"), problem=np.array("tsp"), coordinates=points)
    return path


def _damaged(content: bytes, kind: str, draw: random.Random) -> bytes:
    at = draw.randrange(len(content))
    if kind == "cut off":
        return content[:at]
    if kind == "flipped":
        return content[:at] + bytes([content[at] ^ 1 << draw.randrange(8)]) + content[at + 1 :]
    length = draw.randrange(1, 40)
    if kind == "put in":
        return content[:at] + bytes(draw.randrange(256) for _ in range(length)) + content[at:]
    return content[:at] + content[at + length :] if kind == "taken out" else content[: at + length] + content[at:]


def stoppable(folder: Path) -> Iterator[list[str]]:
    """Commands that take a while, for signals at any instant."""
    berlin = str(INSTANCES / "berlin52.tsp")
    yield ["train", "tsp", "--folder", str(folder / "train"), "--training.epochs", "10000", "--workers", "0", *TINY]
    yield ["train", "tsp", "--folder", str(folder / "workers"), "--training.epochs", "10000", "--workers", "2", *TINY]
    yield ["solve", berlin, "--folder", str(folder / "solve"), "--time-limit", "60", "--preset", "best"]
    yield ["evaluate", "tsp", "--random", "500", "--samplers", "gd:16x4", "--folder", str(folder / "table"), "--workers", "2"]
    yield [
        "label",
        "tsp",
        "--cities",
        "50",
        "--count",
        "5000",
        "--solver",
        "gumbeldore",
        "--work",
        "200",
        "--out",
        str(folder / "x.npz"),
    ]
    yield ["reproduce", "gomoku", "--scale", "cpu", "--folder", str(folder / "paper")]
    yield ["demo", "--folder", str(folder / "demo")]
    yield ["check", "jssp"]
    yield ["generate", "tsp", "--count", "200000", "--out", str(folder / "many.npz")]
    yield ["policies"]
    yield ["--version"]
