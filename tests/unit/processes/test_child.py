"""Child processes leave Ctrl-C to their parent from the first moment on."""

from __future__ import annotations

import os
import signal
import time

from twinstream.processes.child import start_child


def test_ctrl_c_does_not_end_a_child_that_still_imports() -> None:
    child = start_child(time.sleep, (0.2,))
    for _ in range(20):
        assert child.pid is not None
        os.kill(child.pid, signal.SIGINT)
        time.sleep(0.005)
    child.join(30)
    assert child.exitcode == 0


def test_the_parent_itself_hears_ctrl_c_again() -> None:
    start_child(time.sleep, (0,)).join(30)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
