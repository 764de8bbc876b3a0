// The divergences of a comparison in lists, each a row that leads to its records: those for good, and apart from
// them those that may still change. Above them what is asked for, which stands in the address.

import { el, render, setText, slot } from "./dom.js";
import { clock, count, duration, place, visible } from "./format.js";
import { scopePair } from "./filters.js";
import { json } from "./record.js";
import { added, changed, href, pairs, without } from "./route.js";
import { MEANING, scopeText, title } from "./words.js";

const MARKS = [
  ["late", "true", "late"],
  ["tainted", "true", "tainted"],
  ["explained", "true", "explained"],
];
const SAYING = {
  kind: (value) => `kind ${value}`,
  scope: (value) => value.replace("=", " = "),
  field: (value) => `${value} differs`,
  from: (value) => `since ${value}`,
  to: (value) => `before ${value}`,
  late: (value) => (value === "true" ? "late" : "not late"),
  tainted: (value) => (value === "true" ? "tainted" : "not tainted"),
  explained: (value) => (value === "true" ? "explained, by examples" : "not explained"),
};

/** `on.newer(listing)`, `on.older(listing)`: somebody asks for more. */
export function showDivergences(root, comparison, { now, route }) {
  const { divergences } = comparison.status;
  setText(slot(root, "count"), divergences.total ? counts(divergences.total, comparison.provisional) : "");
  showKinds(slot(root, "kinds"), comparison, route);
  showFilters(slot(root, "chosen"), route);
  showMore(root, route);
  showListing(root, "settled", comparison.settled, { now, route });
  showListing(root, "open", comparison.open, { now, route });
  slot(root, "open-part").hidden = !comparison.open.reports.size;
  setText(slot(root, "none"), emptyText(comparison, divergences.total, route));
}

/** "12", "12 and 3 provisional", "3 provisional". */
function counts(total, provisional) {
  const good = total - provisional;
  const both = [good && count(good), provisional && `${count(provisional)} provisional`];
  return both.filter(Boolean).join(" and ");
}

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
          el("b", {}, counts(value, Math.max(0, value - closed[kind]))),
        ),
      ),
  );
}

/** Each filter that holds, as a link that takes it away. */
function showFilters(root, route) {
  const chosen = pairs(route.filters).filter(([name]) => name !== "kind");
  render(root, { chosen, filters: route.filters, name: route.name }, () => [
    ...chosen.map(([name, value]) =>
      el(
        "a",
        { class: "chip taken", href: to(route, without(route.filters, name, value)) },
        el("span", { class: "hidden" }, "Remove the filter "),
        `${SAYING[name]?.(value) ?? `${name} ${value}`} `,
        el("span", { "aria-hidden": "true" }, "×"),
      ),
    ),
    chosen.length > 1 && el("a", { href: to(route, {}) }, "Show all"),
  ]);
}

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
  if (pairs(route.filters).length) return open.reports.size ? "" : "No divergence is as asked for.";
  if (open.reports.size) return "None of them is for good yet.";
  if (total) return "No records of these are kept; the counts are exact.";
  return status.matched ? "No difference has been found." : "Nothing has been matched yet.";
}

function showListing(root, name, listing, context) {
  const newer = slot(root, `${name}-newer`);
  newer.hidden = !listing.newer.size;
  setText(newer, `Show ${count(listing.newer.size)} newer`);
  slot(root, `${name}-older`).hidden = !listing.older || listing.size >= 500;
  showRows(slot(root, name), listing, context);
}

/** A row is built anew only when its report changed, so that nothing is lost under a pointer or a finger. */
function showRows(list, listing, context) {
  const rows = new Map([...list.children].map((row) => [row.dataset.id, row]));
  const wanted = listing.items.map((report) => {
    const row = rows.get(report.id) ?? el("li", { "data-id": report.id, class: "row" });
    row.dataset.provisional = report.provisional;
    render(row, { report, route: context.route }, () => rowContent(report, context));
    return row;
  });
  if (wanted.length !== list.children.length || wanted.some((row, index) => list.children[index] !== row))
    list.replaceChildren(...wanted);
}

const rowContent = (report, { now, route }) => [
  el(
    "div",
    { class: "line" },
    el(
      "h3",
      {},
      el(
        "a",
        { class: "kind", href: href({ name: route.name, id: report.id, filters: route.filters }) },
        title(report),
      ),
      " ",
      el("span", { class: "meaning" }, MEANING[report.kind]),
    ),
    el("span", { class: "scopes" }, ...scopes(report, route)),
    el("time", { datetime: report.first_seen }, clock(report.first_seen, now)),
  ),
  flags({ ...report, provisional: false }), // the list says that
  el("p", { class: "text" }, visible(report.text)),
  el("p", { class: "places" }, ...places(report)),
];

/** Each part of the scope as a link to all that differs in it. */
function scopes(report, route) {
  const parts = Object.entries(report.scope);
  if (!parts.length) return [scopeText(report.scope)];
  return parts.map(([field, value]) =>
    el(
      "a",
      { class: "scope", href: to(route, added(route.filters, "scope", scopePair(field, value))) },
      el("span", { class: "hidden" }, "Only "),
      `${visible(field)} ${json(value)}`,
    ),
  );
}

const places = (report) =>
  ["reference", "candidate"].map((side) =>
    el("span", { class: side }, report.positions[side] ? place(report.positions[side]) : `not in the ${side}`),
  );

/** What a divergence is besides its kind: marks that say how far it counts. */
export function flags(report) {
  const texts = [
    report.provisional && "Provisional: its scope is still open, or it is not saved yet. Its kind may change.",
    report.late !== null && `Late: its partner came after all, ${duration(report.late)} later.`,
    report.tainted && "Tainted: found after a stretch that was not checked, so the verdict leaves it out.",
    report.explained && `Explained by the known difference ${report.explained}.`,
  ].filter(Boolean);
  return texts.length ? el("ul", { class: "flags" }, ...texts.map((text) => el("li", {}, text))) : null;
}
