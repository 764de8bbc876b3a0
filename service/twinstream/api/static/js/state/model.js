// What the page knows of one comparison: its newest status and gate answer, its recent past, its divergences.
// Nothing here touches the document.

import { Listing } from "./listing.js";

const SAMPLES_KEPT = 900;
const PHASES_KEPT = 500;
const LATENCY_WINDOW_MILLISECONDS = 60_000;
const OPEN_SHOWN = 5; // provisional ones: they come and go
const NEWEST = 3; // divergences that the overview shows of a comparison

/** In the place of a gate, which a trial has none of: its verdict is shown as long as its health is good. */
const noGate = ({ verdict, health, updated_at }) => ({
  answer: "none",
  stale: verdict !== "PENDING" && health.status !== "ok",
  reason: health.reasons.join(" "),
  to_decide: "",
  updated_at,
});

export class Comparison {
  constructor(name) {
    this.name = name;
    this.status = null;
    this.gate = null;
    this.trial = null; // what changed rules that are tried beside it would change
    this.samples = [];
    this.phases = [];
    this.timings = [];
    this.waiting = []; // the events without a partner that are oldest
    this.newest = new Listing({}, { provisional: false, size: NEWEST });
    this.list({});
    this.ofGroups = new Map(); // the newest divergences of each group that somebody has opened
    this.drafts = new Map(); // of each group that somebody has opened: { found } or { problem }
    this.file = null; // the comparison file: { digest, found } or { digest, problem }
    this.detailed = false; // whether history and lists have been asked for
  }

  /** Show other divergences: those for good, and apart from them those that may still change. */
  list(filters) {
    this.filters = filters;
    this.settled = new Listing(filters, { provisional: false });
    this.open = new Listing(filters, { provisional: true, size: OPEN_SHOWN });
  }

  get listings() {
    return [this.newest, this.settled, this.open, ...this.ofGroups.values()];
  }

  /** The newest divergences of a group, and of those that differ in more fields. */
  rowsOf({ id, kind, fields }, provisional) {
    const field = fields?.filter(Boolean) ?? [];
    const key = `${id} ${provisional}`;
    if (!this.ofGroups.has(key))
      this.ofGroups.set(key, new Listing({ kind, ...(field.length && { field }) }, { provisional }));
    return this.ofGroups.get(key);
  }

  /** Whether there is enough to show it. */
  get known() {
    return this.status !== null && this.gate !== null;
  }

  /** Returns whether it is another run: of what was before, the stream may not tell all that has gone. */
  takeStatus(status) {
    const before = this.status ?? status;
    const another = before.started_at !== status.started_at || before.reset_count !== status.reset_count;
    if (another) this.timings = [];
    this.status = status;
    if (status.trial_of) this.gate = noGate(status);
    const at = Date.parse(status.updated_at);
    this.timings.push({ at, latency: status.match_latency, processing: status.processing });
    while (this.timings.length > 2 && at - this.timings[1].at >= LATENCY_WINDOW_MILLISECONDS)
      this.timings.shift();
    return another;
  }

  takeSample(sample) {
    while (this.samples.at(-1)?.at > sample.at) this.samples.pop(); // the clock of the service was set back
    if (this.samples.at(-1)?.at !== sample.at) this.samples.push(sample);
    if (this.samples.length > SAMPLES_KEPT) this.samples.shift();
  }

  takeHistory(samples) {
    const newer = this.samples.filter((sample) => !samples.length || sample.at > samples.at(-1).at);
    this.samples = [...samples, ...newer].slice(-SAMPLES_KEPT);
  }

  takePhase(phase) {
    const last = this.phases.at(-1);
    if (last?.since !== phase.since) this.phases = [...this.phases, phase].slice(-PHASES_KEPT);
  }

  takeTimeline(phases) {
    const last = phases.at(-1);
    const newer = this.phases.filter((phase) => last && phase.since > last.since);
    this.phases = [...phases, ...newer].slice(-PHASES_KEPT);
  }

  takeDivergence(report) {
    this.listings.forEach((listing) => listing.take(report));
  }

  withdraw(id) {
    this.listings.forEach((listing) => listing.withdraw(id));
  }

  /** How many divergences may still change: all, less the final ones. The status keeps the two in step. */
  get provisional() {
    const { divergences, closed_divergences } = this.status;
    return divergences.total - closed_divergences.total;
  }

  /** What happened to the histograms within the last minute; since the start, while that is all there is. */
  recent(which) {
    const last = this.timings.at(-1)[which];
    const first = this.timings[0][which];
    const counts = last.counts.map((value, index) => value - first.counts[index]);
    const fresh = this.timings.length > 1 && counts.some((value) => value > 0);
    return {
      edges: last.edges_seconds,
      counts: fresh ? counts : last.counts,
      sum: fresh ? last.sum_seconds - first.sum_seconds : last.sum_seconds,
      window: fresh ? "in the last minute" : "since the start",
    };
  }
}
