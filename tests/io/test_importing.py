"""Checkpoints and data of the public code, as it stores them."""

from __future__ import annotations

import os
import pickle
from collections import OrderedDict

import numpy as np
import pytest
import torch
from routing import masked, parity_case

from gumbeldore.cli import main
from gumbeldore.errors import CheckpointError, FormatError
from gumbeldore.io.importing import import_instances, import_policy
from gumbeldore.io.instance_files import read_instances
from gumbeldore.io.policy_files import load_policy, read_weights
from gumbeldore.policies import CVRPLehdPolicy, CVRPPolicy, JSSPPolicy, TSPLehdPolicy, TSPPolicy
from gumbeldore.problems import JSSP

SMALL = {
    "tsp": TSPPolicy(32, 3, 4, 64),
    "tsp-lehd": TSPLehdPolicy(32, 2, 4, 64),
    "cvrp": CVRPPolicy(32, 2, 4, 64),
    "cvrp-lehd": CVRPLehdPolicy(32, 3, 4, 64),
    "jssp": JSSPPolicy(32, 2, 4, 64),
}


def checkpoint(path, weights, **changes):
    """What the public code saves: dictionaries of tensors, and the gap as a scalar of numpy."""
    plain = {
        "model_weights": OrderedDict((name, weight + 1) for name, weight in weights.items()),
        "best_model_weights": OrderedDict(weights),
        "optimizer_state": {"state": {0: {"step": torch.tensor(3.0)}}, "param_groups": [{"lr": 2e-4, "params": [0]}]},
        "epochs_trained": 7,
        "validation_opt_gap": np.float64(1.25),
    }
    torch.save(plain | changes, path)
    return path


@pytest.mark.parametrize("problem", SMALL)
def test_kind_and_size_are_recognised_by_names_and_shapes(problem, tmp_path):
    network = SMALL[problem]
    path = checkpoint(tmp_path / "a.pt", network.state_dict())
    policy, facts = import_policy(path, heads=4)
    assert type(policy) is type(network)
    assert policy.config == network.config
    assert facts == {"problem": problem, "epoch": "7"}
    for name, weight in network.state_dict().items():
        assert torch.equal(policy.state_dict()[name], weight)
    latest, _ = import_policy(path, heads=4, current=True)
    assert torch.equal(latest.policy_linear_out.weight, network.policy_linear_out.weight + 1)


@pytest.mark.parametrize(
    ("network", "heads"), [(TSPPolicy(128, 1, 8, 16), 8), (CVRPLehdPolicy(192, 1, 12, 16), 12), (JSSPPolicy(ff=16), 8)]
)
def test_the_heads_of_the_public_widths_are_known(network, heads, tmp_path):
    policy, _ = import_policy(checkpoint(tmp_path / "a.pt", network.state_dict()))
    assert policy.config == network.config
    assert policy.config["heads"] == heads


@pytest.mark.parametrize("name", ["tsp_bq", "tsp_lehd", "cvrp_bq", "cvrp_lehd"])
def test_converted_routing_weights_give_the_public_log_probabilities(shared, name, tmp_path):
    classes = {"tsp_bq": TSPPolicy, "tsp_lehd": TSPLehdPolicy, "cvrp_bq": CVRPPolicy, "cvrp_lehd": CVRPLehdPolicy}
    problem, state, actions, expected, original = parity_case(shared, name, classes[name])
    source, out = checkpoint(tmp_path / "a.pt", original.state_dict()), tmp_path / "policy.safetensors"
    assert main(["import", str(source), "--out", str(out), "--heads", str(original.config["heads"])]) == 0
    policy, root = load_policy(out), state
    for step in range(actions.shape[1]):
        actual = masked(problem, policy, state, gradients=False, root=root)
        torch.testing.assert_close(actual, expected[:, step], rtol=0, atol=1e-4)
        state = problem.step(state, actions[:, step])


def test_converted_job_shop_weights_give_the_public_log_probabilities(shared, tmp_path):
    file = shared / "data" / "parity" / "jssp.npz"
    if not file.is_file():
        pytest.skip("jssp.npz is absent")
    with np.load(file) as data:
        arrays = {key: torch.from_numpy(data[key]) for key in data}
    weights = {key.removeprefix("weights/"): value for key, value in arrays.items() if key.startswith("weights/")}
    policy, _ = import_policy(checkpoint(tmp_path / "a.pt", weights), heads=int(arrays["heads"]))
    problem = JSSP()
    root = state = problem.instances(arrays["times"], arrays["machines"])
    for step in range(arrays["jobs"].shape[1]):
        actual = masked(problem, policy, state, gradients=False, root=root)
        torch.testing.assert_close(actual, arrays["log_probs"][:, step], rtol=0, atol=1e-4)
        state = problem.step(state, arrays["jobs"][:, step])


