"""Worker processes: the same results for any number of them, and failures shown at once."""

from __future__ import annotations

import copy
import os
from dataclasses import dataclass

import pytest
import torch
from jaxtyping import Int
from torch import Tensor

from gumbeldore import Gumbeldore
from gumbeldore.networks import native
from gumbeldore.parallel import devices as runs
from gumbeldore.parallel.devices import pick_workers
from gumbeldore.parallel.pool import WorkerError
from gumbeldore.parallel.processes import Processes
from gumbeldore.policies import GomokuPolicy, TSPPolicy
from gumbeldore.problem import Examples
from gumbeldore.problems import TSP, Gomoku
from gumbeldore.search.samplers import Greedy
from gumbeldore.training import TrainingSettings, next_action_loss, self_improve
from gumbeldore.training.workers import Workers, can_be_cut, cut

CITIES = 7
SETTINGS = TrainingSettings(epochs=2, instances=6, batches=3, batch_size=10, learning_rate=3e-3, sampling_batch=2, part_size=4)


def fresh_policy(seed: int = 0) -> TSPPolicy:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        policy = TSPPolicy(d=16, layers=2, heads=2, ff=32)
        for parameter in policy.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        return policy


def instances(count: int):
    return TSP(CITIES).generate(count, generator=torch.Generator().manual_seed(99))


