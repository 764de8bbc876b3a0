// A divergence as a picture: the events of both sides in the order of their offsets, joined by lines. Equal events
// are joined, two that changed places cross, a changed one has ≠ on its line, one without a partner ends in ✕.
//
// The events are text, which wraps and can be read aloud and copied; only the lines between are drawn, and drawn
// anew when anything changes its size.

import { WrittenNumber } from "../base/api.js";
import { el } from "../base/dom.js";
import { visible } from "../base/format.js";
import { json, masked } from "./record.js";

const SVG = "http://www.w3.org/2000/svg";
const SHOWN = 5; // members of an event that are shown in the picture
const CROSS = 5; // half the width of the mark at a loose end

/** The picture of a report, and what redraws its lines when it is in the document. */
export function picture(report) {
  const columns = columnsOf(report);
  const fields = telling(report, columns);
  const lines = document.createElementNS(SVG, "svg");
  lines.setAttribute("aria-hidden", "true");
  const root = el(
    "div",
    { class: "picture" },
    column("reference", columns.reference, fields),
    lines,
    column("candidate", columns.candidate, fields),
  );
  new ResizeObserver(() => draw(root, lines, columns)).observe(root);
  return root;
}

// -- the events of a report ---------------------------------------------------------------------------------

/** The events of each side in the order of their offsets, each joined with its partner. */
export function columnsOf(report) {
  const columns = { reference: [], candidate: [] };
  const named = Object.keys(columns)
    .filter((side) => report.positions[side])
    .map((side) => cellIn(columns[side], report.positions[side], report[side], true));
  join(named, report.kind);
  const witness = report.witness.map(({ side, position, value }) =>
    cellIn(columns[side], position, value, false),
  );
  if (new Set(report.witness.map(({ side }) => side)).size === 2) join(witness, "witness");
  if (named.length === 1) leaveRoom(columns, named[0]);
  return columns;
}

/** Where the other side has no such event, a place that says so, opposite to the event. */
function leaveRoom(columns, cell) {
  const [own, other] = columns.reference.includes(cell)
    ? [columns.reference, columns.candidate]
    : [columns.candidate, columns.reference];
  other.splice(own.indexOf(cell), 0, null);
}

/** The cell of an event, which is there only once. */
function cellIn(column, position, value, named) {
  const known = column.find(
    (cell) => cell.position.partition === position.partition && cell.position.offset === position.offset,
  );
  if (known) return known;
  const cell = { position, value, named, partner: null, kind: null };
  column.push(cell);
  column.sort(
    (one, other) =>
      one.position.partition - other.position.partition || one.position.offset - other.position.offset,
  );
  return cell;
}

/** Join two events, one of each side, unless one of them has its partner. */
function join(cells, kind) {
  const [one, other] = cells;
  if (cells.length !== 2 || one.partner || other.partner) return;
  Object.assign(one, { partner: other, kind });
  Object.assign(other, { partner: one, kind });
}

/**
 * A few members, the same of all events: a field that changed, what names the event, what else changed, the scope,
 * and what tells the events apart. Last is what differs although the comparison file allows it: it says nothing about
 * the divergence.
 */
function telling(report, { reference, candidate }) {
  const values = [...reference, ...candidate].filter(Boolean).map(({ value }) => value);
  if (values.some((value) => !isRecord(value))) return null;
  const names = [...new Set(values.flatMap((value) => Object.keys(value)))];
  const differ = names.filter((name) => new Set(values.map((value) => json(member(value, name)))).size > 1);
  const changed = membersOf(Object.keys(report.fields));
  const allowed = new Set(reference.flatMap((cell) => (cell?.partner ? allowedIn(cell, changed) : [])));
  const told = (name) => values.some((value) => Object.hasOwn(value, name) && !masked(value[name]));
  const compared = [...Object.keys(report.scope), ...differ, ...names.filter(told)].filter((name) => !allowed.has(name));
  return [...new Set([...changed.slice(0, 1), ...membersOf(report.identity), ...changed, ...compared, ...names.filter(told)])]
    .filter((name) => names.includes(name))
    .slice(0, SHOWN)
    .sort((one, other) => names.indexOf(one) - names.indexOf(other));
}

