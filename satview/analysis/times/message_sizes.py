"""Whether a trace shows how large messages are."""

from __future__ import annotations

from typing import Final

import numpy as np

from satview.linkage.rows import rows_where
from satview.store.arguments import logged_codes_with
from satview.store.trace import Trace

SIZE: Final = "info->msglen"  # of a wide exit of MSG_RECEIVEV
SIZE_CLASS: Final = "KER_EXIT"
FAST_WORDS: Final = 2


def has_sizes(trace: Trace) -> bool:
    """Return whether any event of a trace shows the size of a message: an exit of MSG_RECEIVEV that was logged wide."""
    exits = rows_where(trace, logged_codes_with(trace, SIZE, SIZE_CLASS))
    return bool(len(exits)) and bool(np.any(trace.payloads.word_counts(exits) > FAST_WORDS))
