"""The programming interface of the vendor's traceparser library, function by function, for programs ported from C."""
