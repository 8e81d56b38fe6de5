"""Real worker processes for kill tests, the load they work on, and the truth their output is held against."""
