"""Builds queries/plain.c when the project is installed or a wheel is made, with the C compiler of the package ziglang:
the same one everywhere, pinned like every other package, so that no machine needs one of its own."""

import os
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# For any processor of this kind, not only for the one that builds. The code calls no library, not even C's own.
OPTIONS = ["-O3", "-std=c11", "-Wall", "-Wextra", "-Werror", "-mcpu=baseline", "-shared", "-fPIC", "-nostdlib"]


class BuildHook(BuildHookInterface):  # type: ignore[type-arg] # of what, is no business of ours
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = Path(self.root) / "queries"
        source = folder / "plain.c"
        built = (
            folder / f"_plain_{sha256(source.read_bytes()).hexdigest()[:12]}.so"
        )  # as queries/compiled.py looks for it
        for stale in folder.glob("_plain_*.so"):
            stale.unlink()
        with tempfile.TemporaryDirectory() as cache:
            caches = {"ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache}
            command = [sys.executable, "-m", "ziglang", "cc", *OPTIONS, "-o", str(built), str(source)]
            subprocess.run(command, check=True, env=os.environ | caches)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["artifacts"].append(f"queries/{built.name}")
