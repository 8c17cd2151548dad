"""The compiled core: the few passes that decide how long loading, links and drawing take, in C.

`loading`, `links` and `pictures` call them. Where the library is not there (no compiler, no wheel for the platform) the
numpy code beside each call runs; both give the same columns, and tests/core holds them together.
"""
