"""How the proxy is set up: its settings, and the providers that it forwards to."""
