"""What proves Cauce and Kafka, and is not shipped."""
