"""The objective and its minimisation: pure numerics over arrays."""
