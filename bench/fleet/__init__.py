"""What a fleet costs its store: measured with two replicas, simulated with a hundred."""
