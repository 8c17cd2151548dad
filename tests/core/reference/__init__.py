"""What the compiled core does, in numpy and Python, written to be read: tests hold the core to it.

Each module has functions of the module of `satview.core` with its name, with the same arguments and results; what they
mean is described there. `numpy_passes` of `replacing.py` lets all of satview call these instead, so that what its
callers make of the results is compared too.
"""
