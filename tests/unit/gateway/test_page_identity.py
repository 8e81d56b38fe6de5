"""The page tells a gateway which file it sends by the same size, time and checksum as the command line."""

import base64
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from producer_client.fingerprints import Fingerprint

NODE = shutil.which("node")
PAGE = Path(__file__).parents[3] / "gateway" / "page"

# What `send` asks first is noted, and nothing more is sent.
ASK = """
import { readFileSync, statSync } from "node:fs"
globalThis.location = { origin: "http://127.0.0.1" }
const { send } = await import("./send.js")
const [path, isSafe] = process.argv.slice(2)
if (isSafe === "no") Object.defineProperty(globalThis, "crypto", { value: {} })
const file = new File([readFileSync(path)], "votes.csv", { lastModified: Math.floor(statSync(path).mtimeMs) })
const gateways = { ask: async (path, asked) => { console.log(JSON.stringify(asked.headers)); process.exit(0) } }
const source = { name: "ratings.csv", kind: { kind: "ratings" }, file }
await send(gateways, { client_id: "c", token: "t" }, source, () => true)
"""


@pytest.mark.skipif(NODE is None, reason="no node: WHAT THE PAGE SAYS OF A FILE WAS NOT TRIED")
@pytest.mark.parametrize(("size", "is_safe"), [(1_000, "yes"), (131_073, "yes"), (131_073, "no")])
def test_the_page_says_of_a_file_what_the_command_line_says(size: int, is_safe: str, tmp_path: Path) -> None:
    for script in ("send.js", "plain_tus.js", "net.js"):
        shutil.copy(PAGE / script, tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "ask.js").write_text(ASK)
    path = tmp_path / "ratings.csv"
    path.write_bytes(bytes(number * 31 % 251 for number in range(size)))
    command = [str(NODE), str(tmp_path / "ask.js"), str(path), is_safe]
    asked = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    pairs = (pair.split(" ") for pair in json.loads(asked.stdout)["Upload-Metadata"].split(","))
    said = {name: base64.b64decode(value).decode() for name, value in pairs}
    seen = {name: str(value) for name, value in Fingerprint.of(path).to_json().items()}
    if is_safe == "no":  # loaded by http from another machine: a browser has no checksums there
        del seen["fingerprint"]
    assert said == {"filename": "ratings.csv", "kind": "ratings", **seen}
