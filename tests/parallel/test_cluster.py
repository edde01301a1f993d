"""Samplers on a Ray cluster of several machines, played by Ray's own cluster utility on this one."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from gumbeldore import Greedy, Gumbeldore, SettingsError
from gumbeldore.evaluation import BaselineMethod, Evaluation, NamedSet, PolicyMethod
from gumbeldore.kits.registry import kit_named
from gumbeldore.parallel.cluster import Actors, Cluster, _Actor, _call
from gumbeldore.parallel.pool import WorkerDeath, WorkerError
from gumbeldore.policies import TSPPolicy
from gumbeldore.problems import TSP
from gumbeldore.problems.tsp.instances import TSPGenerator
from gumbeldore.training import TrainingSettings, self_improve
from gumbeldore.training.cluster_workers import ClusterWorkers
from gumbeldore.training.precision import Precision

SETTINGS = TrainingSettings(epochs=1, instances=6, batches=2, batch_size=8, learning_rate=3e-3, sampling_batch=2, part_size=4)


def node(alive: bool, **resources: float) -> dict[str, object]:
    return {"Alive": alive, "Resources": resources}


def test_as_many_samplers_as_fit_and_a_share_of_a_gpu_lies_on_one_gpu():
    nodes = [node(True, CPU=16, GPU=2), node(True, CPU=3), node(False, CPU=9, GPU=9)]
    assert Cluster().slots(nodes) == 19
    assert Cluster(gpus=0.125).slots(nodes) == 16
    assert Cluster(gpus=0.4).slots(nodes) == 4
    assert Cluster(gpus=2).slots(nodes) == 1
    assert Cluster(cpus=2).slots(nodes) == 9
    with pytest.raises(SettingsError, match="`sampler_gpus` above 1 must be whole"):
        Cluster(gpus=1.5)


def test_an_address_at_which_nobody_answers_is_named_at_once():
    for address in ("127.0.0.1:1", "ray://127.0.0.1:1", "127.0.0.1:x"):
        with pytest.raises(SettingsError, match=f"`cluster` {address} does not answer"):
            _call(address)
    _call("auto")


class LostError(Exception):
    """Plays Ray's errors."""


class RayPlayed:
    """A Ray whose references are what they refer to, and of whose machines `lost` is gone."""

    exceptions = SimpleNamespace(RayError=LostError, RayTaskError=ZeroDivisionError)

    def __init__(self, lost: str) -> None:
        self.lost = lost

    def get(self, reference):
        if isinstance(reference, Exception):
            raise reference
        return reference

    def nodes(self):
        return [{"NodeID": name, "Alive": name != self.lost} for name in ("a", "b")]


def death_on(machine: str, lost: str, said: str) -> WorkerDeath:
    """How an actor of a machine dies at its first item."""
    handle = SimpleNamespace(
        ready=SimpleNamespace(remote=lambda: ("", machine)), do=SimpleNamespace(remote=lambda item: LostError(said))
    )
    actor = _Actor(RayPlayed(lost), handle)
    assert actor.answer() == ("", machine)
    actor.ready = True
    actor.give(1)
    with pytest.raises(WorkerDeath) as caught:
        actor.answer()
    return caught.value


def test_whether_an_actor_died_with_its_machine_is_known():
    death = death_on("a", lost="a", said="The actor died.\nclass_name: x\nmemory ran out")
    assert death.with_machine
    assert str(death) == "The actor died. ... memory ran out"
    assert not death_on("a", lost="b", said="The actor died.").with_machine
    assert death_on("a", lost="b", said="The actor died because its node has died. Node Id: c").with_machine


SETTINGS_OF_RAY = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0"}


