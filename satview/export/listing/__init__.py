"""Events printed as text: the listings of traceprinter, and rows of CSV and JSON."""
