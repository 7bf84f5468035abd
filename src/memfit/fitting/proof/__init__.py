"""Proof that a training with a lever is the training without it, on the user's model and rows."""
