"""`python -m infra` is `cauce`."""

from infra.cli import main

main()
