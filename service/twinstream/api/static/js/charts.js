// The two charts, drawn by uPlot (a global of its script). Both sides in each, told apart by colour and dash.

import { serviceNow } from "./api.js";
import { count, rate } from "./format.js";

const GAP_SECONDS = 5; // a longer silence is a gap in the line, not a slope
const LEAST_SPAN_SECONDS = 120;
const HEIGHT = 190;

/** A chart of one number per side inside `root`; `read(sample)` gives the pair. */
export class SidesChart {
  constructor(root, title, read, format) {
    this.root = root;
    this.title = title;
    this.read = read;
    this.format = format;
    this.plot = null;
    this.key = "";
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.rebuild());
    new ResizeObserver(() => this.plot?.setSize(this.size())).observe(root);
  }

  show(samples) {
    const key = `${samples.length} ${samples.at(0)?.at} ${samples.at(-1)?.at}`;
    if (key === this.key && this.plot) return;
    this.key = key;
    this.data = columns(samples, this.read);
    if (this.plot) this.plot.setData(this.data);
    else this.rebuild();
    this.root.setAttribute("aria-label", this.summary(samples.at(-1)));
  }

  rebuild() {
    if (!this.data) return;
    this.plot?.destroy();
    this.plot = new uPlot(options(this.size(), colours(this.root), this.format), this.data, this.root);
  }

  size() {
    return { width: Math.max(200, this.root.clientWidth), height: HEIGHT };
  }

  summary(sample) {
    if (!sample) return `${this.title}: nothing yet.`;
    const { reference, candidate } = this.read(sample);
    const now = `${this.format(reference)} in the reference, ${this.format(candidate)} in the candidate`;
    return `${this.title} over the last minutes; now ${now}.`;
  }
}

export const unmatchedChart = (root) =>
  new SidesChart(root, "Unmatched events", (sample) => sample.unmatched, count);
export const rateChart = (root) =>
  new SidesChart(root, "Events per second", (sample) => sample.events_per_second, rate);

function columns(samples, read) {
  const times = [];
  const sides = { reference: [], candidate: [] };
  const push = (time, pair) => {
    times.push(time);
    sides.reference.push(pair.reference);
    sides.candidate.push(pair.candidate);
  };
  for (const sample of samples) {
    const time = Date.parse(sample.at) / 1000;
    const last = times.at(-1);
    if (last !== undefined && time - last > GAP_SECONDS)
      push(last + 1, { reference: null, candidate: null });
    push(time, read(sample));
  }
  return [times, sides.reference, sides.candidate];
}

function colours(root) {
  const style = getComputedStyle(root);
  const of = (name) => style.getPropertyValue(name).trim();
  return {
    reference: of("--reference"),
    candidate: of("--candidate"),
    text: of("--muted"),
    grid: of("--line"),
  };
}

function options(size, { reference, candidate, text, grid }, format) {
  const axis = { stroke: text, font: "11px system-ui, sans-serif", ticks: { show: false } };
  const points = { show: (plot) => plot.data[0].length < 3 };
  const values = (_plot, ticks) => ticks.map((tick) => format(tick));
  return {
    ...size,
    padding: [10, 22, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { size: 7 } },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    scales: {
      x: { range: timeRange },
      y: { range: (_plot, _least, most) => [0, Math.max(4, (most ?? 0) * 1.15)] },
    },
    axes: [
      { ...axis, size: 26, grid: { show: false }, space: 70, values: clockTicks },
      { ...axis, size: 56, grid: { stroke: grid, width: 1 }, space: 36, values },
    ],
    series: [
      {},
      { stroke: reference, width: 2, points, spanGaps: false },
      { stroke: candidate, width: 2, dash: [5, 4], points, spanGaps: false },
    ],
  };
}

/** From the first sample to the last, but never so narrow that jitter looks like an event. */
function timeRange(plot) {
  const times = plot.data[0];
  const end = times.at(-1) ?? serviceNow() / 1000;
  return [Math.min(times[0] ?? end, end - LEAST_SPAN_SECONDS), end];
}

function clockTicks(_plot, ticks, _axis, _space, step) {
  const [from, to] = step < 60 ? [11, 19] : [11, 16];
  return ticks.map((tick) => new Date(tick * 1000).toISOString().slice(from, to));
}
