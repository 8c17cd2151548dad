"""Panels that consist of one file each; larger ones have a folder beside this one."""