@pytest.fixture
def one_thread():
    """Sums may be taken in another order by more threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_what_gradients_needed_is_let_go_when_the_training_ends(monkeypatch):
    """The policy lives on; the memory was that of a copy, which is gone with the training."""
    monkeypatch.setattr(native, "_spare", [])
    monkeypatch.setattr(native, "_owners", set())
    policy = fresh_policy()
    epochs = self_improve(TSP(CITIES), policy, Gumbeldore(4, 2), validation=instances(3), settings=SETTINGS)
    kept = [len(native._spare) for _ in epochs]
    assert native.library() is None or min(kept) > 0
    assert native._spare == []


def test_training_gives_the_same_weights_bit_for_bit_with_any_number_of_workers(one_thread):
    outcomes = []
    for workers in (0, 1, 3):
        policy = fresh_policy()
        epochs = list(
            self_improve(TSP(CITIES), policy, Gumbeldore(4, 2), validation=instances(9), settings=SETTINGS, workers=workers)
        )
        outcomes.append((policy.state_dict(), [(e.loss, e.sampled, e.validation) for e in epochs]))
    for weights, numbers in outcomes[1:]:
        assert numbers == outcomes[0][1]
        for name, tensor in weights.items():
            assert torch.equal(tensor, outcomes[0][0][name]), name


@pytest.mark.parametrize(("count", "here"), [(0, 3), (1, 1)])
def test_beside_worker_processes_this_one_has_a_single_thread(one_thread, count, here):
    torch.set_num_threads(3)
    with Workers(TSP(CITIES), fresh_policy(), count):
        assert torch.get_num_threads() == here
    assert torch.get_num_threads() == 3


def test_a_batch_that_cannot_be_cut_has_all_threads(one_thread):
    torch.set_num_threads(3)
    with Workers(Gomoku(5), GomokuPolicy(size=5, channels=4, blocks=1), 1):
        assert torch.get_num_threads() == 3


def test_a_gradient_in_parts_is_that_of_the_whole_batch():
    problem, policy = TSP(CITIES), fresh_policy().double()
    generator = torch.Generator().manual_seed(0)
    actions = torch.stack([torch.randperm(CITIES - 1, generator=generator) + 1 for _ in range(11)])
    examples = problem.examples(instances(11), actions, generator=generator)
    expected = next_action_loss(problem, policy, examples)
    gradients = torch.autograd.grad(expected, list(policy.parameters()))
    for parts in (1, 4, 11, 20):
        with Workers(problem, policy, 0, parts=parts) as workers:
            loss, gradient = workers.gradient(examples)()
        assert loss == pytest.approx(expected.item(), rel=1e-6)
        torch.testing.assert_close(gradient, torch.cat([g.flatten() for g in gradients]), rtol=1e-5, atol=1e-7)


def test_frozen_weights_stay_as_they_are(one_thread):
    policy = fresh_policy()
    policy.node_embedding.requires_grad_(False)
    before = policy.node_embedding.weight.clone()
    list(self_improve(TSP(CITIES), policy, Gumbeldore(4, 2), validation=instances(4), settings=SETTINGS))
    assert torch.equal(before, policy.node_embedding.weight)


def test_solutions_come_in_order_and_follow_the_loaded_weights():
    first, second = fresh_policy(0), fresh_policy(1)
    state, seeds = instances(7), torch.arange(7)
    with Workers(TSP(CITIES), first, 2) as workers:
        for policy in (first, second, first):
            workers.load(policy)
            parts = list(workers.sample(Gumbeldore(3, 2), state, seeds, 2))
            assert [rows.start for rows, _ in parts] == [0, 2, 4, 6]
            for rows, solutions in parts:
                expected = Gumbeldore(3, 2)(TSP(CITIES), policy, state.rows(rows).compact(), seeds=seeds[rows])
                torch.testing.assert_close(solutions.best_objective, expected.best_objective)


def test_examples_cut_into_pieces_keep_their_instances():
    state = instances(5)
    pieces = cut(Examples(state.rows(torch.tensor([4, 3, 2, 1, 0])), torch.arange(5)), 2)
    assert [len(piece.action) for piece in pieces] == [2, 2, 1]
    joined = torch.cat([piece.state.coordinates[piece.state.instance] for piece in pieces])
    assert torch.equal(joined, state.coordinates.flip(0))


def test_policies_with_batch_norm_are_trained_on_whole_batches():
    assert can_be_cut(fresh_policy())
    assert not can_be_cut(GomokuPolicy(size=5))


def test_running_statistics_reach_the_workers():
    problem, policy = Gomoku(5), GomokuPolicy(size=5, channels=4, blocks=1)
    torch.nn.init.normal_(policy.policy_linear_out.weight)
    other = copy.deepcopy(policy)
    with torch.no_grad():
        for buffer in policy.buffers():
            if buffer.is_floating_point():
                buffer.mul_(1.7).add_(0.4)
    state = problem.generate(3, generator=torch.Generator().manual_seed(0))
    expected = Greedy()(problem, policy, state, seeds=torch.zeros(3, dtype=torch.long))
    with Workers(problem, other, 1) as workers:
        workers.load(policy)
        ((_, solutions),) = workers.sample(Greedy(), state, torch.zeros(3, dtype=torch.long))
    torch.testing.assert_close(solutions.log_prob, expected.log_prob)


@dataclass(frozen=True)
class BrokenTSP(TSP):
    def step(self, state, action: Int[Tensor, " row"]):
        raise RuntimeError("the road is closed")


def test_an_exception_in_a_worker_is_shown_at_once_with_its_cause():
    training = self_improve(BrokenTSP(CITIES), fresh_policy(), Greedy(), validation=instances(4), settings=SETTINGS, workers=2)
    with pytest.raises(WorkerError, match="the road is closed"):
        next(training)


def test_what_cannot_be_sent_is_refused_with_the_way_out():
    sampler = Gumbeldore(2, 1, advantage=lambda result: result.objective)
    with Workers(TSP(CITIES), fresh_policy(), 1) as workers, pytest.raises(WorkerError, match="`workers` to 0"):
        list(workers.sample(sampler, instances(1), torch.zeros(1, dtype=torch.long)))


def test_a_negative_number_of_workers_is_refused():
    with pytest.raises(ValueError, match="got -1"):
        Workers(TSP(CITIES), fresh_policy(), -1)


def test_one_worker_per_core_that_torch_may_use_unless_told_otherwise(one_thread, monkeypatch):
    assert (pick_workers(None, "cpu"), pick_workers(3, "cpu")) == (1, 3)
    monkeypatch.setattr(runs, "pick_device", lambda name: torch.device("cuda"))
    assert pick_workers(None) == 0


def process_number(_: int) -> int:
    return os.getpid()


def give_process_number():
    return process_number


def test_processes_are_started_once_and_one_run_ends_before_the_next():
    with Processes(give_process_number, 2) as pool:
        seen = {pid for _ in range(3) for _, pid in pool.run(dict.fromkeys(range(8), 0))}
        assert 1 <= len(seen) <= 2
        assert os.getpid() not in seen
        unfinished = pool.run({0: 0})
        with pytest.raises(ValueError, match="still at another run"):
            pool.run({0: 0})
        list(unfinished)
        assert len(list(pool.run({0: 0}))) == 1
    with pytest.raises(ValueError, match="have ended"):
        pool.run({0: 0})


def test_leaving_a_run_early_ends_the_processes():
    pool = Processes(give_process_number, 1)
    results = pool.run(dict.fromkeys(range(5), 0))
    next(results)
    results.close()
    with pytest.raises(ValueError, match="have ended"):
        pool.run({0: 0})
