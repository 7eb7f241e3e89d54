"""Counts and times of the service, as Prometheus reads them; one registry for each application."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
BATCHES = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """What is counted."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("anyorder_requests", "Requests answered", ["route", "status"], registry=self.registry)
        self.seconds = Histogram(
            "anyorder_request_seconds", "Time to an answer", ["route"], buckets=SECONDS, registry=self.registry
        )
        self.waiting = Gauge("anyorder_waiting", "Requests that wait for an answer", registry=self.registry)
        self.batches = Histogram(
            "anyorder_answered_together", "Questions in one batch", buckets=BATCHES, registry=self.registry
        )
        self.shared = Counter(
            "anyorder_shared_answers", "Answers that another request had asked for", registry=self.registry
        )
        self.models = Gauge("anyorder_models", "Models by state", ["status"], registry=self.registry)
        self.jobs = Gauge("anyorder_jobs", "Jobs that are kept, by state", ["state"], registry=self.registry)

    def text(self) -> bytes:
        """All of it, in the text format of Prometheus."""
        return generate_latest(self.registry)
