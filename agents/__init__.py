"""What happens to a batch. Each agent is a plain coroutine; streams/wiring.py ties it to its topics and tables."""
