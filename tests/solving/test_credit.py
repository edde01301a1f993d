"""Who works next."""

from __future__ import annotations

from collections import Counter, defaultdict

from gumbeldore.solving.credit import FLOOR, Credit

FREE: dict[str, float] = defaultdict(float)


def turns(credit: Credit, count: int, gains: dict[str, float], seconds: float = 0.1) -> Counter[str]:
    """How often each part has a turn, if it always gains the same."""
    seen = Counter[str]()
    for _ in range(count):
        name = credit.next(FREE)
        seen[name] += 1
        credit.pay(name, seconds, gains[name])
    return seen


def test_everyone_has_a_turn_and_the_one_that_gains_has_nearly_all_of_them():
    seen = turns(Credit(["a", "b", "c"], 10.0), 300, {"a": 0.01, "b": 0.0, "c": 0.0})
    assert seen["a"] > 300 * (1 - 4 * FLOOR)
    assert min(seen.values()) >= 300 * FLOOR / 2


def test_equal_parts_share_the_time_equally_and_dear_turns_are_rarer():
    assert max(turns(Credit(["a", "b"], 10.0), 100, {"a": 0.0, "b": 0.0}).values()) <= 51
    credit, spent = Credit(["cheap", "dear"], 10.0), Counter[str]()
    for _ in range(200):
        name = credit.next(FREE)
        seconds = 0.01 if name == "cheap" else 0.1
        spent[name] += seconds
        credit.pay(name, seconds, 0.0)
    assert abs(spent["cheap"] - spent["dear"]) < 0.2


def test_a_part_with_dear_turns_waits_until_the_others_have_had_as_much_also_if_they_gain():
    credit, before = Credit(["cheap", "dear"], 10.0), 0.0
    while (name := credit.next({"cheap": 0.1, "dear": 1.0})) == "cheap":
        credit.pay(name, 0.1, 0.01)
        before += 0.1
    assert 0.8 < before < 2.0


def test_it_forgets_so_that_a_part_which_gains_later_takes_over():
    credit = Credit(["a", "b"], 10.0)
    turns(credit, 50, {"a": 0.01, "b": 0.0})
    later = turns(credit, 100, {"a": 0.0, "b": 0.01})
    assert later["b"] > 60


def test_the_order_follows_from_times_and_gains_alone():
    orders = []
    for _ in range(2):
        credit = Credit(["a", "b", "c"], 5.0)
        orders.append([(name := credit.next(FREE), credit.pay(name, 0.1, 0.01 * (name == "b")))[0] for _ in range(40)])
    assert orders[0] == orders[1]


def test_a_part_that_is_done_has_no_more_turns():
    credit = Credit(["a", "b"], 5.0)
    credit.drop("a")
    assert turns(credit, 5, {"b": 0.0}) == {"b": 5}


def test_a_leader_has_all_but_the_floors_whatever_the_others_gain():
    seen = turns(Credit(["a", "b", "c"], 10.0, leader="a"), 300, {"a": 0.0, "b": 0.1, "c": 0.1})
    assert seen["a"] > 300 * (1 - 4 * FLOOR)


def test_what_a_helper_gains_as_usual_is_its_own_merit():
    credit = Credit(["search", "policy"], 10.0)
    credit.pay("search", 1.0, 0.1)
    credit.pay_both("policy", "search", 1.0, 0.5, 0.02)
    assert credit.accounts["policy"].gain == 0
    credit.pay_both("policy", "search", 1.0, 0.5, 0.5)
    assert credit.accounts["policy"].gain > 0.4
