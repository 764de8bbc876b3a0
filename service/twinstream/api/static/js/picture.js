// A divergence as a picture: the events of both sides in the order of their offsets, joined by lines. Equal events
// are joined, two that changed places cross, a changed one has ≠ on its line, one without a partner ends in ✕.
//
// The events are text, which wraps and can be read aloud and copied; only the lines between are drawn, and drawn
// anew when anything changes its size.

import { el } from "./dom.js";
import { visible } from "./format.js";
import { json } from "./record.js";

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

/** The members that tell the events apart, those of the scope and the first others: few, and the same in all. */
function telling(report, { reference, candidate }) {
  const values = [...reference, ...candidate].filter(Boolean).map(({ value }) => value);
  if (values.some((value) => value === null || typeof value !== "object" || Array.isArray(value))) return null;
  const names = [...new Set(values.flatMap((value) => Object.keys(value)))];
  const differ = names.filter((name) => new Set(values.map((value) => json(value[name] ?? null))).size > 1);
  return [...new Set([...Object.keys(report.scope).filter((name) => names.includes(name)), ...differ, ...names])]
    .slice(0, SHOWN)
    .sort((one, other) => names.indexOf(one) - names.indexOf(other));
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
    .filter((name) => name in value)
    .map((name) => el("span", {}, el("i", {}, `${visible(name)} `), json(value[name]))),
  Object.keys(value).length > fields.length && el("span", {}, "…"),
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
