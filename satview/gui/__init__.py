"""Widgets. They draw what the session holds and send intentions back; they compute nothing and own no trace data."""
