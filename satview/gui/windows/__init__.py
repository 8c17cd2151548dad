"""Windows: their content, commands, menus and status bar."""
