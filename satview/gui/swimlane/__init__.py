"""The swimlanes: lanes with labels, ruler, overview and legend."""
