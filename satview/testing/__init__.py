"""The pytest plug-in of satview, and the assertions about a trace that its fixture `kev` offers."""
