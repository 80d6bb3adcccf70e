"""JSON text: parsing within limits, paths into a tree, and where each value is in the text."""
