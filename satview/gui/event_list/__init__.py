"""The list of events: rows made on demand, whatever their number."""
