// Two records side by side, field by field.

import { WrittenNumber } from "../base/api.js";
import { el } from "../base/dom.js";
import { counted, spelled, visible } from "../base/format.js";
import { recordPlace } from "../base/kafka.js";
import { withCode } from "../base/sentence.js";

const MANY_EQUAL = 8;
const LONG_ENOUGH = 8; // characters that two values share before the others are set off
export const MORE = "…"; // stands in a report for the fields that it has no room for
const ABSENT = Symbol("absent"); // the event has no such field
const NO_EVENT = Symbol("no event");

/** A value as JSON on one line, numbers as they were written, characters that nobody sees as escapes. */
export function json(value) {
  if (value instanceof WrittenNumber) return value.text;
  if (Array.isArray(value)) return `[${value.map(json).join(", ")}]`;
  if (value !== null && typeof value === "object") {
    const members = Object.entries(value).map(
      ([name, member]) => `${visible(JSON.stringify(name))}: ${json(member)}`,
    );
    return `{${members.join(", ")}}`;
  }
  return visible(JSON.stringify(value));
}

/** The table of both records: what differs, what names the event, and the rest, folded where that is much. */
export function recordTable(report, service) {
  const all = lines(report);
  const rows = all.filter((row) => row.differs || !untold(row));
  const hidden = all.length - rows.length;
  const differing = rows.filter((row) => row.differs);
  const naming = rows.filter((row) => !row.differs && names(report, row));
  const others = rows.filter((row) => !row.differs && !names(report, row));
  const first = [...differing, ...naming];
  const fold = differing.length > 0 && others.length > MANY_EQUAL;
  return el(
    "div",
    { class: "records" },
    el(
      "table",
      { class: "record" },
      el("caption", { class: "hidden" }, "The records side by side"),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          el("th", { scope: "col" }, "Field"),
          head(report, "reference", service),
          head(report, "candidate", service),
        ),
      ),
      el("tbody", {}, ...(fold ? first : [...first, ...others]).map(tableRow)),
    ),
    fold &&
      el(
        "details",
        {},
        el("summary", {}, foldedText(others)),
        el("table", { class: "record" }, el("tbody", {}, ...others.map(tableRow))),
      ),
    hidden > 0 &&
      el(
        "p",
        { class: "quiet left-out" },
        ...withCode(`${counted(hidden, "hidden field")} left out: the comparison file does not \`show\` ${hidden === 1 ? "it" : "them"}.`),
      ),
  );
}

/** Whether a field names the event, or its place in the order. */
const names = ({ identity, scope }, { path }) => [...(identity ?? []), ...Object.keys(scope)].includes(path);

/** What the folded rows are: some may differ as the comparison file allows. */
function foldedText(rows) {
  const allowed = rows.filter((row) => row.allowed).length;
  const equal = rows.length - allowed;
  const same = equal && `${equal} ${equal === 1 ? "field that does" : "fields that do"} not differ`;
  const differ = allowed && `${allowed} that ${allowed === 1 ? "differs" : "differ"} as the comparison file allows`;
  return [same, differ].filter(Boolean).join(", ");
}

function head(report, side, service) {
  const position = report.positions[side];
  const title = side === "reference" ? "Reference" : "Candidate";
  return el(
    "th",
    { scope: "col", class: side },
    title,
    " ",
    position ? recordPlace(position, service) : el("span", { class: "place" }, "no such event"),
  );
}

function tableRow({ path, reference, candidate, differs, hidden, allowed }) {
  const note = allowed ? "differs, as the comparison file allows" : hidden ? "differs, and is not shown" : "";
  return el(
    "tr",
    { class: differs ? "differs" : allowed ? "allowed" : null },
    el("th", { scope: "row" }, visible(path), note && el("small", {}, ` ${note}`)),
    cell(reference, "Reference", differs, candidate),
    cell(candidate, "Candidate", differs, reference),
  );
}

