"""Small changes of the code that a test must notice: `python -m tests.mutants`. See docs/reliability.md.

Why no library does it: mutmut changes functions through a switch that it compiles into them, so tables and constants of
modules stay as they are; cosmic-ray runs one command for every change, 20 times as long as what reaches the line.
Neither takes a seed and a number of changes, and neither changes C. What is used of libraries: `ast` says where things
are, `coverage` which test reaches which line.
"""
