"""What `memfit data` tells: what is in it, whether it is intact, how fast it streams."""
