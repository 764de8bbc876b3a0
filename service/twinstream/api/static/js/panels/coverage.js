// What was seen at all: a verdict says nothing of kinds that never came, and little of fields that never varied.

import { el, render, slot } from "../base/dom.js";
import { NOTHING, count, counted } from "../base/format.js";
import { withCode } from "../base/sentence.js";

const NOTES = 3; // that are shown without being asked for
const FIELDS = 12; // named in a cell; the others are counted

export function showCoverage(root, { status }) {
  const { coverage, order } = status;
  root.hidden = !coverage.events;
  slot(root, "lead").hidden = !coverage.notes.length;
  const [first, more] = [coverage.notes.slice(0, NOTES), coverage.notes.slice(NOTES)];
  render(slot(root, "notes"), first, items);
  render(slot(root, "more-notes"), more, items);
  render(slot(root, "keys"), [coverage.keys, coverage.more_keys, coverage.kinds], () => [keys(coverage, order)]);
  render(slot(root, "table"), [coverage.kinds, coverage.matched_by_kind], () => [table(coverage)]);
}

const items = (notes) => notes.map((note) => el("li", {}, ...withCode(note)));

/** Of a sample it is only known that there were at least so many. */
function keys({ keys: seen, more_keys: more, kinds, events }, order) {
  if (seen === null) return order === "unordered" ? "No keys: compared in any order." : "The order has no keys.";
  const sampled = Object.values(kinds).reduce((all, kind) => all + kind.sampled, 0);
  const least = more ? "More than " : sampled < events ? "At least " : "";
  return `${least}${counted(seen, "key")} seen.`;
}

const HEAD = ["Kind", "Matched", "Sampled", "Fields that varied", "Constant", "Always null"];

const table = ({ kinds, matched_by_kind: matched }) =>
  el(
    "table",
    {},
    el("thead", {}, el("tr", {}, ...HEAD.map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, ...Object.entries(kinds).map(([kind, seen]) => row(kind, seen, matched[kind]))),
  );

const row = (kind, { sampled, varied, constant, always_null: nulls }, matched) =>
  el(
    "tr",
    {},
    el("th", { scope: "row" }, kind),
    el("td", {}, count(matched)),
    el("td", {}, count(sampled)),
    ...[varied, constant, nulls].map((fields) => el("td", { class: "fields" }, named(fields))),
  );

function named(fields) {
  if (!fields.length) return NOTHING;
  const more = fields.length - FIELDS;
  return el("code", {}, fields.slice(0, FIELDS).join(", ") + (more > 0 ? ` and ${more} more` : ""));
}
