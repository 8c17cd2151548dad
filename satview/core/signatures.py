"""What functions of the compiled library take, a row each, and the call that checks it.

A test compares the rows with the C sources.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

from satview.core.library import I64, POINTER, address, function

# An array by its type as numpy writes it, `u1` for bool too; `n` a number of 64 bits, `c` one of 8.
SIGNATURES: Final = {
    "satview_run_slices": "u4 i8 n u2 u1 n i8 u1 u2 u4 n n u8 n i8 i8 u4 i8",
    "satview_cpu_states": "u4 i8 n u1 i8 u2 u4 n n u1 n n n i8 u1 u4 u2 u4",
    "satview_time_order": "i8 n i8 i8",
    "satview_disordered": "i8 n i8 i8",
    "satview_merged": "i8 u1 n i8 n i8 i8",
    "satview_went": "i8 n n u4 u8 n",
    "satview_moved": "u1 n n i8 n n n n n u1",
    "satview_far_rows": "i8 n i8 n n i8",
    "satview_thread_states": "u4 n u2 i8 n u1 n n n i8 u1",
    "satview_process_states": "i8 u1 u4 n i8 n i8 i8 u1 u1 i8 u1 u4",
    "satview_calls": "u2 u1 u2 u4 n u1 u1 u4 n u4 u4 u4 n i8",
    "satview_last_before": "u2 u1 n u1 u4 n u4",
    "satview_last_of": "u1 n u4 n u4 n u4",
    "satview_last_of_number": "u4 i8 n u4 i8 n u4 n u4",
    "satview_next_of_number": "u4 i8 n u4 i8 n u4 n u4",
    "satview_grouped_rows": "u2 n u2 n i8 i8 i8 u4",
    "satview_states": "u2 u2 u4 n u4 i8 n u1 c i8 u1 u4",
    "satview_state_positions": "u4 i8 n u4 i8 n i8 i8",
    "satview_sorted": "u4 n u8 n u4",
    "satview_next_where": "u1 n u1 u4",
    "satview_previous_same": "i8 n u4 n i8",
    "satview_numbered": "i8 n u4 n u4 i8",
    "satview_positions": "u4 n u4 n i8",
    "satview_key_positions": "i8 n i8 n i8",
    "satview_nested": "u2 u1 n i1 u4 n u4 u4 u4",
    "satview_nesting": "u2 u1 i8 n i1 u4 n n i8 n u4 i8 i1 i8 u1",
    "satview_event_counts": "u2 u2 u4 n n u1 n n i8 i8 i8 i8",
    "satview_covered": "i8 i8 n u8 i8 i8 n i8",
    "satview_slots_of": "u4 u8 u2 n u4 n n u4 i8",
    "satview_words_ahead": "u4 u2 n u8 n u4 n n u8",
    "satview_calls_of": "u4 u2 u4 n u4 i8 n u4",
    "satview_forms": "u4 i8 i8 n u1 i4 i4 n n i4",
    "satview_with_keys": "u4 i8 i8 n u8 n i8",
    "satview_protobuf": "u1 n i8 i8 n n i8 i8 i8 i8 u1",
}


def call(name: str, *arguments: Any) -> int:
    """Call a function of the library; only where `library.is_available`.

    Args:
        name: A row of `SIGNATURES`.
        arguments: Contiguous arrays of the types there, None for a null pointer, and numbers. The library holds none of
            them after the call.

    Returns:
        What the function returns; its source says what that means.
    """
    kinds = SIGNATURES[name].split()
    passed = [_passed(kind, argument) for kind, argument in zip(kinds, arguments, strict=True)]
    return int(function(name)(*passed))


def _passed(kind: str, argument: Any) -> Any:
    if kind == "n":
        return I64(argument)
    if kind == "c":
        return ctypes.c_uint8(argument)
    if argument is None:
        return POINTER(None)
    found = argument.dtype.str[1:]
    assert found == kind or (found, kind) == ("b1", "u1"), f"an array of {argument.dtype} where {kind} is taken"
    assert argument.flags.c_contiguous, "the library takes contiguous arrays"
    return address(argument)
