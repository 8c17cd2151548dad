"""Classes whose methods are compiled at the first use are what `dataclasses` makes of them."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import field, replace
from threading import Thread
from typing import Any

import pytest

from satview.base.dataclass import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Point:
    x: int
    y: int = 2
    tags: list[str] = field(default_factory=list, compare=False)


@dataclass(frozen=True, slots=True)
class Far(Point):
    z: int = 3

    @property
    def total(self) -> int:
        return self.x + self.y + self.z


@dataclass(slots=True)
class Counter:
    count: int = 0

    def __post_init__(self) -> None:
        self.count += 1


@dataclass(slots=True)
class Preset:
    known: int
    later: int = field(init=False, default=5)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Token:
    name: str

    def __repr__(self) -> str:
        return f"<{self.name}>"


def waits(made: type, name: str) -> bool:
    return type(made.__dict__[name]).__name__ == "_Waiting"


def test_nothing_is_compiled_before_the_first_object() -> None:
    @dataclass(frozen=True, slots=True)
    class Pair:
        left: int
        right: int

    assert waits(Pair, "__init__")
    pair = Pair(1, right=2)
    assert not waits(Pair, "__init__")
    assert waits(Pair, "__eq__")
    assert waits(Pair, "__repr__")
    assert pair == Pair(1, 2)
    assert not waits(Pair, "__eq__")


def test_fields_values_and_order() -> None:
    assert [f.name for f in dataclasses.fields(Far)] == ["x", "y", "tags", "z"]
    assert Far(1).total == 1 + 2 + 3
    assert (Point(1), Point(1, 3), Point(0, 9)) == (Point(1, 2, ["other"]), Point(1, 3), Point(0, 9))
    assert sorted([Point(2), Point(1, 3), Point(1)]) == [Point(1), Point(1, 3), Point(2)]
    assert Point(1) != Far(1)
    assert replace(Far(1), z=7) == Far(1, z=7)
    assert {Point(1): "one"}[Point(1)] == "one"
    assert repr(Far(1, 5)) == "Far(x=1, y=5, tags=[], z=3)"
    assert repr(Token("a")) == "<a>"


def test_slots_are_all_there_is() -> None:
    assert Point.__slots__ == ("x", "y", "tags")
    assert Far.__slots__ == ("z",)
    assert not hasattr(Far(1), "__dict__")
    assert Counter().count == 1
    assert Counter(4).count == 5
    assert Preset(1).later == 5


@pytest.mark.parametrize("name", ["x", "other"])
def test_frozen_objects_refuse_changes(name: str) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError, match=name):
        setattr(Point(1), name, 3)
    with pytest.raises(dataclasses.FrozenInstanceError, match=name):
        delattr(Point(1), name)


def test_equality_and_hash_follow_the_options() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Counter())
    token = Token("a")
    assert token != Token("a")
    assert len({token, token}) == 1


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_copies_are_equal(again: Any) -> None:
    assert again(Far(1, 2, ["a"], 3)) == Far(1, 2, ["a"], 3)
    assert again(Counter(4)) == Counter(4)


def test_wrong_arguments_are_named_as_ever() -> None:
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'x'"):
        Point()  # type: ignore[call-arg]
    match Point(4, 5):
        case Point(x, y):
            assert (x, y) == (4, 5)


def test_two_threads_may_make_the_first_object() -> None:
    @dataclass(frozen=True, slots=True)
    class Shared:
        value: int

    made: list[int] = []
    threads = [Thread(target=lambda n=n: made.append(Shared(n).value)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == list(range(8))
