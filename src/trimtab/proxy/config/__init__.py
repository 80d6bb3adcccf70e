"""How the proxy is set up: its settings, the providers that it forwards to, and its log."""
