"""Features as objects, by name, and as older versions wrote them."""

from __future__ import annotations

import pytest

from gumbeldore.errors import SettingsError
from gumbeldore.networks.distance_bias import DistanceBias
from gumbeldore.networks.features import read, written
from gumbeldore.networks.routes import CanonicalFrame
from gumbeldore.policies import CVRPPolicy, JSSPPolicy, TSPPolicy
from gumbeldore.problems.cvrp.loads import Loads
from gumbeldore.problems.tsp.bounds import SpanningTreeBounds


def test_features_are_written_by_name_with_the_options_that_are_not_the_usual_ones() -> None:
    features = (CanonicalFrame(), SpanningTreeBounds(tries=5), DistanceBias())
    assert written(features) == ["frame", "bounds:tries=5", "distance-bias"]
    assert written([SpanningTreeBounds(rounds=20, tries=5)]) == ["bounds:rounds=20,tries=5"]
    assert read(written(features), TSPPolicy.known) == features


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["frames"], "`features`: unknown `frames`. Known: distance-bias, frame, bounds"),
        (["loads"], "`features`: unknown `loads`. Known: distance-bias, frame, bounds"),
        (["bounds:depth=3"], "`features`: `bounds` has no option `depth`. It has rounds, tries"),
        (["frame:tries=3"], "`features`: `frame` has no option `tries`. It has none"),
        (["bounds:tries=x"], "`features`: `tries` of `bounds` must be a whole number, got 'x'"),
        (["bounds:tries=0"], "`tries` must be at least 1, got 0"),
        (["frame", "bounds", "frame"], "`features` must differ, but `frame` comes twice"),
        ([3], "`features` must be names, got 3"),
    ],
)
def test_features_that_are_none_are_refused(texts: list[str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        read(texts, TSPPolicy.known)


def test_a_network_is_made_again_from_its_config() -> None:
    for policy in (
        TSPPolicy(16, 1, 2, 16, features=(CanonicalFrame(), SpanningTreeBounds(rounds=9))),
        CVRPPolicy(16, 1, 2, 16, features=(Loads(),)),
        JSSPPolicy.from_config({"d": 16, "pairs": 1, "heads": 2, "ff": 16, "features": ["bounds"], "actions": "active"}),
    ):
        again = type(policy).from_config(policy.config)
        assert (again.config, again.features) == (policy.config, policy.features)


def test_the_papers_networks_have_no_features() -> None:
    for network in (TSPPolicy, CVRPPolicy, JSSPPolicy):
        assert network().features == ()


def test_switches_of_older_versions_are_features_now() -> None:
    assert TSPPolicy.upgraded({"d": 8, "pointer": 1, "frame": 1, "bounds": 0, "local": 1}) == {
        "d": 8,
        "features": ["distance-bias", "frame"],
    }
    assert CVRPPolicy.upgraded({"savings": 1, "loads": 1})["features"] == ["loads", "savings"]
    assert TSPPolicy.upgraded({"d": 8}) == {"d": 8}
    assert TSPPolicy.upgraded({"features": ["bounds:tries=5"]}) == {"features": ["bounds:tries=5"]}


def test_switches_change_the_features_that_are_usual() -> None:
    usual = ("distance-bias", "frame", "bounds")
    assert TSPPolicy.upgraded({"bounds": 0}, usual)["features"] == ["distance-bias", "frame"]
    assert TSPPolicy.upgraded({"frame": 1}, usual)["features"] == list(usual)
    assert TSPPolicy.upgraded({"local": 1}, ("bounds",))["features"] == ["distance-bias", "bounds"]


def test_heads_and_action_spaces_of_older_job_shop_policies_have_names_now() -> None:
    assert JSSPPolicy.upgraded({"pointer": 1, "bounds": 1, "active": 1}) == {
        "features": ["bounds"],
        "actions": "active",
        "successor_weight": 0.5,
    }
    plain = JSSPPolicy.upgraded({"pointer": 0, "bounds": 0, "active": 0})
    assert plain == {"features": [], "actions": "all", "successor_weight": 0.0}


def test_an_unknown_action_space_is_refused() -> None:
    with pytest.raises(SettingsError, match="`actions` must be one of all, active, got 'semi-active'"):
        JSSPPolicy.from_config({"actions": "semi-active"})
