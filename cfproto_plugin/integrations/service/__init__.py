"""What every server of an explainer needs: rows from requests, limits, batches, deadlines, and models behind a URL.

No server is imported here; `integrations.mlserver` and `integrations.kserve` are thin layers above it.
"""
