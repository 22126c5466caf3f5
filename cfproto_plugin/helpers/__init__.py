"""Published helpers for authors of plugins."""
