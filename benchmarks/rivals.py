"""Solutions of other people's trained networks, on our standard sets, for the same table as ours.

    python benchmarks/rivals.py attention CLONE --problem tsp --set tsp50 --first 200 --out runs/rivals/attention-tsp50.npz
    gumbeldore evaluate tsp --sets tsp50 --first 200 --samplers greedy --solutions attention=runs/rivals/attention-tsp50.npz

CLONE is a clone of the rival's repository; nothing of it is part of this one.

- `attention`: github.com/wouterkool/attention-learn-to-route (Kool, van Hoof, Welling 2019), greedy; tsp and cvrp with 20, 50, 100 nodes.
- `selflabeling`: github.com/AndreaCorsini1/SelfLabelingJobShop (Corsini et al. 2024), PtrNet-B256, greedy; needs torch_geometric. Its files of
  weights hold pickled objects: loading one executes what is in it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from gumbeldore.io.instance_files import write_instances
from gumbeldore.kits.instances import InstanceSet
from gumbeldore.kits.registry import kit_named

BATCH = 100


def attention(clone: Path, problem: str, instances: InstanceSet) -> list[list[int]]:
    """Greedy solutions by the published weights for instances of this size."""
    sys.path.insert(0, str(clone))
    from utils import load_model  # type: ignore[import-not-found]

    arrays = {name: torch.tensor(array, dtype=torch.float32) for name, array in instances.arrays.items()}
    nodes = arrays["coordinates" if problem == "tsp" else "nodes"]
    size = nodes.shape[1] - (problem == "cvrp")
    torch.load = _trusting(torch.load)  # its files hold more than tensors
    model, _ = load_model(str(clone / "pretrained" / f"{problem}_{size}"))
    model.eval()
    model.set_decode_type("greedy")
    found = []
    with torch.no_grad():
        for start in range(0, len(nodes), BATCH):
            rows = slice(start, start + BATCH)
            if problem == "tsp":
                given = nodes[rows]
            else:
                capacity = arrays["capacity"][rows].view(-1, 1)
                given = {"depot": nodes[rows, 0], "loc": nodes[rows, 1:], "demand": arrays["demands"][rows, 1:] / capacity}
            _, _, order = model(given, return_pi=True)
            found += order.tolist()
    return [tour_actions(order) if problem == "tsp" else route_actions(order) for order in found]


def _trusting(load: Callable) -> Callable:
    return lambda *arguments, **options: load(*arguments, **{**options, "weights_only": False})


def tour_actions(order: list[int]) -> list[int]:
    """A tour from city 0 on, which is not among the actions."""
    first = order.index(0)
    return order[first + 1 :] + order[:first]


def route_actions(order: list[int]) -> list[int]:
    """Customers from 1 on, 0 for the depot, as actions 2 c + v (see `CVRP`)."""
    actions, via_depot = [], True
    for node in order:
        if node:
            actions.append(2 * (node - 1) + via_depot)
        via_depot = node == 0
    return actions


def selflabeling(clone: Path, problem: str, instances: InstanceSet) -> list[list[int]]:
    """Greedy schedules by PtrNet-B256: the jobs in the order in which it appends their operations."""
    sys.path.insert(0, str(clone))
    from inout import extract_features, graph_edges, standardize  # type: ignore[import-not-found]
    from PointerNet import GATEncoder  # type: ignore[import-not-found]
    from sampling import JobShopStates  # type: ignore[import-not-found]

    weights, decoder = torch.load(clone / "checkpoints" / "PtrNet-B256.pt", map_location="cpu", weights_only=False)
    encoder = GATEncoder(15)
    encoder.load_state_dict(weights)
    encoder.eval(), decoder.eval()
    found = []
    for index in range(len(instances)):
        given = instances.instance(index)
        times, machines = torch.tensor(given["times"]).float(), torch.tensor(given["machines"]).long()
        size = times.shape
        with torch.no_grad():
            features = standardize(extract_features(*size, times, machines), dim=0)
            tokens = encoder(features, edge_index=graph_edges(*size, machines).t().contiguous())
            shop, jobs = JobShopStates(), []
            state, mask = shop.init_state({"j": size[0], "m": size[1], "machines": machines, "costs": times}, 1)
            for _ in range(size[0] * size[1]):
                job = (decoder(tokens[shop.ops], state) + mask.log()).argmax(1)
                jobs.append(int(job))
                mask = shop(job, state)
        found.append(jobs)
    return found


RIVALS = {"attention": attention, "selflabeling": selflabeling}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rival", choices=RIVALS)
    parser.add_argument("clone", type=Path)
    parser.add_argument("--problem", required=True)
    parser.add_argument("--set", required=True)
    parser.add_argument("--first", type=int, default=200)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    whole = kit_named(options.problem).standard[options.set].generate()
    instances = InstanceSet(whole.kind, {name: np.asarray(array[: options.first]) for name, array in whole.arrays.items()})
    actions = RIVALS[options.rival](options.clone.resolve(), options.problem, instances)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write_instances(options.out, instances.labelled(actions, f"{options.rival}, greedy"))
    print(f"{len(actions)} solutions in {options.out}.")


if __name__ == "__main__":
    main()
