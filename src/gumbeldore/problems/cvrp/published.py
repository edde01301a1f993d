"""The files of the public code: networks and data of the CVRP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbeldore.errors import require
from gumbeldore.kits.published import PublishedData, PublishedInstance, PublishedNetwork

BQ = PublishedNetwork("depot_start_node_marker.weight", "graph_encoder", heads={192: 12})
LEHD = PublishedNetwork("capacity_embedding.weight", "graph_decoder", heads={192: 12})


def read(record: Mapping[str, Any]) -> PublishedInstance:
    """`capacity`, `nodes` and `demands` with the depot first; `tour_node_idcs`: customers from 1; `tour_node_flags`: via the depot."""
    arrays = {
        "nodes": np.asarray(record["nodes"], dtype=np.float64),
        "demands": _whole(record["demands"], "demands"),
        "capacity": _whole(record["capacity"], "capacity"),
    }
    if record.get("tour_node_idcs") is None:
        return PublishedInstance(arrays, None, None)
    customers, flags = (_whole(record[name], name) for name in ("tour_node_idcs", "tour_node_flags"))
    sound = customers.ndim == 1 and customers.shape == flags.shape and bool(np.isin(flags, (0, 1)).all())
    require(sound, "`tour_node_idcs` and `tour_node_flags` must be lists of the same length, the flags 0 or 1.")
    return PublishedInstance(arrays, (2 * (customers - 1) + flags).tolist(), record.get("tour_length"))


def _whole(value: Any, name: str) -> NDArray[np.int64]:
    numbers = np.asarray(value)
    require(numbers.dtype.kind in "biuf" and bool((numbers == np.round(numbers)).all()), f"`{name}` must hold whole numbers.")
    return numbers.astype(np.int64)


DATA = PublishedData(frozenset({"capacity", "nodes", "demands"}), read)
