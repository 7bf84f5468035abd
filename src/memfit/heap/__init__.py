"""Python objects: what they are, how large, which name holds them."""
