"""The vendor's traceparser library in Python: callbacks per class and event, information modes, error codes."""
