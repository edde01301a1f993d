"""The files of the public code: networks and data of the TSP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gumbeldore.errors import require
from gumbeldore.kits.published import PublishedData, PublishedInstance, PublishedNetwork

BQ = PublishedNetwork("first_last_marker.weight", "graph_encoder", heads={128: 8})
LEHD = PublishedNetwork("dest_projection.weight", "graph_decoder", heads={128: 8})


def read(record: Mapping[str, Any]) -> PublishedInstance:
    """`inst`: coordinates; `tour`: cities from 0, or from 1; `sol`: its length."""
    coordinates = np.asarray(record["inst"], dtype=np.float64)
    if record.get("tour") is None:
        return PublishedInstance({"coordinates": coordinates}, None, None)
    tour = np.asarray(record["tour"], dtype=np.int64)
    require(tour.ndim == 1 and tour.size > 0, f"`tour` must be a list of cities, got the shape {tour.shape}.")
    if tour.size == len(coordinates) + 1 and tour[0] == tour[-1]:
        tour = tour[:-1]
    tour = tour - tour.min() if tour.max() == len(coordinates) else tour
    require(bool((tour == 0).any()), "`tour` must visit every city.")
    turned = np.roll(tour, -int(np.flatnonzero(tour == 0)[0]))
    return PublishedInstance({"coordinates": coordinates}, turned[1:].tolist(), record.get("sol"))


DATA = PublishedData(frozenset({"inst"}), read)
