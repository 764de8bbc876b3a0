// All comparisons: how each stands, what it does now, and the newest that differs in it. What is searched for, the
// verdict and the order stand in the address. Many are rows of a table rather than cards.
//
// The order stays while a pointer or the focus is in the list: nothing moves away from under it. Else it is taken anew
// every few seconds, and at once when another is asked for.

import { el, fill, render, setAttribute, setChildren, setText, slot } from "./base/dom.js";
import { count, counted, duration, rate, secondsSince, short, span } from "./base/format.js";
import { when } from "./base/times.js";
import { title } from "./differences/words.js";
import { about } from "./frame/title.js";
import { glyph, standing } from "./panels/verdict.js";
import { href } from "./state/route.js";

const WORST_FIRST = ["DIVERGED", "INCONCLUSIVE", "NOT LIVE", "PENDING", "EQUIVALENT"];
const SEARCH_FROM = 6; // comparisons: fewer are seen at a glance
const REORDER_MILLISECONDS = 3000;
const FIGURES = [
  ["gate", "Gate"],
  ["divergences", "Divergences"],
  ["unmatched", "Unmatched"],
  ["lag", "Lag"],
  ["reference", "Reference, events/s"],
  ["candidate", "Candidate, events/s"],
  ["wait", "Time to match, p99"],
];
const COLUMNS = ["Comparison", "Verdict", "", "Topics", ...FIGURES.map(([, text]) => text)];

const { compare: byName } = new Intl.Collator("en", { numeric: true });
const most = (read) => (one, other) => read(other) - read(one);
const ORDERS = {
  worst: ["Worst first", (one, other) => WORST_FIRST.indexOf(one.word) - WORST_FIRST.indexOf(other.word)],
  name: ["Name", () => 0],
  newest: ["Newest change", most(({ comparison }) => Date.parse(comparison.status.since))],
  unmatched: ["Most unmatched", most(({ comparison }) => unmatched(comparison.status))],
  lag: ["Longest lag", most(({ comparison }) => lag(comparison.samples.at(-1)) ?? -1)],
};
const DEFAULT = "worst";

/** The orders for a choice: `[key, text]`; the key of the first is not in the address. */
export const orders = Object.entries(ORDERS).map(([key, [text]]) => [key === DEFAULT ? "" : key, text]);

/** `many`: as rows, where there are too many for cards. */
export function showOverview(root, comparisons, { route, now, lostSince, known, many }) {
  const entries = comparisons.map((comparison) => ({ comparison, ...standing(comparison, lostSince) }));
  const { verdict, q, sort } = route.filters;
  const shown = entries.filter(fitting(verdict, q)).sort(inOrder(sort));
  setText(slot(root, "count"), shown.length < entries.length ? `${shown.length} of ${entries.length}` : count(entries.length));
  showChoice(root, entries, route);
  slot(root, "tools").hidden = entries.length < SEARCH_FROM && !q && !sort;
  render(slot(root, "columns"), COLUMNS, () => COLUMNS.map((text) => el("span", {}, text)));
  slot(root, "columns").hidden = !many || !shown.length;
  slot(root, "comparisons").classList.toggle("dense", many);
  showCards(slot(root, "comparisons"), shown, { now, lostSince, many, asked: JSON.stringify(route.filters) });
  const text = nothing(entries, shown, known);
  render(slot(root, "nothing"), text, () => [text, entries.length > 0 && text && el("a", { href: href({}) }, " Clear")]);
}

/** Trials come last, since they have no gate and nobody is called for them; equals by their names. */
function inOrder(sort) {
  const [, first] = ORDERS[Object.hasOwn(ORDERS, sort ?? "") ? sort : DEFAULT];
  return (one, other) =>
    isTrial(one) - isTrial(other) || first(one, other) || byName(one.comparison.name, other.comparison.name);
}

const isTrial = ({ comparison }) => Number(Boolean(comparison.status.trial_of));

function fitting(verdict, q) {
  const wanted = (q ?? "").toLowerCase();
  return ({ word, comparison: { name, status } }) =>
    (!verdict || verdict === word) && searched(name, status).some((text) => text.toLowerCase().includes(wanted));
}

const searched = (name, { reference, candidate }) =>
  [name, reference.topic, candidate.topic, reference.version, candidate.version].filter(Boolean);

function nothing(entries, shown, known) {
  if (shown.length) return "";
  if (entries.length) return "No comparison matches these filters.";
  return known ? "No comparisons yet. Give twinstream serve a comparison file." : "Loading comparisons …";
}

