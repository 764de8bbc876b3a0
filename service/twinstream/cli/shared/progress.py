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


def progress(
    files: Sequence[InputFile], console: Console | None = None
) -> AbstractContextManager[WatchLines]:
    """Shows, while the block runs, how many of the lines passing through the given function are read.

    With files of known sizes it shows the bytes read of all of them, the rate and the remaining time;
    otherwise the lines read, the rate and the elapsed time. A small input shows nothing, and nothing is ever
    written if standard error is no terminal.
    """
    sizes = [file.size for file in files]
    total = None if None in sizes else sum(filter(None, sizes))
    return _progress(total, _columns(total is not None), lambda _: sum(file.taken for file in files), console)


def progress_of_records(total: int, console: Console | None = None) -> AbstractContextManager[WatchLines]:
    """Like `progress`, for at most `total` records of Kafka."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[lines]:,} records"),
        TimeRemainingColumn(),
    )
    return _progress(total, columns, lambda lines: lines, console)


@contextmanager
def _progress(
    total: int | None, columns: Sequence[ProgressColumn], taken: Callable[[int], int], console: Console | None
) -> Iterator[WatchLines]:
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield iter
        return
    shown = Progress(*columns, console=console, transient=True)
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


def _columns(known: bool) -> Sequence[ProgressColumn]:
    description = TextColumn("{task.description}")
    lines = TextColumn("{task.fields[lines]:,} lines")
    if not known:
        return SpinnerColumn(), description, lines, TransferSpeedColumn(), TimeElapsedColumn()
    return (
        description,
        BarColumn(),
        TaskProgressColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        lines,
        TimeRemainingColumn(),
    )
