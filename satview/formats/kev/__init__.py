"""The kernel event trace file (.kev): header, system page, slots; reading, writing, payload layouts."""
