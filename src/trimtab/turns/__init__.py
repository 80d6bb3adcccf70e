"""One request on its way, and what is kept of it for the next."""
