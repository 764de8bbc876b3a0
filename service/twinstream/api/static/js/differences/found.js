// Divergences over time: a bar for each stretch, as high as the final ones that were found in it. A pointer drawn over
// bars, or the two sliders below them, choose a range, which becomes the filters `from` and `to` of the address.

import { setAttribute, setText, slot } from "../base/dom.js";
import { clock, count, counted } from "../base/format.js";
import { changed, href } from "../state/route.js";

const LOWEST = 4; // per cent: a bar of one is still to be seen beside one of thousands
const WIDTH = 0.94; // of a bar; the rest is a gap

let shown = null; // what the bars show: { width, begins, counts, route, now }, for the hand that chooses
let choosing = false; // a hand is on it: until it is off, nothing moves under it

/** The bars of a comparison; the chosen range is that of `route`. */
export function showFound(root, { status }, { now, route }) {
  const { width_seconds: width, begins, counts } = status.found ?? { begins: [] }; // None of an older matcher.
  root.hidden = !begins.length;
  if (root.hidden || choosing) return;
  const chosen = chosenOf(route.filters, width, begins);
  shown = { width, begins, counts, route, now };
  drawBars(slot(root, "columns"), chosen);
  setAttribute(slot(root, "columns"), "aria-label", summary(status, now));
  setSliders(root, chosen);
  tellRange(root, chosen);
  setText(slot(root, "first"), clock(begins[0] * 1000, now));
  setText(slot(root, "last"), clock((begins.at(-1) + width) * 1000, now));
  const clear = slot(root, "all-times");
  clear.hidden = !(route.filters.from || route.filters.to);
  setAttribute(clear, "href", address(route, null, null));
}

/** The range of the filters in bins: from the edge `from` up to the edge `to`. */
function chosenOf({ from, to }, width, begins) {
  const edge = (text, otherwise, round) => {
    const at = text ? round((Date.parse(text) / 1000 - begins[0]) / width) : otherwise;
    return Number.isNaN(at) ? otherwise : Math.min(begins.length, Math.max(0, at));
  };
  return { from: edge(from, 0, Math.floor), to: edge(to, begins.length, Math.ceil) };
}

/** The bars as two shapes, those in the range and the others: where one more comes, no element moves. */
function drawBars(svg, { from, to }) {
  const { counts } = shown;
  const most = Math.max(...counts);
  const isIn = (place) => place >= from && place < to;
  const shape = (wanted) => counts.map((found, place) => (found && isIn(place) === wanted ? bar(place, found / most) : ""));
  setAttribute(svg, "viewBox", `0 0 ${counts.length} 100`);
  setAttribute(svg.querySelector(".in"), "d", shape(true).join(""));
  setAttribute(svg.querySelector(".out"), "d", shape(false).join(""));
}

const bar = (place, share) => `M${place} 100V${100 - Math.max(LOWEST, Math.round(100 * share))}h${WIDTH}V100Z`;

function setSliders(root, { from, to }) {
  for (const [name, at] of [["from", from], ["to", to]]) {
    const slider = slot(root, name);
    setAttribute(slider, "max", String(shown.begins.length));
    if (slider.valueAsNumber !== at) slider.value = at;
  }
}

/** The range in words, also as what the sliders say of themselves. */
function tellRange(root, { from, to }) {
  const { now, begins } = shown;
  const [first, last] = [from, to].map((edge) => clock(secondsAt(edge) * 1000, now));
  const all = from <= 0 && to >= begins.length;
  setText(slot(root, "range"), all ? "Drag over the bars to choose a time" : `${first} to ${last}`);
  setAttribute(slot(root, "from"), "aria-valuetext", first);
  setAttribute(slot(root, "to"), "aria-valuetext", last);
}

const secondsAt = (edge) => shown.begins[0] + edge * shown.width;

/** What the bars show, for those who do not see them. */
function summary({ found: { begins, counts, width_seconds: width }, closed_divergences: { total } }, now) {
  const most = Math.max(...counts);
  const at = begins[counts.indexOf(most)] * 1000;
  const all = counts.reduce((sum, value) => sum + value, 0);
  const earlier = total > all ? `, and ${count(total - all)} before that` : "";
  return (
    `${counted(all, "final divergence")} from ${clock(begins[0] * 1000, now)} on${earlier}; ` +
    `most from ${clock(at, now)} to ${clock(at + width * 1000, now)}: ${count(most)}.`
  );
}

// -- choosing -----------------------------------------------------------------------------------------------

/** Listen to the hands that choose a range in `root`: a pointer over the bars, and the keys of the sliders. */
export function chooseTimes(root) {
  const columns = slot(root, "columns");
  let start = null;
  const range = (event) => {
    const at = binAt(columns, event.clientX);
    return { from: Math.min(start, at), to: Math.max(start, at) + 1 };
  };
  columns.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    start = binAt(columns, event.clientX);
    columns.setPointerCapture(event.pointerId);
    preview(root, range(event));
  });
  columns.addEventListener("pointermove", (event) => start !== null && preview(root, range(event)));
  columns.addEventListener("pointerup", (event) => {
    if (start === null) return;
    const chosen = range(event);
    start = null;
    choose(chosen);
  });
  columns.addEventListener("pointercancel", () => {
    start = null;
    choosing = false;
  });
  for (const name of ["from", "to"]) {
    slot(root, name).addEventListener("input", () => preview(root, keptApart(root, name)));
    slot(root, name).addEventListener("change", () => choose(keptApart(root, name)));
  }
}

function binAt(columns, x) {
  const box = columns.getBoundingClientRect();
  const share = (x - box.left) / box.width;
  return Math.min(shown.begins.length - 1, Math.max(0, Math.floor(share * shown.begins.length)));
}

/** Where both sliders stand; the one that moves stops at one bin from the other. */
function keptApart(root, moving) {
  const [from, to] = [slot(root, "from"), slot(root, "to")];
  if (moving === "from") from.value = Math.min(from.valueAsNumber, to.valueAsNumber - 1);
  else to.value = Math.max(to.valueAsNumber, from.valueAsNumber + 1);
  return { from: from.valueAsNumber, to: to.valueAsNumber };
}

/** Show a range that is not chosen yet. */
function preview(root, range) {
  choosing = true;
  drawBars(slot(root, "columns"), range);
  setSliders(root, range);
  tellRange(root, range);
}

/** The ends of what is known are no limits: what comes later belongs to it. */
function choose({ from, to }) {
  choosing = false;
  const time = (edge) => new Date(secondsAt(edge) * 1000).toISOString().replace(".000Z", "Z");
  location.hash = address(
    shown.route,
    from > 0 ? time(from) : null,
    to < shown.begins.length ? time(to) : null,
  );
}

const address = ({ name, filters }, from, to) => href({ name, filters: changed(filters, { from, to }) });
