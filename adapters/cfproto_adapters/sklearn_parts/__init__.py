"""Helpers of the scikit-learn adapter."""
