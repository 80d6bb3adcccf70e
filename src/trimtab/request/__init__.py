"""One request being fitted: read, repaired, measured, planned, written and checked."""
