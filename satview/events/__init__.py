"""The event catalogue: classes, events, states and argument lists per release, read from `resources/events`."""
