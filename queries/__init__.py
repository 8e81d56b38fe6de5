"""The queries as data: what a file must have, what is kept of a row, and how an answer comes of it. No Kafka here."""
