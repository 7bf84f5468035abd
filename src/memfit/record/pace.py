"""How often memory is sampled."""

_AT_FIRST_S = 0.5
# A kill may lose one second at most, so it never gets slower than this.
_LATER_S = 0.9
_AT_FIRST_UNTIL_S = 600.0


def sample_every_s(elapsed_s: float) -> float:
    """Returns the time until the next sample: a long run needs fewer of them.

    Args:
        elapsed_s: How long the run has lasted.
    """
    return _AT_FIRST_S if elapsed_s < _AT_FIRST_UNTIL_S else _LATER_S
