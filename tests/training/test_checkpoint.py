"""Files: atomic, complete, and never executed."""

from __future__ import annotations

import json
import pickle

import pytest
import torch

from gumbeldore.errors import CheckpointError
from gumbeldore.files import write_atomically
from gumbeldore.policies import TSPPolicy
from gumbeldore.policy import Network
from gumbeldore.problems.policy_files import load_policy, save_policy
from gumbeldore.training.checkpoint import MetricsFile, load_state, read_metrics, save_state


class Bomb:
    """Unpickling it would create a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_a_policy_comes_back_with_its_class_size_and_weights(tmp_path):
    policy = TSPPolicy(d=16, layers=1, heads=2, ff=32)
    save_policy(tmp_path / "policy.safetensors", policy, problem="tsp")
    again = load_policy(tmp_path / "policy.safetensors")
    assert isinstance(again, TSPPolicy)
    assert again.config == policy.config
    assert all(torch.equal(a, b) for a, b in zip(policy.state_dict().values(), again.state_dict().values(), strict=True))
    assert not again.training


def test_a_policy_class_of_ones_own_is_loaded_by_naming_it(tmp_path):
    class Mine(Network):
        def __init__(self, width: int = 2):
            super().__init__()
            self.config = {"width": width}
            self.linear = torch.nn.Linear(width, width)

    save_policy(tmp_path / "mine.safetensors", Mine(3))
    with pytest.raises(CheckpointError, match="policy_class"):
        load_policy(tmp_path / "mine.safetensors")
    assert load_policy(tmp_path / "mine.safetensors", Mine).config == {"width": 3}


def test_weights_that_do_not_fit_are_refused(tmp_path):
    save_policy(tmp_path / "policy.safetensors", TSPPolicy(d=16, layers=1, heads=2, ff=32))

    class Other(TSPPolicy):
        def __init__(self, d, layers, heads, ff):
            super().__init__(d, layers + 1, heads, ff)

    with pytest.raises(CheckpointError, match="do not fit"):
        load_policy(tmp_path / "policy.safetensors", Other)


@pytest.mark.parametrize("content", [b"", b"not a tensor file", b"\x80\x02N."])
def test_files_of_another_kind_are_refused(tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="file"):
        load_policy(path)
    with pytest.raises(CheckpointError, match="file"):
        load_state(path)


def test_missing_files_name_the_way_out(tmp_path):
    with pytest.raises(CheckpointError, match="gumbeldore train"):
        load_policy(tmp_path / "none")
    with pytest.raises(CheckpointError, match="--resume"):
        load_state(tmp_path / "none")


def test_nothing_in_a_checkpoint_is_executed(tmp_path):
    target = tmp_path / "exploded"
    torch.save({"format": "gumbeldore-1", "bomb": Bomb(target)}, tmp_path / "checkpoint.pt")
    with pytest.raises(CheckpointError):
        load_state(tmp_path / "checkpoint.pt")
    (tmp_path / "policy.safetensors").write_bytes(pickle.dumps(Bomb(target)))
    with pytest.raises(CheckpointError):
        load_policy(tmp_path / "policy.safetensors")
    assert not target.exists()


def test_a_state_comes_back_exactly(tmp_path):
    generator = torch.Generator().manual_seed(1)
    state = {"epoch": 3, "generator": generator.get_state(), "numbers": [1.5, None, "x"], "nested": {"t": torch.arange(3)}}
    save_state(tmp_path / "checkpoint.pt", state)
    again = load_state(tmp_path / "checkpoint.pt")
    assert again["epoch"] == 3
    assert again["numbers"] == [1.5, None, "x"]
    assert torch.equal(again["generator"], state["generator"])
    assert torch.equal(again["nested"]["t"], torch.arange(3))


def test_a_write_that_fails_leaves_the_old_file_and_no_rubbish(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def half(temporary):
        temporary.write_text("ne")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, half)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_metrics_beyond_the_checkpoint_and_cut_off_lines_are_dropped(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"epoch": 1}\n{"epoch": 2}\n{"epoch": 3}\n{"epo')
    assert [line["epoch"] for line in read_metrics(path)] == [1, 2, 3]
    MetricsFile(path, keep_epochs=2).append({"epoch": 3, "loss": 0.5})
    assert [json.loads(line)["epoch"] for line in path.read_text().splitlines()] == [1, 2, 3]
