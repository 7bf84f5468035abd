"""The order of rows: epochs, windows, buckets, and how well a budget shuffles them. Pure."""