@pytest.fixture(scope="module")
def machines():
    """A cluster whose first machine has no room for samplers; tests add others."""
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    from ray.cluster_utils import Cluster as Machines

    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SETTINGS_OF_RAY.items():
            patch.setenv(name, value)
        machines = Machines(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        ray.init(address=machines.address, log_to_driver=False)
        yield machines
        ray.shutdown()
        machines.shutdown()


def fresh_policy() -> TSPPolicy:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return TSPPolicy(d=16, layers=1, heads=2, ff=32)


def weights_after(workers: int | Cluster) -> dict[str, torch.Tensor]:
    policy = fresh_policy()
    validation = TSP(7).generate(4, generator=torch.Generator().manual_seed(9))
    list(self_improve(TSP(7), policy, Gumbeldore(4, 2), validation=validation, settings=SETTINGS, workers=workers))
    return policy.state_dict()


class Lasting:
    """Waits for a file; tells where it is done, and how often."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def __call__(self, number: int) -> str:
        import ray

        where = ray.get_runtime_context().get_node_id()
        with open(self.folder / f"begun-{number}", "a") as file:
            file.write(where + "\n")
        while not (self.folder / "go").exists():
            time.sleep(0.05)
        return where


class MakeLasting:
    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def __call__(self) -> Lasting:
        return Lasting(self.folder)


def begun(folder: Path) -> int:
    return sum(len(file.read_text().splitlines()) for file in folder.glob("begun-*"))


class Broken(Greedy):
    def __call__(self, *arguments, **options):
        raise RuntimeError("the road is closed")


@pytest.mark.slow
def test_a_machine_removed_costs_time_only_and_one_that_joins_is_used(machines, tmp_path):
    """One run, in which the only machine is lost with two items begun, and another one joins."""
    with pytest.raises(SettingsError, match="No machine of the cluster has room for a sampler"):
        Actors(MakeLasting(tmp_path), Cluster())
    first = machines.add_node(num_cpus=2)
    machines.wait_for_nodes()
    events = iter([lambda: begun(tmp_path) == 2, lambda: begun(tmp_path) == 4])
    steps = iter([lambda: (machines.add_node(num_cpus=2), machines.remove_node(first)), (tmp_path / "go").touch])
    due, step = next(events), next(steps)

    class Watched(Actors):
        def _heard(self, workers):
            nonlocal due, step
            if due is not None and due():
                step()
                due, step = next(events, None), next(steps, None)
            return super()._heard(workers)

    with Watched(MakeLasting(tmp_path), Cluster()) as pool:
        results = dict(pool.run({number: number for number in range(3)}))
    assert sorted(results) == [0, 1, 2]
    assert len(set(results.values())) == 1  # on the machine that joined
    lost = {line for file in tmp_path.glob("begun-*") for line in file.read_text().splitlines()} - set(results.values())
    assert len(lost) == 1
    assert begun(tmp_path) == 5  # two of the three twice


@pytest.mark.slow
def test_a_training_on_a_cluster_gives_the_same_weights_as_processes_do_and_failures_are_shown(machines):
    machines.add_node(num_cpus=2)
    machines.wait_for_nodes()
    expected, found = weights_after(0), weights_after(Cluster())
    for name, weight in expected.items():
        assert torch.equal(weight, found[name]), name
    workers = ClusterWorkers(TSP(7), fresh_policy(), Cluster(), parts=1, precision=Precision())
    state = TSP(7).generate(3, generator=torch.Generator().manual_seed(1))
    with pytest.raises(WorkerError, match=r"(?s)nstances . to . failed in a worker process.*the road is closed"):
        list(workers.sample(Broken(), state, torch.arange(3), 2))
    workers.close()


@pytest.mark.slow
def test_an_evaluation_on_a_cluster_gives_the_answers_that_this_process_gives(machines, tmp_path):
    machines.add_node(num_cpus=1)
    machines.wait_for_nodes()
    sets, kit = [NamedSet.of("six", TSPGenerator(6, 3, 0).generate())], kit_named("tsp")
    methods = [
        PolicyMethod("policy", fresh_policy(), Gumbeldore(2, 2)),
        BaselineMethod("nearest", kit.baselines["nearest-neighbour"]),
    ]
    tables = []
    for where, workers in (("here", 0), ("there", Cluster())):
        evaluation = Evaluation(kit, sets, methods, tmp_path / where)
        list(evaluation.run(workers))
        tables.append([(row.method, row.cost, row.evaluations) for row in evaluation.report().rows])
    assert tables[0] == tables[1]
