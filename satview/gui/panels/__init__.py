"""Panels of one file each; larger ones have a room beside this one."""
