"""Who calls the proxy: who may, and the session of each tenant."""
