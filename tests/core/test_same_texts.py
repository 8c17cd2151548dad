"""The compiled passes over payloads say of texts and equal ones what their reference says."""

from __future__ import annotations

import numpy as np
import pytest

from satview.core import loading
from satview.core.library import call
from tests.core.reference import loading as reference


@pytest.mark.parametrize("seed", range(20))
def test_payloads_that_are_texts_and_equal_ones(seed):
    rng = np.random.default_rng(seed)
    count, size = int(rng.choice((0, 1, 2, 500))), int(rng.choice((1, 8, 12, 40)))
    letters = rng.choice((0, 9, 10, 31, 32, 65, 126, 127, 128, 255), (count, size), p=(0.1, *[0.02] * 3, *[0.14] * 6))
    data = np.where(rng.random((count, 1)) < 0.7, np.sort(letters, axis=1)[:, ::-1], letters).astype(np.uint8)
    data = data[rng.integers(0, max(1, count // 3), count)] if count else data
    assert loading.text_kinds(data).tolist() == reference.text_kinds(data).tolist()
    assert loading.joined(data).tolist() == reference.joined(data).tolist()
    for numbers, expected in zip(loading.same_rows(data), reference.same_rows(data), strict=True):
        assert numbers.dtype == expected.dtype
        assert numbers.tolist() == expected.tolist()


def test_what_a_text_is():
    rows = [b"ab\0\0", b"abcd", b"\0abc", b"a\0b\0", b"a\tb\n", b"a\x1fb\0", b"a\x7f\0\0", b"\xc3\xa4\0\0", b"\0\0\0\0"]
    kinds = loading.text_kinds(np.frombuffer(b"".join(rows), np.uint8).reshape(-1, 4)).tolist()
    assert kinds == [1, 1, 0, 0, 1, 0, 0, 2, 0]


def test_many_payloads_with_one_hash_take_no_longer():
    """Payloads that a stranger has made so: each is found or has a number of its own, after 64 looks at most."""
    count = 3_000
    word = np.arange(1, count + 1, dtype=np.uint64)
    mixed = (word ^ np.uint64(16)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    data = np.stack([word, mixed], axis=1)  # the second word takes back what the first one did
    number, of = loading.same_rows(np.concatenate((data, data)).view(np.uint8))
    assert (np.concatenate((data, data))[of[number]] == np.concatenate((data, data))).all()
    assert count < len(of) <= 2 * count


@pytest.mark.parametrize("places", [3, 4, 6])
def test_a_table_that_is_too_small_or_no_power_of_two_is_refused(places):
    rows = [np.zeros(4, np.uint32) for _ in range(2)]
    with pytest.raises(ValueError, match="joined: "):
        call("joined", 8, 4, np.zeros(32, np.uint8), np.zeros(35, np.uint8))
    with pytest.raises(ValueError, match="same_rows: "):
        call("same_rows", 8, np.zeros(32, np.uint8), *rows, np.zeros(places, np.uint32))
