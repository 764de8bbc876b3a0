// How verdict, gate and health stood in the last minutes: three lanes above each other, and the same as a list.

import { el, render, setAttribute, slot } from "../base/dom.js";
import { clock, duration } from "../base/format.js";
import { when } from "../base/times.js";

const LEAST_SPAN = 2 * 60_000;
const MOST_SPAN = 24 * 3600_000;
const LISTED = 50;
const LANES = [
  ["Verdict", (phase) => phase.verdict],
  ["Gate", (phase) => phase.gate],
  ["Health", (phase) => phase.health.replace("_", " ")],
];

export function showTimeline(root, { phases }, now) {
  const begin = from(phases, now);
  const lanes = LANES.map(([name, read]) => ({ name, parts: parts(phases, read, begin, now) }));
  drawLanes(slot(root, "lanes"), lanes, begin, now);
  setAttribute(slot(root, "lanes"), "aria-label", summary(lanes, now));
  render(slot(root, "phases"), phases.slice(-LISTED), (shown) => [table(shown)]);
  root.hidden = !phases.length;
}

/** All that is known, but two minutes at least and a day at most. */
const from = (phases, now) =>
  Math.max(now - MOST_SPAN, Math.min(now - LEAST_SPAN, phases.length ? Date.parse(phases[0].since) : now));

/** Stretches of one value, those that touch made one: `{ value, start, end }`, cut at the beginning. */
export function parts(phases, read, begin, now) {
  const found = [];
  phases.forEach((phase, index) => {
    const end = index + 1 < phases.length ? Date.parse(phases[index + 1].since) : now;
    const start = Math.max(begin, Date.parse(phase.since));
    const value = read(phase);
    if (end <= begin) return;
    if (found.at(-1)?.value === value) found.at(-1).end = end;
    else found.push({ value, start, end });
  });
  return found;
}

/** The stretches only grow while nothing changes: then their widths are set, and nothing is built anew. */
function drawLanes(root, lanes, begin, now) {
  render(root, lanes.map(({ name, parts: own }) => [name, own.map(({ value, start }) => [value, start])]), () => [
    ...lanes.map(lane),
    el("div", { class: "hours" }, el("span", {}), el("span", {}, "now")),
  ]);
  const share = (time) => `${(100 * (time - begin)) / (now - begin)}%`;
  lanes.forEach(({ parts: own }, number) => {
    const stretches = root.children[number].lastElementChild.children;
    own.forEach(({ start, end }, index) => {
      stretches[index].style.left = share(start);
      stretches[index].style.width = `max(3px, calc(${share(begin + end - start)} - 1px))`;
    });
  });
  root.lastElementChild.firstElementChild.textContent = clock(begin, now);
}

const lane = ({ name, parts: own }) =>
  el(
    "div",
    { class: "lane" },
    el("b", {}, name),
    el(
      "div",
      { class: "stretches" },
      ...own.map(({ value }) => el("span", { "data-value": value, title: value }, el("i", {}, value))),
    ),
  );

function summary(lanes, now) {
  const told = lanes.map(({ name, parts: own }) => {
    const last = own.at(-1);
    if (!last) return `${name} not known`;
    const before = own.at(-2) ? `, before that ${own.at(-2).value}` : "";
    return `${name} ${last.value} for ${duration((now - last.start) / 1000)}${before}`;
  });
  return `In the time shown: ${told.join("; ")}.`;
}

function table(phases) {
  const rows = phases.toReversed().map((phase) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, when(phase.since)),
      ...LANES.map(([, read]) => el("td", { "data-value": read(phase) }, read(phase))),
      el("td", { class: "why" }, phase.reason),
    ),
  );
  const head = ["Since", ...LANES.map(([name]) => name), "The gate's reason"];
  return el(
    "table",
    {},
    el("thead", {}, el("tr", {}, ...head.map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, ...rows),
  );
}
