"""Second addresses of an embedded broker."""

from __future__ import annotations

from pathlib import Path

from deploy.embedded.processes import LOOPBACK


def add_listener(folder: Path, named: str, port: int, advertised: int, more: str = "") -> None:
    """Have a broker that is not started yet listen on one more port; `named` is NAME:PROTOCOL."""
    properties, name = folder / "server.properties", named.partition(":")[0]
    added = {
        "listeners=": f"{name}://{LOOPBACK}:{port}",
        "advertised.listeners=": f"{name}://{LOOPBACK}:{advertised}",
        "listener.security.protocol.map=": named,
    }
    lines = properties.read_text().splitlines()
    for place, line in enumerate(lines):
        lines[place] = line + "".join(f",{value}" for key, value in added.items() if line.startswith(key))
    properties.write_text("\n".join(lines) + f"\n{more}")
