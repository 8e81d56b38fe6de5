"""The words everyone shares: topics, errors, settings, logs."""
