"""sluiced on a real API server with simulated nodes."""