/** A link for each verdict that there is; the one that is shown is marked, and leads back to all. */
function showChoice(root, entries, route) {
  const number = WORST_FIRST.map((word) => [word, entries.filter((entry) => entry.word === word).length]);
  const there = number.filter(([word, count]) => count || word === route.filters.verdict);
  const chosen = route.filters.verdict ?? null;
  render(slot(root, "verdicts"), { there, filters: route.filters }, () =>
    there.length < 2 && !chosen
      ? []
      : there.map(([word, count]) => {
          const filters = { ...route.filters, verdict: word };
          if (word === chosen) delete filters.verdict;
          return el(
            "a",
            { class: "chip", href: href({ filters }), "aria-current": word === chosen ? "true" : null },
            `${glyph(word)} ${word.toLowerCase()} `,
            el("b", {}, count),
          );
        }),
  );
}

function showCards(list, entries, context) {
  const cards = new Map([...list.children].map((card) => [card.dataset.name, card]));
  const wanted = entries.map((entry) => {
    const card = cards.get(entry.comparison.name) ?? emptyCard(entry.comparison.name);
    showCard(card, entry, context);
    return card;
  });
  setChildren(list, isDue(list, context) ? wanted : asBefore(list, wanted));
}

let ordered = { asked: null, at: -Infinity };

/** Whether the list may be put in order now. */
function isDue(list, { now, asked }) {
  if (list.matches(":hover, :focus-within")) return false;
  if (asked === ordered.asked && now - ordered.at < REORDER_MILLISECONDS) return false;
  ordered = { asked, at: now };
  return true;
}

/** The cards in the order in which they are shown, new ones at the end. */
function asBefore(list, wanted) {
  const places = new Map([...list.children].map((card, index) => [card, index]));
  return wanted.toSorted((one, other) => (places.get(one) ?? Infinity) - (places.get(other) ?? Infinity) || 0);
}

const part = (name, attributes = {}, tag = "span") => el(tag, { "data-slot": name, ...attributes });
const figure = (name, slotName) => el("div", {}, el("dt", {}, name), el("dd", {}, part(slotName, {}, "b")));

function emptyCard(name) {
  return el(
    "li",
    { class: "comparison", "data-name": name },
    el(
      "div",
      { class: "standing" },
      el("h2", {}, el("a", { href: href({ name }) }, name)),
      el("p", { class: "word" }, part("glyph", { class: "glyph", "aria-hidden": "true" }), " ", part("word")),
      part("since", { class: "since" }, "p"),
    ),
    el(
      "div",
      { class: "told" },
      part("pair", { class: "pair" }, "p"),
      part("reason", { class: "reason" }, "p"),
      part("newest", { class: "newest" }, "ul"),
    ),
    el(
      "dl",
      { class: "small-figures" },
      ...FIGURES.map(([name, text]) => figure(text, name)),
    ),
  );
}

function showCard(card, { comparison, word, state, why }, { now, lostSince, many }) {
  const { status, gate, samples } = comparison;
  const sample = why ? null : samples.at(-1);
  const pair = pairOf(status);
  setAttribute(card, "data-state", state);
  setAttribute(slot(card, "gate"), "data-answer", lostSince ? "unknown" : gate.answer);
  fill(card, {
    glyph: glyph(word),
    word,
    since: why ? "" : `for ${duration(secondsSince(status.since, now))}`,
    pair,
    reason: why ? gate.reason : status.reason,
    gate: status.trial_of ? "none" : lostSince ? "unknown" : gate.answer,
    divergences: short(status.divergences.total),
    reference: rate(sample?.events_per_second.reference),
    candidate: rate(sample?.events_per_second.candidate),
    unmatched: short(unmatched(status)),
    lag: short(lag(sample)),
    wait: span(sample?.wait_seconds?.p99),
  });
  setAttribute(slot(card, "pair"), "title", pair); // a row has no room for the longest
  showNewest(slot(card, "newest"), comparison, many);
}

function showNewest(root, { name, newest, provisional }, many) {
  const reports = many ? [] : newest.items;
  const open = many || reports.length ? 0 : provisional;
  const shown = reports.map((report) => ({ id: report.id, text: [title(report), about(report)], at: report.first_seen }));
  render(root, { shown, open }, () => [
    ...shown.map((report) => link(name, report)),
    open > 0 && el("li", { class: "quiet" }, counted(open, "provisional divergence")),
  ]);
}

const link = (name, { id, text: [kind, what], at }) =>
  el(
    "li",
    {},
    el("a", { href: href({ name, id }) }, kind),
    " ",
    el("span", { class: "scope" }, what),
    " ",
    when(at),
  );

const pairOf = ({ trial_of: trial, candidate, reference }) =>
  `${trial ? `trial of ${trial}: ` : ""}reference ${versioned(reference)} · candidate ${versioned(candidate)}`;

const versioned = ({ topic, version }) => (version ? `${topic} (${version})` : topic);

const unmatched = ({ unmatched: { reference, candidate } }) => reference + candidate;

/** In records on both sides; null while it is not known. */
function lag(sample) {
  if (!sample || sample.lag.reference === null || sample.lag.candidate === null) return null;
  return sample.lag.reference + sample.lag.candidate;
}
