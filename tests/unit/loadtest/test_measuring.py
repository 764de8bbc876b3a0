"""What all benchmarks measure with."""

from __future__ import annotations

from loadtest.measuring import apart, peak_mib


def test_the_peak_of_a_benchmark_has_nothing_of_the_process_that_started_it() -> None:
    ballast = bytearray(b"x") * (400 * 2**20)
    assert apart(peak_mib) < 200
    assert len(ballast) > 0
