"""sluiced killed at every write, over a busy cluster: see __main__.py."""
