"""Adapters for Keras, PyTorch, scikit-learn and XGBoost: plugins of cfproto-plugin like any other."""