/** A member of an event, null without it; its own: any object has a `constructor`. */
const member = (value, name) => (Object.hasOwn(value, name) ? value[name] : null);

const isRecord = (value) =>
  value !== null && typeof value === "object" && !Array.isArray(value) && !(value instanceof WrittenNumber);

/** The members of an event in which some fields lie. */
const membersOf = (paths) => paths.map((path) => /^(?:[^.\\]|\\.)*/.exec(path)[0].replace(/\\(.)/g, "$1"));

/** The members in which an event and its partner differ without being a part of a difference. */
function allowedIn({ value, partner, kind }, changed) {
  if (kind === "changed" && !changed.length) return []; // the records were not at hand
  return Object.keys({ ...value, ...partner.value }).filter(
    (name) =>
      json(member(value, name)) !== json(member(partner.value, name)) &&
      !(kind === "changed" && changed.includes(name)),
  );
}

// -- as elements --------------------------------------------------------------------------------------------

function column(side, cells, fields) {
  const partitions = new Set(cells.filter(Boolean).map(({ position }) => position.partition));
  return el(
    "ol",
    { class: side, "aria-label": `Events of the ${side}, in the order of their offsets` },
    ...cells.map((cell) =>
      cell ? event(cell, fields, partitions.size > 1) : el("li", { class: "none" }, `No such event in the ${side}`),
    ),
  );
}

const event = (cell, fields, several) =>
  el(
    "li",
    { class: cell.named ? "named" : null },
    el(
      "span",
      { class: "offset" },
      several ? `partition ${cell.position.partition} offset ` : "offset ",
      el("b", {}, cell.position.offset),
    ),
    el("code", {}, ...(fields ? members(cell.value, fields) : [json(cell.value)])),
  );

const members = (value, fields) => [
  ...fields
    .filter((name) => Object.hasOwn(value, name))
    .map((name) => el("span", {}, el("i", {}, `${visible(name)} `), json(value[name]))),
  Object.keys(value).some((name) => !fields.includes(name) && !masked(value[name])) && el("span", {}, "…"),
];

// -- the lines ----------------------------------------------------------------------------------------------

function draw(root, lines, { reference, candidate }) {
  const box = lines.getBoundingClientRect();
  if (!box.width) return;
  const middle = (list, index) => {
    const own = list.children[index].getBoundingClientRect();
    return own.top + own.height / 2 - box.top;
  };
  const [left, , right] = root.children;
  const shapes = reference.flatMap((cell, index) => {
    if (!cell) return [];
    const from = middle(left, index);
    if (!cell.partner) return loose(0, box.width / 2, from);
    return joined(cell, box.width, from, middle(right, candidate.indexOf(cell.partner)));
  });
  candidate.forEach((cell, index) => {
    if (cell && !cell.partner) shapes.push(...loose(box.width, box.width / 2, middle(right, index)));
  });
  lines.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
  lines.replaceChildren(...shapes);
}

function joined({ kind }, width, from, to) {
  const path = shape("path", { class: kind, d: `M2 ${from} C${width / 2} ${from} ${width / 2} ${to} ${width - 2} ${to}` });
  return kind === "changed" ? [path, mark(width / 2, (from + to) / 2, "≠")] : [path];
}

const loose = (from, to, y) => [
  shape("path", { class: "loose", d: `M${from ? from - 2 : 2} ${y} H${to}` }),
  shape("path", {
    class: "loose cross",
    d: `M${to - CROSS} ${y - CROSS} l${2 * CROSS} ${2 * CROSS} m0 ${-2 * CROSS} l${-2 * CROSS} ${2 * CROSS}`,
  }),
];

function mark(x, y, text) {
  const node = shape("text", { x, y: y + 6, class: "mark" });
  node.textContent = text;
  return node;
}

function shape(name, attributes) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}
