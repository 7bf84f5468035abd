"""Runs in the workers: numpy only."""

import numpy as np

_made = {}


def make(seed):
    """Return a noisy and a clean patch."""
    if seed not in _made:
        rng = np.random.default_rng(seed)
        clean = rng.standard_normal((256, 512), dtype="float32").cumsum(axis=1) / 20
        patch = clean + 0.1 * rng.standard_normal(clean.shape, dtype="float32"), clean
        _made[seed] = patch
    return _made[seed]
