"""Messages, pulses and interrupts with their times, as a table."""
