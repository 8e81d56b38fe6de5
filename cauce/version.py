"""What `--version` says, of every command."""

from importlib import metadata


def version_line() -> str:
    """Returns the name and the version of the installed package."""
    return f"cauce {metadata.version('cauce')}"
