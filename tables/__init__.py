"""A RocksDB store per table partition and its changelog: stage, write, restore."""
