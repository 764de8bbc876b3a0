// The charts, drawn by uPlot (a global of its script). Lines are told apart by colour and by dash; a pointer over
// one chart shows the same moment in all of them, and the numbers of it above each. Meanwhile all stand still: what
// comes is drawn when the pointer has left.

import { serviceNow } from "../base/api.js";
import { el, setAttribute, setText, slot } from "../base/dom.js";
import { clock, dayAndTime, rate, short, span } from "../base/format.js";

const GAP_SECONDS = 5; // a longer silence is a gap in the line, not a slope
const LEAST_SPAN_SECONDS = 120;
const HEIGHT = 168;
const DASHES = [[], [5, 4], [1, 4]];

const NOWHERE = { left: -10, top: -10 };

/** Whether the pointer is over one of the charts. */
const isPointed = () => document.querySelector(".chart:hover") !== null;

const sides = (read) => [
  { label: "reference", colour: "--reference", read: (sample) => read(sample).reference },
  { label: "candidate", colour: "--candidate", read: (sample) => read(sample).candidate },
];
const wait = (label, colour) => ({ label, colour, read: (sample) => sample.wait_seconds?.[label] ?? null });

const waits = [wait("p50", "--p50"), wait("p95", "--p95"), wait("p99", "--p99")];

/** All charts of a comparison, each in a panel that is made here. */
export function chartsIn(root) {
  const panels = slot(root.querySelector("#charts"), "panels");
  const chart = (id, title, series, ...more) => {
    const panel = panelOf(id, title, series);
    panels.append(panel);
    return new Chart(panel, title, series, ...more);
  };
  return [
    chart("rate", "Events per second", sides((sample) => sample.events_per_second), rate),
    chart("unmatched", "Unmatched events", sides((sample) => sample.unmatched), short),
    chart("lag", "Lag in records", sides((sample) => sample.lag), short),
    chart("waits", "Time to match", waits, span, "decades"),
  ];
}

/** A panel for a chart, with a legend that has a place for a number of each line. */
function panelOf(id, title, series) {
  const legend = series.map(({ label }) => el("span", { class: label }, `${label} `, el("b", { "data-slot": label })));
  return el(
    "section",
    { id, "aria-labelledby": `${id}-title` },
    el(
      "div",
      { class: "heading" },
      el("h2", { id: `${id}-title` }, title),
      el("p", { class: "legend" }, el("span", { "data-slot": "moment", class: "moment" }), ...legend),
    ),
    el("div", { class: "chart", role: "img" }),
  );
}

