// What the page knows: for each comparison its newest status and gate answer, its recent samples and
// divergences. Nothing here touches the document.

const SAMPLES_KEPT = 900;
const LATENCY_WINDOW_MILLISECONDS = 60_000;
export const PAGE_SIZE = 20;

export class Comparison {
  constructor(name) {
    this.name = name;
    this.status = null;
    this.gate = null;
    this.samples = [];
    this.timings = [];
    this.divergences = new Map();
    this.kind = null; // which kind is shown; null for all
    this.wanted = PAGE_SIZE;
    this.older = false; // whether the service has more than is shown
    this.loaded = false;
    this.meanwhile = null; // changes that come while the list is being fetched, which may not have them
  }

  takeStatus(status) {
    if (this.status && this.status.started_at !== status.started_at) this.timings = [];
    this.status = status;
    const at = Date.parse(status.updated_at);
    this.timings.push({ at, latency: status.match_latency, processing: status.processing });
    while (this.timings.length > 2 && at - this.timings[1].at >= LATENCY_WINDOW_MILLISECONDS)
      this.timings.shift();
  }

  takeSample(sample) {
    const last = this.samples.at(-1);
    if (last && sample.at <= last.at) return;
    this.samples.push(sample);
    if (this.samples.length > SAMPLES_KEPT) this.samples.shift();
  }

  takeHistory(samples) {
    const newer = this.samples.filter((sample) => !samples.length || sample.at > samples.at(-1).at);
    this.samples = [...samples, ...newer].slice(-SAMPLES_KEPT);
  }

  /** To be called before the list is fetched, so that no change between is lost. */
  expectDivergences() {
    this.meanwhile = [];
  }

  /** The newest divergences, as many as are wanted, as the service lists them. */
  takeDivergences(page) {
    this.divergences = new Map(page.items.map((report) => [report.id, report]));
    this.older = page.next !== null;
    this.loaded = true;
  }

  /** After the list was fetched, or could not be. */
  catchUp() {
    const missed = this.meanwhile ?? [];
    this.meanwhile = null;
    missed.forEach((change) => change());
  }

  takeDivergence(report) {
    this.meanwhile?.push(() => this.takeDivergence(report));
    if (this.kind && report.kind !== this.kind) return;
    const known = this.divergences.has(report.id);
    const list = known ? [...this.divergences] : [[report.id, report], ...this.divergences];
    this.divergences = new Map(list.slice(0, this.wanted));
    if (known) this.divergences.set(report.id, report);
    this.older ||= list.length > this.wanted;
  }

  withdraw(identifier) {
    this.meanwhile?.push(() => this.withdraw(identifier));
    this.divergences.delete(identifier);
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

/** The upper edge below which a share of the counted lies: {edge}, or {beyond} the last; null if none. */
export function quantile({ edges, counts }, share) {
  const total = counts.reduce((sum, value) => sum + value, 0);
  if (!total) return null;
  let seen = 0;
  for (const [index, value] of counts.entries()) {
    seen += value;
    if (seen >= share * total)
      return index < edges.length ? { edge: edges[index] } : { beyond: edges.at(-1) };
  }
  return null;
}
