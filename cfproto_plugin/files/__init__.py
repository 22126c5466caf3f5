"""Saving and loading: values as exact JSON."""
