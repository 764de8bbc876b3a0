"""Shows how far the input is read: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from twinstream.adapters.files.lines import InputFile
from twinstream.offline.bounded import WatchLines
from twinstream.ports import Line

UPDATE_LINES = 500
"""Lines between two updates: often enough for slow orders, without cost for quick ones."""


def progress(files: Sequence[InputFile]) -> AbstractContextManager[WatchLines]:
    """Shows, while the block runs, how many of the lines passing through the given function are read.

    With files of known sizes it shows the bytes read of all of them, the rate and the remaining time;
    otherwise the lines read, the rate and the elapsed time. A small input shows nothing, and nothing is ever
    written if standard error is no terminal.
    """
    sizes = [file.size for file in files]
    total = None if None in sizes else sum(filter(None, sizes))
    lines, speed = TextColumn("{task.fields[lines]:,} lines"), TransferSpeedColumn()
    columns: Sequence[ProgressColumn]
    if total is None:
        columns = (lines, speed, TimeElapsedColumn())
    else:
        columns = (BarColumn(), TaskProgressColumn(), DownloadColumn(), speed, lines, TimeRemainingColumn())
    return _progress(total, columns, lambda _: sum(file.taken for file in files))


def progress_of_records(total: int) -> AbstractContextManager[WatchLines]:
    """Like `progress`, for at most `total` records of Kafka."""
    lines = TextColumn("{task.fields[lines]:,} records")
    columns = (BarColumn(), TaskProgressColumn(), lines, TimeRemainingColumn())
    return _progress(total, columns, lambda count: count)


@contextmanager
def _progress(
    total: int | None, columns: Sequence[ProgressColumn], taken: Callable[[int], int]
) -> Iterator[WatchLines]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield iter
        return
    spinner = (SpinnerColumn(),) if total is None else ()
    shown = Progress(*spinner, TextColumn("{task.description}"), *columns, console=console, transient=True)
    task = shown.add_task("reading", total=total, lines=0)

    def watch(lines: Iterable[Line]) -> Iterator[Line]:
        for count, line in enumerate(lines, 1):
            if count % UPDATE_LINES == 0:
                shown.start()
                shown.update(task, completed=taken(count), lines=count)
            yield line
        shown.update(task, description="comparing what is left", total=None)

    try:
        yield watch
    finally:
        shown.stop()
