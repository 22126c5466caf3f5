"""The search: loss terms, the FISTA iteration, the closed-form path and the fallback. NumPy only, batched over rows."""
