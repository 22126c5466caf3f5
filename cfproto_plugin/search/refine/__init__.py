"""Improving candidates and confirming them."""
