"""Widgets of the filter: editors with proposals, chips, menus, dialogs."""
