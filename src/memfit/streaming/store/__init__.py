"""memfit's own format on disk, the cache, its leases, and data spooled into it."""
