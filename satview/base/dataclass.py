"""`dataclass` of the standard library for classes with slots, whose methods are compiled when they are first used.

The standard library compiles up to nine functions for each class while its module is imported: 0.3 to 0.6 ms a class.
A window with a trace imports 300 such classes, `satview info` 130; most of them get no object, hardly one is compared
or printed. All methods are made by `dataclasses`; only the slots are made at once, as they cannot be added later.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """Make a class a dataclass; arguments as of `dataclasses.dataclass`."""
        if cls is None:
            return lambda given: dataclass(given, **options)
        return _with_slots(cls, **options) if _can_wait(cls, options) else dataclasses.dataclass(cls, **options)


__all__ = ["dataclass", "make_methods"]

_PLAIN_OPTIONS: Final = {"slots", "frozen", "eq", "order", "repr", "weakref_slot"}
_OTHER_THAN_FIELDS: Final = ("ClassVar", "InitVar", "KW_ONLY", "typing.", "dataclasses.")
_OWN_WAYS: Final = {"__slots__", "__init__", "__new__", "__getstate__", "__setstate__"}
_FOR_OBJECTS: Final = (
    "__dataclass_params__",
    "__dataclass_fields__",
    "__match_args__",
    *(("__replace__",) if sys.version_info >= (3, 13) else ()),  # of `copy.replace`
    "__init__",
)
_FOR_ORDER: Final = ("__lt__", "__le__", "__gt__", "__ge__")
_lock: Final = threading.RLock()  # two threads may make the first object of a class


def make_methods(*kinds: type) -> None:
    """Make now what classes are going to need: on a thread of its own, before the window has to wait for it.

    Args:
        kinds: Classes that are dataclasses.
    """
    for kind in kinds:
        for name in ("__init__", "__eq__"):  # the one brings all that objects need, the other all that values do
            getattr(kind, name)


def _can_wait(cls: type, options: dict[str, Any]) -> bool:
    """Return whether the class has slots for plain fields, and gets its objects by a method of `dataclasses`."""
    kinds = inspect.get_annotations(cls).values()
    preset = [each for each in cls.__dict__.values() if isinstance(each, dataclasses.Field) and not each.init]
    return (
        bool(options.get("slots"))
        and options.keys() <= _PLAIN_OPTIONS
        and not cls.__dict__.keys() & _OWN_WAYS
        and not preset  # a default that `__init__` writes into slots only if it knows of them
        and not any(str(kind).startswith(_OTHER_THAN_FIELDS) for kind in kinds)
    )


def _with_slots(
    cls: type,
    *,
    slots: bool,
    frozen: bool = False,
    eq: bool = True,
    order: bool = False,
    repr: bool = True,  # noqa: A002  -- the name of the option of `dataclasses`
    weakref_slot: bool = False,
) -> type:
    """Return the class with slots for its fields, and with methods that wait for their first use."""
    names = tuple(inspect.get_annotations(cls))
    has_slots = {slot for base in cls.__mro__[1:-1] for slot in base.__dict__.get("__slots__", ())}
    members = {key: value for key, value in cls.__dict__.items() if key not in {*names, "__dict__", "__weakref__"}}
    members["__slots__"] = tuple(n for n in (*names, *["__weakref__"] * (slots and weakref_slot)) if n not in has_slots)
    members |= {"__getstate__": _values, "__setstate__": _set_values}
    if frozen:
        members |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
    if eq:
        members.setdefault("__eq__", _Waiting("__eq__"))
        if members.get("__hash__") is None:
            members["__hash__"] = _Waiting("__hash__") if frozen else None
    for name in ("__repr__",) * repr + _FOR_ORDER * order:
        members.setdefault(name, _Waiting(name))
    members |= {name: _Waiting(name) for name in _FOR_OBJECTS}
    made = type(cls)(cls.__name__, cls.__bases__, members)
    made.__qualname__ = cls.__qualname__

    def for_objects() -> type:
        return dataclasses.dataclass(cls, frozen=frozen, eq=False, repr=False)

    def for_values() -> type:
        fields = [
            (f.name, Any, dataclasses.field(repr=f.repr, hash=f.hash, compare=f.compare))
            for f in dataclasses.fields(made)
        ]
        return dataclasses.make_dataclass(cls.__name__, fields, init=False, eq=eq, order=order, unsafe_hash=eq)

    for name, value in members.items():
        if isinstance(value, _Waiting):
            value.of, value.makes = made, for_objects if name in _FOR_OBJECTS else for_values
    return made


class _Waiting:
    """Replaces an attribute of a class until `dataclasses` makes it, at its first use."""

    of: type
    makes: Callable[[], type]

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object | None, owner: type) -> Any:
        with _lock:
            if self.of.__dict__[self._name] is self:
                self._put(self.makes().__dict__)
        value = self.of.__dict__[self._name]
        return value.__get__(instance, owner) if hasattr(value, "__get__") else value

    def _put(self, made: Any) -> None:
        """Put what has been made where it was waited for; `__init__` comes last, as other threads begin there."""
        waiting = [(key, value) for key, value in self.of.__dict__.items() if isinstance(value, _Waiting)]
        for key, value in sorted(waiting, key=lambda item: item[0] == "__init__"):
            if value.makes is self.makes:
                setattr(self.of, key, made[key])


def _refuse_to_set(_self: object, name: str, _value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_self: object, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _values(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_values(self: Any, values: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), values, strict=True):
        object.__setattr__(self, field.name, value)  # the class may be frozen
