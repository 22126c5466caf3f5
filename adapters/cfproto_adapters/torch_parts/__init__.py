"""What the PyTorch adapter is made of."""
