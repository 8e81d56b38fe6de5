"""`python -m producer_client` is `cauce upload`."""

import sys

from producer_client.cli import run

sys.exit(run(sys.argv[1:], program="python -m producer_client"))
