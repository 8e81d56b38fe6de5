"""HTTP: takes uploads, cleans and keys their rows, serves answers and the dashboard."""

import os

# What Arrow takes for itself it takes from a pool that only this variable names, and only while pyarrow is loaded. It
# is mimalloc otherwise, with a store for each of many threads: that kept 90 MB of 20 uploads that had broken off.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
