"""What is told of a fit: logs, events, spans."""
