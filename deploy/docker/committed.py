"""Whether each query of a job has lately finished a micro-batch: `python committed.py CHECKPOINTS SECONDS`.

The health check of a container that runs a job of Structured Streaming. Spark writes a file for each batch
into the folder `commits` of the checkpoint, when all of the batch is done: the newest one says when the query
last got anywhere. A query without input has nothing to commit and counts as standing still.

Exit code 0 if all do, else 1 and one line for each that does not. It uses the standard library alone.
"""

import sys
import time
from pathlib import Path


def idle_seconds(checkpoints: Path, now: float) -> dict[str, float | None]:
    """For each query below a folder the seconds since it last finished a batch; None where it never has."""
    found: dict[str, float | None] = {}
    for metadata in sorted(checkpoints.rglob("metadata")):
        commits = metadata.with_name("commits")
        if metadata.is_file() and (metadata.with_name("offsets").is_dir() or commits.is_dir()):
            times = [file.stat().st_mtime for file in commits.glob("[0-9]*")]
            found[str(metadata.parent.relative_to(checkpoints))] = now - max(times) if times else None
    return found


def main(checkpoints: str, seconds: str) -> int:
    """Say which queries stand still."""
    idle = idle_seconds(Path(checkpoints), time.time())
    if not idle:
        print(f"no query has begun in {checkpoints}")
        return 1
    standing = {query: since for query, since in idle.items() if since is None or since > float(seconds)}
    for query, since in standing.items():
        print(f"{query}: " + ("no batch yet" if since is None else f"no batch for {since:.0f} s"))
    return 1 if standing else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
