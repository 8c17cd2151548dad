"""Links between events: call and exit, state and next state, interrupt and handler, message and receipt, ...

Each kind of link is one `LinkTable`, computed from the columns of a trace at the first request and cached with the
trace. A link never crosses a range in which events are missing.
"""
