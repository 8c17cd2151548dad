"""What precedes the slots: the header and the system page."""
