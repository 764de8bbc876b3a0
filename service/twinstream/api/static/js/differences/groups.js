// What differs, summed up: the largest group first, each with its sentence, its likely cause, its shares, and its rows
// on demand. The sentences are the service's own.

import { el, keyed, render, setText, slot } from "../base/dom.js";
import { count, counted, visible } from "../base/format.js";
import { withCode } from "../base/sentence.js";
import { href } from "../state/route.js";
import { draftsFold, showDrafts } from "./drafts.js";
import { MORE } from "./record.js";
import { showRows } from "./rows.js";

const AT_ONCE = 4; // groups that are shown without being asked for
const NEWEST = 5; // rows inside a group
const SHARES = 4; // partitions that are named; the others are counted
const ID_LENGTH = 8; // characters of an id, as the command line takes it

/** `ask.rows(comparison, listing)`: somebody wants the newest rows of a group; see also `showDrafts`. */
export function showGroups(root, comparison, context) {
  const { groups = [], provisional_groups: open = [], divergences } = comparison.status; // None of an older one.
  root.hidden = !groups.length && !open.length;
  if (root.hidden) return;
  const whole = { ...context, comparison, provisional: false, total: divergences.total };
  setText(slot(root, "grouped"), groups.length ? grouped(groups, "final") : "");
  showList(slot(root, "groups"), groups.slice(0, AT_ONCE), whole);
  const smaller = groups.slice(AT_ONCE);
  slot(root, "smaller").hidden = !smaller.length;
  setText(slot(root, "smaller-title"), `${counted(smaller.length, "smaller group")}`);
  showList(slot(root, "smaller-groups"), smaller, whole);
  slot(root, "provisional-part").hidden = !open.length;
  setText(slot(root, "provisional-grouped"), `${grouped(open, "provisional")}: they differ, and may still be explained otherwise`);
  showList(slot(root, "provisional-groups"), open, { ...whole, provisional: true, finals: groups });
}

const sum = (groups) => groups.reduce((all, group) => all + group.count, 0);

/** What the groups sum up. */
const grouped = (groups, kind) => `${counted(sum(groups), `${kind} divergence`)} in ${counted(groups.length, "group")}`;

const showList = (list, groups, context) =>
  keyed(
    list,
    groups,
    (group) => `${context.comparison.name} ${group.id}`,
    () => make(),
    (item, group) => show(item, group, context),
  );

/** The parts of a group that stay while it is shown; what is open in it stays open. */
function make() {
  return el(
    "li",
    { class: "group" },
    el("p", { class: "share", "data-slot": "share" }),
    el("h3", { "data-slot": "sentence" }),
    el("p", { class: "cause", "data-slot": "cause" }),
    el("p", { class: "quiet", "data-slot": "same" }),
    el(
      "div",
      { class: "actions" },
      el("p", { class: "links", "data-slot": "links" }),
      el(
        "details",
        { "data-slot": "newest" },
        el("summary", {}, "Shares and newest rows"),
        el("dl", { class: "facts", "data-slot": "facts" }),
        el("p", { class: "quiet", "data-slot": "newest-none" }),
        el("ol", { class: "rows", "data-slot": "rows" }),
      ),
      draftsFold(),
    ),
  );
}

function show(item, group, context) {
  const { comparison, total, route } = context;
  const text = visible(group.text || `${count(group.count)} ${group.kind}`);
  render(slot(item, "sentence"), text, () => sentence(text));
  slot(item, "cause").hidden = !group.cause;
  render(slot(item, "cause"), group.cause, (cause) => [el("b", {}, "Likely cause"), " ", ...withCode(visible(cause ?? ""))]);
  const same = sameAs(group, context.finals ?? []);
  slot(item, "same").hidden = !same;
  setText(slot(item, "same"), same);
  render(slot(item, "share"), [group.count, total], () => share(group.count, total));
  render(slot(item, "facts"), factsOf(group), (facts) =>
    facts.map(([name, fact]) => el("div", {}, el("dt", {}, name), el("dd", {}, fact))),
  );
  render(slot(item, "links"), [route, group.kind, group.fields, group.examples], () => links(group, route));
  showNewest(item, group, comparison, context);
  showDrafts(slot(item, "drafts"), group, comparison, context);
}

/** The first part says what differs; the rest where, when and how. */
function sentence(text) {
  const at = text.indexOf("; ");
  return at < 0 ? withCode(text) : [el("b", {}, ...withCode(text.slice(0, at))), ...withCode(text.slice(at))];
}

