"""Files that are still written: what is decoded goes on where it stopped."""
