"""Runs processes: embedded Kafka, and the command line that starts and stops everything."""
