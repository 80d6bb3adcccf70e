"""HTTP on both sides of the proxy: requests that arrive, and what is sent to providers."""
