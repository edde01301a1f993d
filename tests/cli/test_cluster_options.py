"""Who does the work, as the command line says it."""

from __future__ import annotations

import pytest

from gumbeldore import Cluster, SettingsError
from gumbeldore.cli.run_options import early_options, pool_of


def pool(*arguments: str) -> int | Cluster:
    return pool_of(early_options([*arguments, "--device", "cpu"], "runs/x")[0])


def test_processes_unless_a_cluster_is_named():
    assert pool("--workers", "3") == 3
    assert pool("--workers", "3", "--cluster", "auto", "--sampler-gpus", "0.125") == Cluster("auto", workers=3, gpus=0.125)


def test_a_share_of_a_gpu_without_a_cluster_is_refused():
    with pytest.raises(SettingsError, match="name one by --cluster"):
        pool("--sampler-gpus", "0.5")
