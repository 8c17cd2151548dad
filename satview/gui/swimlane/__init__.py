"""The swimlanes: lanes as one image, names beside them, ruler and overview above, legend below."""
