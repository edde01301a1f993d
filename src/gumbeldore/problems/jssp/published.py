"""The files of the public code: network and data of the job shop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gumbeldore.kits.published import PublishedData, PublishedInstance, PublishedNetwork

NETWORK = PublishedNetwork("final_trf_block.resweight", "encoder", heads={64: 8}, depth="pairs", per_layer=2)


def read(record: Mapping[str, Any]) -> PublishedInstance:
    """`proc_times` and `ops_machines` (from 0, or from 1); `job_seq`: the jobs in order, where there is one; `obj`: the makespan."""
    machines = np.asarray(record["ops_machines"], dtype=np.int64)
    if machines.ndim == 2 and machines.min() == 1 and machines.max() == machines.shape[1]:
        machines = machines - 1
    arrays = {"times": np.asarray(record["proc_times"]), "machines": machines}
    if record.get("job_seq") is None:
        return PublishedInstance(arrays, None, None)  # `obj` alone is the best known makespan of a Taillard instance
    return PublishedInstance(arrays, np.asarray(record["job_seq"], dtype=np.int64).tolist(), record.get("obj"))


DATA = PublishedData(frozenset({"proc_times", "ops_machines"}), read)
