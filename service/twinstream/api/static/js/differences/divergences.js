// The divergences of a comparison in lists: the final ones, and apart from them those that may still change. Above
// them what is asked for, which stands in the address.

import { el, render, setAttribute, setText, slot } from "../base/dom.js";
import { clock, count, visible } from "../base/format.js";
import { added, changed, href, pairs, without } from "../state/route.js";
import { showRows } from "./rows.js";
import { counts } from "./words.js";

const MARKS = [
  ["late", "true", "late"],
  ["tainted", "true", "tainted"],
  ["explained", "true", "explained"],
];
const SAYING = {
  kind: (value) => `kind ${value}`,
  scope: (value) => value.replace("=", " = "),
  field: (value) => `${value} differs`,
  from: (value, now) => `from ${time(value, now)}`,
  to: (value, now) => `before ${time(value, now)}`,
  late: (value) => (value === "true" ? "late" : "not late"),
  tainted: (value) => (value === "true" ? "tainted" : "not tainted"),
  explained: (value) => (value === "true" ? "explained, by examples" : "not explained"),
};

/** `on.newer(listing)`, `on.older(listing)`: somebody asks for more. */
export function showDivergences(root, comparison, context) {
  const { now, route } = context;
  const { divergences, closed_divergences } = comparison.status;
  setText(slot(root, "count"), counts(divergences.total, closed_divergences.total));
  showKinds(slot(root, "kinds"), comparison, route);
  showFilters(slot(root, "chosen"), route, now);
  showMore(root, route);
  showListing(root, "settled", comparison.settled, context);
  showListing(root, "open", comparison.open, context);
  showOpenPart(slot(root, "open-part"), comparison);
  const awaited = comparison.settled.loaded ? 0 : Math.min(closed_divergences.total, comparison.settled.shown);
  root.style.setProperty("--awaited", awaited);
  setAttribute(root, "aria-busy", String(awaited > 0));
  const none = emptyText(comparison, divergences.total, route);
  render(slot(root, "none"), [none, route.name], () => [none, none === NO_MATCH && " ", none === NO_MATCH && el("a", { href: to(route, {}) }, "Clear")]);
}

const NO_MATCH = "No divergence matches these filters.";

// -- what is asked for --------------------------------------------------------------------------------------

const to = (route, filters) => href({ name: route.name, filters });

function showKinds(root, { status }, route) {
  const { by_kind } = status.divergences;
  const closed = status.closed_divergences.by_kind;
  const chosen = route.filters.kind ?? null;
  render(root, { by_kind, closed, filters: route.filters, name: route.name }, () =>
    Object.entries(by_kind)
      .filter(([kind, value]) => value > 0 || kind === chosen)
      .map(([kind, value]) =>
        el(
          "a",
          {
            class: "chip",
            href: to(route, changed(route.filters, { kind: kind === chosen ? null : kind })),
            "aria-current": kind === chosen ? "true" : null,
          },
          `${kind} `,
          el("b", {}, counts(value, closed[kind])),
        ),
      ),
  );
}

/** Each filter that holds, as a link that takes it away. */
function showFilters(root, route, now) {
  const chosen = pairs(route.filters).filter(([name]) => name !== "kind");
  render(root, { chosen, filters: route.filters, name: route.name }, () => [
    ...chosen.map(([name, value]) =>
      el(
        "a",
        { class: "chip taken", href: to(route, without(route.filters, name, value)) },
        el("span", { class: "hidden" }, "Remove the filter "),
        `${visible(SAYING[name]?.(value, now) ?? `${name} ${value}`)} `,
        el("span", { "aria-hidden": "true" }, "×"),
      ),
    ),
    chosen.length > 1 && el("a", { href: to(route, {}) }, "Clear all"),
  ]);
}

/** A time of the address; what is none is shown as it stands there. */
const time = (text, now) => (Number.isNaN(Date.parse(text)) ? text : clock(text, now));

/** What else can be asked for: links for the marks, and a form for the rest, which `main` listens to. */
function showMore(root, route) {
  render(slot(root, "marks"), { filters: route.filters, name: route.name }, () =>
    MARKS.filter(([name]) => !(name in route.filters)).map(([name, value, text]) =>
      el("a", { class: "chip", href: to(route, changed(route.filters, { [name]: value })) }, text),
    ),
  );
}

/** The filters with what a person has put into the form. */
export function asked(form, filters) {
  const given = new FormData(form);
  const text = (name) => given.get(name).trim();
  const moment = (name) => (text(name) ? `${text(name).replace(" ", "T")}Z` : null);
  let found = changed(filters, { from: moment("from"), to: moment("to") });
  if (text("scope-field")) found = added(found, "scope", `${text("scope-field")}=${text("scope-value")}`);
  if (text("field")) found = added(found, "field", text("field"));
  return found;
}

// -- the lists ----------------------------------------------------------------------------------------------

function emptyText(comparison, total, route) {
  const { settled, open, status } = comparison;
  if (settled.reports.size) return "";
  if (!settled.loaded) return total ? "Fetching the records …" : "";
  if (settled.problem) return settled.problem;
  if (pairs(route.filters).length) return open.reports.size ? "" : NO_MATCH;
  if (open.reports.size) return "None is final yet.";
  if (total) return "No records of these are kept; the counts are exact.";
  return status.matched ? "No difference found." : "Nothing matched yet.";
}

/** The provisional ones are folded where there are final ones. */
function showOpenPart(fold, { name, open, settled, status }) {
  const { divergences, closed_divergences } = status;
  const appears = fold.hidden || fold.dataset.name !== name;
  fold.hidden = !open.reports.size || !settled.loaded;
  if (fold.hidden) return;
  fold.dataset.name = name;
  if (appears) fold.open = !settled.reports.size;
  setText(slot(fold, "open-title"), counts(Math.max(0, divergences.total - closed_divergences.total), 0) || "Provisional");
}

function showListing(root, name, listing, context) {
  const newer = slot(root, `${name}-newer`);
  newer.hidden = !listing.newer.size;
  setText(newer, `Show ${count(listing.newer.size)} newer`);
  slot(root, `${name}-older`).hidden = !listing.hasMore || listing.shown >= 500;
  showRows(slot(root, name), listing.visible, context);
}
