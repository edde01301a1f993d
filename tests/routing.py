"""What the tests of the routing problems and their networks share: a policy without opinion, roll-outs, network checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from gumbeldore.policy import Network
from gumbeldore.problem import Problem, replay
from gumbeldore.problems import CVRP, TSP

CLOSE = {"rtol": 0, "atol": 2e-5}


class Uniform:
    """All allowed actions are equally likely."""

    def __init__(self, problem: Problem[Any]) -> None:
        self.problem = problem

    def prepare(self, state: Any) -> None:
        return None

    def __call__(self, state: Any, context: None) -> Tensor:
        return torch.zeros(self.problem.mask(state).shape)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_actions(problem: Problem[Any], state: Any, generator: torch.Generator) -> Tensor:
    """Uniformly random allowed actions until all rows are done."""
    actions = []
    while not bool(problem.done(state).all()):
        mask = problem.mask(state)
        actions.append(torch.rand(mask.shape, generator=generator).masked_fill(~mask, -1).argmax(1))
        state = problem.step(state, actions[-1])
    return torch.stack(actions, 1)


def partial(problem: Problem[Any], count: int, steps: Tensor | int, seed: int = 0) -> Any:
    """Random instances after as many random steps each."""
    generator = seeded(seed)
    state = problem.generate(count, generator=generator)
    actions = random_actions(problem, state, generator)
    return replay(problem, state, actions, torch.as_tensor(steps).expand(count))


def awake(policy: Network, seed: int = 0) -> Network:
    """The network with random weights everywhere: ReZero scalars of 0 and biases of 0 would hide mistakes."""
    generator = seeded(seed)
    with torch.no_grad():
        for name, weight in policy.named_parameters():
            scale = 0.4 if name.endswith("resweight") else weight.shape[-1] ** -0.5
            weight.copy_((torch.rand(weight.shape, generator=generator) * 2 - 1) * scale)
            if name.endswith("resweight"):
                weight.abs_().add_(0.1)
    return policy


def masked(problem: Problem[Any], policy: Network, state: Any, *, gradients: bool, root: Any = None) -> Tensor:
    """Log-probabilities on the training path (with gradients) or the inference path; `prepare` sees `root`."""
    with torch.set_grad_enabled(gradients):
        logits = policy(state, policy.prepare(state if root is None else root))
    return torch.log_softmax(logits.masked_fill(~problem.mask(state), -torch.inf), 1).detach()


def parity_case(shared: Path, name: str, policy_class: type[Network]) -> tuple[Problem[Any], Any, Tensor, Tensor, Network]:
    """A network with the weights of the public code, its instances, a roll-out, and the public log-probabilities."""
    file = shared / "data" / "parity" / f"{name}.npz"
    if not file.is_file():
        pytest.skip(f"{file.name} is absent")
    with np.load(file) as data:
        arrays = {key: torch.from_numpy(data[key]) for key in data}
    weights = {key.removeprefix("weights/"): value for key, value in arrays.items() if key.startswith("weights/")}
    layers = 1 + max(int(key.split(".")[1]) for key in weights if key.split(".")[1].isdigit())
    ff, d = weights[next(key for key in weights if key.endswith("linear1.weight"))].shape
    policy = policy_class(d=d, layers=layers, heads=int(arrays["heads"]), ff=ff)
    policy.load_state_dict(weights)
    if "coordinates" in arrays:
        problem: Problem[Any] = TSP()
        state = problem.instances(arrays["coordinates"])
        assert bool((arrays["visited"][:, 0] == 0).all())
        actions = arrays["visited"][:, 1:]
    else:
        problem = CVRP()
        state = problem.instances(arrays["nodes"], arrays["demands"], arrays["capacity"])
        actions = 2 * (arrays["customers"] - 1) + arrays["via_depot"]
    return problem, state, actions, arrays["log_probs"], policy


def check_parity(shared: Path, name: str, policy_class: type[Network], gradients: bool) -> None:
    """Every distribution of the roll-out agrees with the public code's to 1e-4, and so do the masks."""
    problem, state, actions, expected, policy = parity_case(shared, name, policy_class)
    root = state
    for step in range(actions.shape[1]):
        actual = masked(problem, policy, state, gradients=gradients, root=root)
        torch.testing.assert_close(actual, expected[:, step], rtol=0, atol=1e-4)
        state = problem.step(state, actions[:, step])


def check_paths_agree(problem: Problem[Any], policy: Network, state: Any) -> None:
    """The folded inference path computes what the training path does."""
    training = masked(problem, policy, state, gradients=True)
    assert training.isfinite().any()
    torch.testing.assert_close(masked(problem, policy, state, gradients=False), training, **CLOSE)


def check_rows_are_independent(problem: Problem[Any], policy: Network, state: Any, *, gradients: bool) -> None:
    """Rows of different numbers of tokens in one call get what each of them gets alone, in any order."""
    together = masked(problem, policy, state, gradients=gradients)
    for row in range(state.row_count):
        alone = masked(problem, policy, state.rows(slice(row, row + 1)), gradients=gradients, root=state)
        torch.testing.assert_close(alone, together[row : row + 1], **CLOSE)
    order = torch.randperm(state.row_count, generator=seeded(1))
    shuffled = masked(problem, policy, state.rows(order), gradients=gradients, root=state)
    torch.testing.assert_close(shuffled, together[order], **CLOSE)


def check_all_weights_learn(problem: Problem[Any], policy: Network, state: Any) -> None:
    """On the training path every parameter moves the logits (not only the probabilities: those ignore the last bias)."""
    policy(state, policy.prepare(state))[problem.mask(state)].square().sum().backward()
    silent = [name for name, weight in policy.named_parameters() if weight.grad is None or float(weight.grad.norm()) < 1e-3]
    assert silent == [], silent
