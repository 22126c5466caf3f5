"""Values as exact JSON."""
