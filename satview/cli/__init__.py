"""The subcommands of `satview` that need no window. One module per command."""
