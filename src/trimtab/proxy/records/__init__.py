"""What the proxy keeps of the requests that it served: log, metrics, sessions and spend."""
