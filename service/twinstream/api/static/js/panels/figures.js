// The key figures: one line of numbers that show at a glance whether both sides run.

import { fill } from "../base/dom.js";
import { NOTHING, clock, duration, rate, secondsSince, short, shortly, span } from "../base/format.js";

export function showFigures(root, comparison, now, live) {
  const { status } = comparison;
  const sample = live ? comparison.samples.at(-1) : null;
  fill(root, {
    matched: short(status.matched),
    "matched-note": `at most ${shortly(status.max_unmatched, "event")} unmatched at once`,
    "reference-rate": rate(sample?.events_per_second.reference),
    "candidate-rate": rate(sample?.events_per_second.candidate),
    "reference-note": sideNote(status, "reference"),
    "candidate-note": sideNote(status, "candidate"),
    latency: sample?.wait_seconds ? span(sample.wait_seconds.p50) : NOTHING,
    "latency-note": latencyNote(sample),
    through: clock(status.verified_through, now),
    "through-note": throughNote(status, now),
  });
}

const latencyNote = (sample) =>
  sample?.wait_seconds
    ? `p50; p99 ${span(sample.wait_seconds.p99)}`
    : "no match recently";

function sideNote(status, side) {
  const lags = status.progress[side].map((partition) => partition.lag);
  const lag = lags.length && !lags.includes(null) ? lags.reduce((sum, value) => sum + value, 0) : null;
  const behind = lag === null ? "lag not known" : `lag ${shortly(lag, "record")}`;
  return `${behind} · ${short(status.unmatched[side])} unmatched`;
}

function throughNote(status, now) {
  if (!status.verified_through) return "nothing verified yet";
  const age = secondsSince(status.verified_through, now);
  return `${duration(age)} ago; a pass needs less than ${duration(status.max_staleness_seconds)}`;
}
