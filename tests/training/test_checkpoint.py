"""Files: atomic, complete, and never executed."""

from __future__ import annotations

import errno
import json
import pickle

import pytest
import torch
from safetensors.torch import save_file

from gumbeldore.errors import CheckpointError, DiskFullError
from gumbeldore.files import write_atomically
from gumbeldore.io.policy_files import load_policy, save_policy
from gumbeldore.policies import TSPPolicy
from gumbeldore.policy import Network
from gumbeldore.training.checkpoint import Checkpoints, MetricsFile, load_state, read_metrics, save_state


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
        def __init__(self, d, layers, heads, ff, features):
            super().__init__(d, layers + 1, heads, ff, features)

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
    with pytest.raises(CheckpointError, match="no checkpoint"):
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


def test_damaged_lines_are_left_out_and_told_and_the_old_file_is_kept(tmp_path):
    path = tmp_path / "metrics.jsonl"
    damaged = b'{"epoch": 1}\n\xff\xfe{"epoch": 2}\n[3]\nnull\n{"epoch": "4"}\n{"epoch": 5}\n'
    path.write_bytes(damaged)
    file = MetricsFile(path, keep_epochs=5)
    assert [line["epoch"] for line in read_metrics(path)] == [1, 5]
    assert "4 lines" in file.note
    assert (tmp_path / "damaged-metrics.jsonl").read_bytes() == damaged


def test_lines_that_found_no_room_are_written_with_the_next_one(tmp_path, monkeypatch):
    file = MetricsFile(tmp_path / "metrics.jsonl")
    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", full)
        with pytest.raises(DiskFullError):
            file.append({"epoch": 1})
    file.append({"epoch": 2})
    assert [line["epoch"] for line in read_metrics(file.path)] == [1, 2]


def full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def saved_twice(folder) -> Checkpoints:
    """The checkpoints of the epochs 1 and 2."""
    checkpoints = Checkpoints(folder)
    for epoch in (1, 2):
        checkpoints.save({"epoch": epoch, "weights": torch.full((50,), float(epoch))})
    return checkpoints


def test_the_last_two_checkpoints_are_kept(tmp_path):
    checkpoints = saved_twice(tmp_path)
    assert checkpoints.load()[0]["epoch"] == 2
    checkpoints.save({"epoch": 3})
    assert [load_state(path)["epoch"] for path in (checkpoints.newest, checkpoints.previous)] == [3, 2]
    assert checkpoints.load()[1] == ""


DAMAGE = {
    "cut off": lambda content: content[: len(content) // 2],
    "cut off in its first line": lambda content: content[:40],
    "one byte short": lambda content: content[:-1],
    "empty": lambda content: b"",
    "zeros": lambda content: bytes(len(content)),
    "something else": lambda content: b"hello",
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_newest_checkpoint_leads_to_the_one_before(tmp_path, damage):
    checkpoints = saved_twice(tmp_path)
    checkpoints.newest.write_bytes(damage(checkpoints.newest.read_bytes()))
    state, note = Checkpoints(tmp_path).load()
    assert state["epoch"] == 1
    assert "checkpoint.pt" in note
    assert "checkpoint.previous.pt" in note


def test_a_missing_newest_checkpoint_leads_to_the_one_before(tmp_path):
    checkpoints = saved_twice(tmp_path)
    checkpoints.newest.unlink()
    state, note = Checkpoints(tmp_path).load()
    assert state["epoch"] == 1
    assert "no checkpoint" in note


def test_every_flipped_bit_is_found(tmp_path):
    """In the first line, in the data and in what surrounds them."""
    path = saved_twice(tmp_path).newest
    content = path.read_bytes()
    for position in [*range(0, 100, 9), *range(100, len(content), len(content) // 60)]:
        flipped = bytearray(content)
        flipped[position] ^= 1 << position % 8
        path.write_bytes(flipped)
        assert Checkpoints(tmp_path).load()[0]["epoch"] == 1, position


def test_a_damaged_checkpoint_does_not_push_out_the_one_before(tmp_path):
    checkpoints = saved_twice(tmp_path)
    checkpoints.newest.write_bytes(b"damaged")
    again = Checkpoints(tmp_path)
    again.load()
    again.save({"epoch": 2})
    assert [load_state(path)["epoch"] for path in (again.newest, again.previous)] == [2, 1]


def test_two_damaged_checkpoints_are_both_named(tmp_path):
    checkpoints = saved_twice(tmp_path)
    for path in (checkpoints.newest, checkpoints.previous):
        path.write_bytes(b"damaged")
    with pytest.raises(CheckpointError, match=r"checkpoint\.pt is not .*checkpoint\.previous\.pt is not"):
        Checkpoints(tmp_path).load()


def test_a_checkpoint_from_before_there_were_checksums_is_loaded(tmp_path):
    path = tmp_path / "checkpoint.pt"
    torch.save({"format": "gumbeldore-1", "epoch": 7, "weights": torch.zeros(500)}, path)
    assert load_state(path)["epoch"] == 7
    flipped = bytearray(path.read_bytes())
    flipped[flipped.index(bytes(500)) + 100] ^= 1
    path.write_bytes(flipped)
    with pytest.raises(CheckpointError, match="damaged"):
        load_state(path)


def test_messages_do_not_advise_what_would_execute_code(tmp_path):
    torch.save({"format": "gumbeldore-1", "bomb": Bomb(tmp_path / "exploded")}, tmp_path / "checkpoint.pt")
    with pytest.raises(CheckpointError) as caught:
        load_state(tmp_path / "checkpoint.pt")
    assert "weights_only" not in str(caught.value)


def test_equal_weights_give_equal_bytes(tmp_path):
    policy = TSPPolicy(d=16, layers=1, heads=2, ff=32)
    for name in "ab":
        save_policy(tmp_path / name, policy, problem="tsp", epoch="3", more="x")
    content = (tmp_path / "a").read_bytes()
    assert content == (tmp_path / "b").read_bytes()
    header = content[8 : 8 + int.from_bytes(content[:8], "little")].decode()
    assert list(json.loads(header)["__metadata__"]) == sorted(json.loads(header)["__metadata__"])


def test_a_flipped_bit_in_a_policy_is_found(tmp_path):
    path = tmp_path / "policy.safetensors"
    save_policy(path, TSPPolicy(d=16, layers=1, heads=2, ff=32), problem="tsp")
    content = path.read_bytes()
    for position in range(0, len(content), len(content) // 60):
        flipped = bytearray(content)
        flipped[position] ^= 1 << position % 8
        path.write_bytes(flipped)
        with pytest.raises(CheckpointError, match=r"policy\.safetensors"):
            load_policy(path)


def test_a_policy_from_before_there_were_checksums_is_loaded(tmp_path):
    policy = TSPPolicy(d=16, layers=1, heads=2, ff=32)
    header = {"format": "gumbeldore-1", "policy": "TSPPolicy", "config": json.dumps(policy.config)}
    save_file(policy.state_dict(), tmp_path / "old.safetensors", metadata=header)
    assert torch.equal(load_policy(tmp_path / "old.safetensors").policy_linear_out.weight, policy.policy_linear_out.weight)