class Touch:
    """Pickles as a command that touches a file."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.system, (f"touch {self.target}",)


def test_a_malicious_checkpoint_is_refused_and_touches_nothing(tmp_path):
    target = tmp_path / "touched"
    path = checkpoint(tmp_path / "a.pt", SMALL["tsp"].state_dict(), validation_opt_gap=Touch(target))
    with pytest.raises(CheckpointError, match="system") as caught:
        import_policy(path, heads=4)
    assert not target.exists()
    assert "weights_only" not in str(caught.value)
    torch.load(path, weights_only=False)
    assert target.exists()  # it would have


def test_no_other_object_of_numpy_is_let_in(tmp_path):
    for content in (np.arange(3), np.array([{}], dtype=object)):
        path = checkpoint(tmp_path / "a.pt", SMALL["tsp"].state_dict(), validation_opt_gap=content)
        with pytest.raises(CheckpointError, match=r"_reconstruct|numpy"):
            import_policy(path, heads=4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"best_model_weights": None}, "best_model_weights"),
        ({"best_model_weights": {"layer.weight": torch.zeros(2)}}, "no known kind"),
        ({"best_model_weights": {"first_last_marker.weight": torch.zeros(2, 8)}}, "lacks"),
        ({"best_model_weights": {**SMALL["tsp"].state_dict(), "extra": torch.zeros(1)}}, "extra"),
    ],
)
def test_other_checkpoints_get_one_line(change, message, tmp_path):
    path = checkpoint(tmp_path / "a.pt", SMALL["tsp"].state_dict(), **change)
    with pytest.raises(CheckpointError, match=message) as caught:
        import_policy(path, heads=4)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"junk", b"PK\x03\x04junk"])
def test_files_that_are_no_checkpoint_are_refused(content, tmp_path):
    (tmp_path / "a.pt").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"a\.pt"):
        import_policy(tmp_path / "a.pt")


def test_an_unknown_width_asks_for_the_heads(tmp_path):
    path = checkpoint(tmp_path / "a.pt", SMALL["tsp"].state_dict())
    with pytest.raises(CheckpointError, match="--heads"):
        import_policy(path)
    with pytest.raises(CheckpointError, match="multiple of `heads`"):
        import_policy(path, heads=5)


SQUARE = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])


def data(tmp_path, content):
    path = tmp_path / "data.pickle"
    path.write_bytes(pickle.dumps(content))
    return path


@pytest.mark.parametrize("tour", [[2, 1, 3, 0], np.array([2, 1, 3, 0]), [3, 2, 4, 1], [0, 2, 1, 3, 0]])
def test_tours_begin_with_city_0_whatever_their_files_count_from(tour, tmp_path):
    (found,) = import_instances(data(tmp_path, [{"inst": SQUARE, "tour": tour, "sol": np.float64(4.0)}] * 2))
    assert found.kind.name == "tsp"
    assert found.labels.actions.tolist() == [[2, 1, 3]] * 2
    assert found.labels.objective.tolist() == [-4.0, -4.0]


def test_routes_count_customers_from_1_in_the_file(tmp_path):
    record = {"capacity": 10.0, "nodes": SQUARE, "demands": np.array([0.0, 6, 5, 5]), "tour_length": 2 + 2 * 2**0.5 + 2**0.5,
              "tour_node_idcs": [1, 2, 3], "tour_node_flags": [1, 1, 0]}  # fmt: skip
    (found,) = import_instances(data(tmp_path, [record]))
    assert found.labels.actions.tolist() == [[1, 3, 4]]
    assert found.arrays["capacity"].tolist() == [10]


def test_job_shops_of_several_sizes_become_several_files(tmp_path, capsys):
    def shop(jobs, machines, **more):
        return {"proc_times": np.full((jobs, machines), 3), "ops_machines": np.tile(np.arange(machines), (jobs, 1)), **more}

    solved = shop(2, 2, job_seq=[0, 1, 0, 1], obj=9, title=None)
    path = data(tmp_path, {(2, 2): [solved, solved], (3, 2): [shop(3, 2, obj=5, title="ta01")]})
    assert main(["import", str(path), "--out", str(tmp_path / "out.npz")]) == 0
    assert read_instances(tmp_path / "out-2x2.npz", "jssp").labels.objective.tolist() == [-9, -9]
    assert read_instances(tmp_path / "out-3x2.npz", "jssp").labels is None
    assert main(["import", str(path), "--out", str(tmp_path / "out.npz")]) == 2
    assert "exists already" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([{"inst": SQUARE, "tour": [0, 1, 2, 2], "sol": 4.0}], "infeasible"),
        ([{"inst": SQUARE, "tour": [0, 2, 1, 3], "sol": 3.0}], "the file says 3"),
        ([{"inst": SQUARE, "tour": [1, 2, 3], "sol": 3.0}], "every city"),
        ([{"inst": [[np.float64("nan"), 0.0]] * 4, "tour": None}], "finite|NaN|nan"),
        ([{"inst": "cities", "tour": None}], "Record 0"),
        ([{"capacity": 10, "nodes": SQUARE, "demands": [0, 0.5, 1, 1]}], "whole numbers"),
        ([{"proc_times": np.ones((2, 2)), "ops_machines": np.zeros((2, 2), int)}], "machine"),
        ([{"x": 1}], "no known problem"),
        ([], "no list of records"),
        (7, "no list of records"),
    ],
)
def test_wrong_data_get_one_line(content, message, tmp_path):
    with pytest.raises(FormatError, match=message) as caught:
        import_instances(data(tmp_path, content))
    assert "\n" not in str(caught.value)


def test_the_command_says_what_it_wrote(tmp_path, capsys):
    network = JSSPPolicy()
    source, out = checkpoint(tmp_path / "a.pt", network.state_dict()), tmp_path / "policy.safetensors"
    assert main(["import", str(source), "--out", str(out)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "JSSPPolicy(d=64, pairs=3, heads=8, ff=256" in shown
    assert "for jssp" in shown
    header = read_weights(out)[1]
    assert (header["problem"], header["epoch"], header["imported_from"]) == ("jssp", "7", "a.pt")