/** Which final group above has the kind and fields of a provisional one, as their ids tell. */
function sameAs({ id, kind, patterns = [] }, finals) {
  const at = kind === "others" ? -1 : finals.findIndex((one) => id && one.id === id);
  if (at < 0) return "";
  const alike = patterns.length && String(texts(patterns)) === String(texts(finals[at].patterns ?? []));
  return `Same kind and fields${alike ? ", and the same pattern," : ""} as final group ${at + 1} above.`;
}

const texts = (patterns) => patterns.map(({ field, text }) => `${field}: ${text}`);

function share(part, total) {
  const whole = Math.max(part, total);
  return [
    el("meter", { value: part / whole, max: 1, "aria-hidden": "true" }),
    el("span", {}, percent(part, whole), el("span", { class: "hidden" }, " of all divergences")),
  ];
}

/** A share in whole per cent; neither a part is all, nor something nothing. */
function percent(part, whole) {
  const exact = (100 * part) / whole;
  if (part > 0 && exact < 1) return "< 1 %";
  return `${part < whole ? Math.min(99, Math.round(exact)) : 100} %`;
}

/** What the sentence leaves out: shares of partitions, keys and kinds, and patterns with their exact counts. */
function factsOf(group) {
  const kinds = Object.entries(group.kinds ?? {});
  return [
    ["In all of them", group.common?.map(({ field, value }) => `${visible(field)} ${visible(value)}`).join(" · ")],
    ["Partitions", partitions(group)],
    ["Most frequent keys", group.keys > 1 && listed(group.top_keys.map(({ key, count: times }) => [key, times]))],
    ["Kinds of event", kinds.length > 1 && listed(kinds)],
    ["Values", group.fields?.length > 1 && group.patterns.map((one) => pattern(one, group)).join(" · ")],
  ].filter(([, fact]) => fact);
}

const listed = (counts) => counts.map(([name, times]) => `${visible(name)} ${count(times)}`).join(" · ");

function partitions({ partitions: found = [], more_partitions: more, count: all, side }) {
  if (!found.length) return "";
  const largest = found.toSorted((one, other) => other.count - one.count).slice(0, SHARES);
  const named = largest.map(
    ({ partition, count: part, first, last }) =>
      `${partition}: ${percent(part, all)}, offsets ${count(first)}–${count(last)}`,
  );
  const left = found.length - largest.length + (more ? 1 : 0);
  return `${named.join(" · ")}${left ? ` · ${more ? "more" : count(left)} others` : ""} (${side})`;
}

const pattern = ({ field, text, count: times }, { count: all }) =>
  `${visible(field)}: ${visible(text)}${times < all ? ` in ${count(times)}` : ""}`;

function links({ kind, fields, examples }, { name, filters }) {
  if (kind === "others") return [];
  const { from, to } = filters;
  const asked = { kind, field: fields ?? [], ...(from && { from }), ...(to && { to }) };
  const list = el("a", { href: href({ name, filters: clean(asked) }), onclick: toTheList }, "Show its rows");
  const items = examples.map((id) =>
    el(
      "a",
      { class: "id", href: href({ name, id, filters: clean(asked) }) },
      el("span", { class: "hidden" }, "Example "),
      id.slice(0, ID_LENGTH),
    ),
  );
  return [list, items.length && el("span", { class: "quiet" }, "Examples:"), ...items];
}

const clean = ({ field, ...others }) => ({ ...others, ...(field.length && { field: field.filter(Boolean) }) });

function toTheList() {
  const title = document.getElementById("divergences-title");
  title.scrollIntoView();
  title.focus({ preventScroll: true });
}

// -- its rows -----------------------------------------------------------------------------------------------

function showNewest(item, group, comparison, context) {
  const fold = slot(item, "newest");
  fold.hidden = group.kind === "others";
  fold.ontoggle = () => context.ask.again();
  if (!fold.open) return;
  const listing = comparison.rowsOf(group, context.provisional);
  if (!listing.asked) context.ask.rows(comparison, listing);
  const rows = listing.items.filter((report) => isOf(report, group)).slice(0, NEWEST);
  const none = "No record of this group is among the newest 1,000, which are kept. Its count is exact.";
  setText(slot(item, "newest-none"), rows.length ? "" : listing.loaded ? none : "Fetching …");
  showRows(slot(item, "rows"), rows, context);
}

/** Whether a divergence is of a group, and not of one that differs in more fields. */
const isOf = (report, { kind, fields, more_fields: more }) =>
  report.kind === kind && (MORE in report.fields || Object.keys(report.fields).length === (fields ?? []).length + more);
