"""Links between events: call and exit, state and next state, interrupt and handler. Columns of event rows, built once.

Every kind of link is one `LinkTable`, made from the columns of a trace when it is first requested and cached with the
trace. A link never crosses a range in which events are missing.
"""
