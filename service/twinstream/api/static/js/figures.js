// The key figures: one line of numbers that show at a glance whether both sides run.

import { fill } from "./dom.js";
import { NOTHING, clock, count, counted, duration, rate, secondsSince, span } from "./format.js";
import { quantile } from "./model.js";

export function showFigures(root, comparison, now, live) {
  const { status } = comparison;
  const sample = live ? comparison.samples.at(-1) : null;
  const recent = comparison.recent("latency");
  fill(root, {
    matched: count(status.matched),
    "matched-note": `at most ${counted(status.max_unmatched, "event")} unmatched at once`,
    "reference-rate": rate(sample?.events_per_second.reference),
    "candidate-rate": rate(sample?.events_per_second.candidate),
    "reference-note": sideNote(status, "reference"),
    "candidate-note": sideNote(status, "candidate"),
    latency: bound(quantile(recent, 0.5)),
    "latency-note": latencyNote(recent),
    through: clock(status.verified_through, now),
    "through-note": throughNote(status, now),
  });
}

/** A quantile of a histogram is known only to its bucket, and said so. */
export const bound = (found) =>
  !found ? NOTHING : found.edge !== undefined ? `≤ ${span(found.edge)}` : `> ${span(found.beyond)}`;

function latencyNote(recent) {
  const most = quantile(recent, 0.99);
  return most ? `half of them; 99 % ${bound(most)}, ${recent.window}` : "no event has met its partner yet";
}

function sideNote(status, side) {
  const lags = status.progress[side].map((partition) => partition.lag);
  const lag = lags.length && !lags.includes(null) ? lags.reduce((sum, value) => sum + value, 0) : null;
  const behind = lag === null ? "lag not known" : `lag ${counted(lag, "record")}`;
  return `${behind} · ${count(status.unmatched[side])} unmatched`;
}

function throughNote(status, now) {
  if (!status.verified_through) return "no event is settled yet";
  const age = secondsSince(status.verified_through, now);
  return `${duration(age)} ago; a pass needs less than ${duration(status.max_staleness_seconds)}`;
}
