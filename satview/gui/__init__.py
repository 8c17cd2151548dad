"""Widgets. They draw the state of the session and pass input to it; they compute nothing and own no trace data."""
