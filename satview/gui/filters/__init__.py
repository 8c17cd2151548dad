"""Widgets of the filter: editors with completion, chips, menus, dialogs."""
