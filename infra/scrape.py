"""What a process tells Prometheus, read by us."""

from prometheus_client.parser import text_string_to_metric_families

from infra.service import page


def gauges(port: int) -> dict[str, float]:
    """By name, without labels: the sum over them. Empty where nobody answers."""
    status, text = page(port, "/metrics")
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text) if status == 200 else ():
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found
