"""Payloads of one length: which are texts, and which are equal."""

from __future__ import annotations

import numpy as np

from satview.core.texts import IS_ASCII, IS_NUMBERS, MAY_BE_UTF8


def text_kinds(data):
    """Return what each payload is."""
    if not data.size:
        return np.full(len(data), IS_NUMBERS, np.uint8)
    is_behind = np.maximum.accumulate(data == 0, axis=1)
    is_plain = ((data >= ord(" ")) & (data != 0x7F)) | (data == ord("\t")) | (data == ord("\n"))
    is_text = (data[:, 0] != 0) & np.where(is_behind, data == 0, is_plain).all(axis=1)
    has_more = (data >= 0x80).any(axis=1)
    return np.where(is_text, np.where(has_more, MAY_BE_UTF8, IS_ASCII), IS_NUMBERS).astype(np.uint8)


def same_rows(data):
    """Return numbers of payloads, and the first payload of each."""
    number_of, first_rows = {}, []
    numbers = np.zeros(len(data), np.uint32)
    for row, item in enumerate(map(bytes, data)):
        if item not in number_of:
            number_of[item] = len(first_rows)
            first_rows.append(row)
        numbers[row] = number_of[item]
    return numbers, np.array(first_rows, np.uint32)


def joined(data):
    """Return payloads up to their first zero, each with a zero behind it."""
    return np.frombuffer(b"".join(bytes(row).split(b"\0")[0] + b"\0" for row in data), np.uint8)
