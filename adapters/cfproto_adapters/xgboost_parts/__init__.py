"""What the XGBoost adapter is made of."""
