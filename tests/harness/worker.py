"""A worker process with faults planned into it: `python -m tests.harness.worker PLAN_AS_JSON`."""

import sys

from tables import store
from tests.harness.counting import build, build_vanilla
from tests.harness.faults import Injector, install
from tests.harness.plan import Plan


def main() -> None:
    plan = Plan.from_json(sys.argv[1])
    if plan.stale_seconds is not None:
        store.STALE_SECONDS = plan.stale_seconds  # type: ignore[misc]
    if plan.vanilla:
        app = build_vanilla(plan)
    else:
        injector = Injector(plan)
        install(plan, injector)
        app = build(plan, injector.event, observe=injector.observe)
    sys.argv = ["faust", "worker", "--without-web"]
    app.main()


if __name__ == "__main__":
    main()