function cell(value, side, differs, other) {
  if (value === NO_EVENT) return el("td", { class: "nothing" }, el("span", { class: "hidden" }, "no such event"));
  if (value === ABSENT) return el("td", { "data-side": side, class: "absent" }, "absent");
  if (!differs) return el("td", { "data-side": side }, json(value));
  const texts = typeof other === "symbol" ? [json(value)] : toldApart(json(value), json(other));
  return el("td", { "data-side": side }, el("mark", {}, ...emphasised(...texts)));
}

/** Both texts, spelled out where they look alike: an accent that is a character of its own, a letter of another width. */
const toldApart = (one, other) =>
  one !== other && one.normalize("NFKC") === other.normalize("NFKC") ? [spelled(one), spelled(other)] : [one, other];

/** A text of which the part is set off that is not the same in the other one, where that is the smaller part. */
function emphasised(from, to) {
  if (to === undefined) return [from];
  const most = Math.min(from.length, to.length);
  let start = 0;
  while (start < most && from[start] === to[start]) start += 1;
  let end = 0;
  while (end < most - start && from.at(-1 - end) === to.at(-1 - end)) end += 1;
  if (start + end < from.length / 2 || start + end < LONG_ENOUGH) return [from];
  return [from.slice(0, start), el("b", {}, from.slice(start, from.length - end)), from.slice(from.length - end)];
}

function lines(report) {
  const reference = fieldsOf(report, "reference");
  const candidate = fieldsOf(report, "candidate");
  const named = Object.keys(report.fields);
  const paths = new Set([...(reference?.keys() ?? []), ...(candidate?.keys() ?? [])]);
  for (const path of named) {
    if (covers([...paths], path)) continue;
    paths.add(path);
    reference?.set(path, report.fields[path].reference);
    candidate?.set(path, report.fields[path].candidate);
  }
  // Without the records, or without room for all fields, a report does not say which differences count.
  const unsure = report.kind === "changed" && (!named.length || MORE in report.fields);
  return [...paths].map((path) => {
    const pair = { reference: valueAt(reference, path), candidate: valueAt(candidate, path) };
    const told = named.some((name) => within(path, name) || within(name, path));
    const hidden = told && same(pair) && masked(pair.reference);
    const apart = Boolean(reference && candidate) && !same(pair);
    const differs = (told && (hidden || !same(pair))) || (unsure && apart);
    const allowed = apart && !differs;
    return { path, ...pair, differs, hidden, allowed };
  });
}

/** Whether a row would only say that there is a value that is not shown. */
const untold = ({ reference, candidate }) =>
  [reference, candidate].some(masked) &&
  [reference, candidate].every((value) => typeof value === "symbol" || masked(value));

/** Whether a value only says what is not shown; two that differ may look the same then. */
export const masked = (value) => typeof value === "string" && value.startsWith("‹") && value.endsWith("›");
const valueAt = (record, path) => (!record ? NO_EVENT : record.has(path) ? record.get(path) : ABSENT);
const within = (path, name) => path === name || path.startsWith(`${name}.`) || path.startsWith(`${name}[`);
const covers = (paths, name) => paths.some((path) => within(path, name) || within(name, path));

function same({ reference, candidate }) {
  if (typeof reference === "symbol" || typeof candidate === "symbol") return reference === candidate;
  return json(reference) === json(candidate);
}

/** The fields of a side's event; null where the side has none, which is known by its position. */
function fieldsOf(report, side) {
  const none = report[side] === null && report.positions[side] === null;
  return none ? null : flatten(report[side]);
}

/** Paths as in a comparison file: dotted, a dot in a name escaped. What is no object is one value. */
function flatten(value, prefix = "", into = new Map()) {
  const leaf = typeof value !== "object" || value instanceof WrittenNumber;
  const nested = value !== null && !leaf && !Array.isArray(value);
  if (!nested || (prefix && !Object.keys(value).length)) return into.set(prefix || "(value)", value);
  for (const [name, member] of Object.entries(value)) {
    const path = name.replaceAll(".", "\\.");
    flatten(member, prefix ? `${prefix}.${path}` : path, into);
  }
  return into;
}