/** One chart inside a panel, whose legend shows the numbers of now, or of the moment pointed at. */
class Chart {
  constructor(panel, title, series, format, scale = "linear") {
    Object.assign(this, { panel, title, series, format, scale, plot: null, name: null, key: "", samples: [] });
    this.root = panel.querySelector(".chart");
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.rebuild());
    new ResizeObserver(() => this.plot?.setSize(this.size())).observe(this.root);
  }

  show({ name, samples }) {
    if (name === this.name && isPointed()) return;
    const key = `${name} ${samples.length} ${samples.at(0)?.at} ${samples.at(-1)?.at}`;
    if (key === this.key && this.plot) return;
    Object.assign(this, { name, key, samples, data: columns(samples, this.series) });
    if (this.plot) this.plot.setData(this.data);
    else this.rebuild();
    setAttribute(this.root, "aria-label", this.summary());
    if (!isPointed()) this.plot.setCursor(NOWHERE); // a chart that vanished under the pointer was not left by it
    this.tell(this.plot.cursor.idx);
  }

  rebuild() {
    if (!this.data) return;
    this.plot?.destroy();
    this.plot = new uPlot(this.options(), this.data, this.root);
  }

  size() {
    return { width: Math.max(200, this.root.clientWidth), height: HEIGHT };
  }

  /** The numbers of the moment with this index; of the last one where there is no such moment. */
  tell(index) {
    const pointed = typeof index === "number";
    const at = pointed ? index : this.data[0].length - 1;
    const time = this.data[0][at];
    setText(slot(this.panel, "moment"), pointed && time ? `${clock(time * 1000, serviceNow())}, paused` : "");
    this.series.forEach(({ label }, number) =>
      setText(slot(this.panel, label), this.format(this.data[number + 1][at] ?? null)),
    );
  }

  /** What the chart shows, for those who do not see it. */
  summary() {
    if (!this.samples.length) return `${this.title}: nothing yet.`;
    const told = this.series.map(({ label, read }) => {
      const values = this.samples.map(read).filter((value) => value !== null);
      if (!values.length) return `${label} not known`;
      const most = values.reduce((one, other) => Math.max(one, other));
      return `${label} ${this.format(read(this.samples.at(-1)))}, at most ${this.format(most)}`;
    });
    return `${this.title} in the last minutes: now ${told.join("; ")}.`;
  }

  options() {
    const style = getComputedStyle(this.root);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour("--muted"), font: "11px system-ui, sans-serif", ticks: { show: false } };
    const values = (_plot, ticks) => ticks.map((tick) => (tick === null ? "" : this.format(tick)));
    const points = { show: (plot) => plot.data[0].length < 3 };
    return {
      ...this.size(),
      padding: [8, 26, 0, 0],
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, points: { size: 7 }, sync: { key: "twinstream" }, y: false },
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"), // steps of a clock are those of any zone
      scales: { x: { range: timeRange }, y: SCALES[this.scale] },
      axes: [
        { ...axis, size: 26, grid: { show: false }, space: 70, values: clockTicks },
        {
          ...axis,
          size: 58,
          grid: { stroke: colour("--line"), width: 1 },
          space: 30,
          values,
          ...(this.scale === "decades" && { splits: decades }),
        },
      ],
      series: [
        {},
        ...this.series.map(({ colour: name }, number) => ({
          stroke: colour(name),
          width: 2,
          dash: DASHES[number],
          points,
          spanGaps: false,
        })),
      ],
      hooks: { setCursor: [(plot) => this.tell(plot.cursor.idx)] },
    };
  }
}

const SCALES = {
  linear: { range: (_plot, _least, most) => [0, Math.max(4, (most ?? 0) * 1.15)] },
  // From a decade below the least to one above the most: 1 ms is as far from 10 ms as 1 s from 10 s.
  decades: {
    distr: 3,
    range: (_plot, least, most) => [decade(least ?? 1e-3, Math.floor), decade(most ?? 1, Math.ceil)],
  },
};

/** A line for each decade, and none between. */
const decades = (_plot, _axis, least, most) =>
  Array.from({ length: Math.round(Math.log10(most / least)) + 1 }, (_, number) => least * 10 ** number);

const decade = (value, round) => 10 ** round(Math.log10(Math.max(value, 1e-6)) + (round === Math.ceil ? 1e-9 : 0));

function columns(samples, series) {
  const times = [];
  const lines = series.map(() => []);
  for (const sample of samples) {
    const time = Date.parse(sample.at) / 1000;
    const last = times.at(-1);
    if (last !== undefined && time - last > GAP_SECONDS) {
      times.push(last + 1);
      lines.forEach((line) => line.push(null));
    }
    times.push(time);
    series.forEach(({ read }, number) => lines[number].push(read(sample)));
  }
  return [times, ...lines];
}

/** From the first sample to the last, but never so narrow that jitter looks like an event. */
function timeRange(plot) {
  const times = plot.data[0];
  const end = times.at(-1) ?? serviceNow() / 1000;
  return [Math.min(times[0] ?? end, end - LEAST_SPAN_SECONDS), end];
}

function clockTicks(_plot, ticks, _axis, _space, step) {
  const length = step < 60 ? 8 : 5;
  return ticks.map((tick) => dayAndTime(tick * 1000)[1].slice(0, length));
}
