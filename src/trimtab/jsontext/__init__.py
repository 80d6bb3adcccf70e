"""JSON text: parsing within limits, paths into a tree, and the position of values in the text."""
