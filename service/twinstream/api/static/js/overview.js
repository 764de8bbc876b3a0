// All comparisons, the worst first: how each stands, what it does now, and the newest that differs in it.

import { el, fill, render, setAttribute, setText, slot } from "./dom.js";
import { clock, counted, duration, rate, secondsSince, short, span } from "./format.js";
import { href } from "./route.js";
import { scopeText, title } from "./words.js";
import { glyph, standing } from "./verdict.js";

const WORST_FIRST = ["DIVERGED", "INCONCLUSIVE", "NOT LIVE", "PENDING", "EQUIVALENT"];
const SEARCH_FROM = 6; // comparisons: fewer are seen at a glance

export function showOverview(root, comparisons, { route, now, lostSince, connected, asked }) {
  const entries = comparisons.map((comparison) => ({ comparison, ...standing(comparison, lostSince) }));
  entries.sort(
    (one, other) =>
      isTrial(one) - isTrial(other) ||
      WORST_FIRST.indexOf(one.word) - WORST_FIRST.indexOf(other.word) ||
      one.comparison.name.localeCompare(other.comparison.name),
  );
  const { verdict, q } = route.filters;
  const shown = entries.filter(({ word, comparison }) => fits(word, comparison, verdict, q));
  showChoice(root, entries, route);
  slot(root, "search").hidden = entries.length < SEARCH_FROM && !q;
  showCards(slot(root, "comparisons"), shown, { now, lostSince });
  setText(slot(root, "nothing"), nothing(entries, shown, asked || connected));
}

/** Trials come last: they have no gate, and nobody is called for them. */
const isTrial = ({ comparison }) => Number(Boolean(comparison.status.trial_of));

function fits(word, { name, status }, verdict, q) {
  const searched = [name, status.reference.topic, status.candidate.topic, status.candidate.version ?? ""];
  const wanted = (q ?? "").toLowerCase();
  return (!verdict || verdict === word) && searched.some((text) => text.toLowerCase().includes(wanted));
}

function nothing(entries, shown, known) {
  if (shown.length) return "";
  if (entries.length) return "No comparison is as asked for.";
  return known
    ? "There is no comparison yet. Give twinstream serve a comparison file."
    : "Asking the service which comparisons there are …";
}

/** A link for each verdict that there is; the one that is shown is marked, and leads back to all. */
function showChoice(root, entries, route) {
  const number = WORST_FIRST.map((word) => [word, entries.filter((entry) => entry.word === word).length]);
  const there = number.filter(([word, count]) => count || word === route.filters.verdict);
  const chosen = route.filters.verdict ?? null;
  render(slot(root, "verdicts"), { there, chosen, q: route.filters.q }, () =>
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
  if (wanted.length !== list.children.length || wanted.some((card, index) => list.children[index] !== card))
    list.replaceChildren(...wanted);
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
      figure("Gate", "gate"),
      figure("Reference, events/s", "reference"),
      figure("Candidate, events/s", "candidate"),
      figure("Unmatched", "unmatched"),
      figure("Lag", "lag"),
      figure("Wait, 99 %", "wait"),
    ),
  );
}

function showCard(card, { comparison, word, state, why }, { now, lostSince }) {
  const { status, gate, samples } = comparison;
  const sample = why ? null : samples.at(-1);
  setAttribute(card, "data-state", state);
  setAttribute(slot(card, "gate"), "data-answer", lostSince ? "unknown" : gate.answer);
  slot(card, "gate").closest("div").hidden = Boolean(status.trial_of);
  fill(card, {
    glyph: glyph(word),
    word,
    since: why ? "" : `for ${duration(secondsSince(status.since, now))}`,
    pair: `${status.trial_of ? `trial of ${status.trial_of}: ` : ""}${versioned(status.candidate)} against ${versioned(status.reference)}`,
    reason: why ? gate.reason : status.reason,
    gate: lostSince ? "unknown" : gate.answer,
    reference: rate(sample?.events_per_second.reference),
    candidate: rate(sample?.events_per_second.candidate),
    unmatched: short(status.unmatched.reference + status.unmatched.candidate),
    lag: lagOf(sample),
    wait: sample?.wait_seconds ? span(sample.wait_seconds.p99) : "–",
  });
  const newest = comparison.newest.items;
  const open = newest.length ? 0 : comparison.provisional;
  render(slot(card, "newest"), { newest, open }, () => [
    ...newest.map((report) => link(comparison.name, report, now)),
    open > 0 && el("li", { class: "quiet" }, `${counted(open, "divergence")}, still being explained`),
  ]);
}

const versioned = ({ topic, version }) => (version ? `${topic} ${version}` : topic);

function lagOf(sample) {
  if (!sample || sample.lag.reference === null || sample.lag.candidate === null) return "–";
  return short(sample.lag.reference + sample.lag.candidate);
}

const link = (name, report, now) =>
  el(
    "li",
    {},
    el("a", { href: href({ name, id: report.id }) }, title(report)),
    " ",
    el("span", { class: "scope" }, scopeText(report.scope)),
    " ",
    el("time", { datetime: report.first_seen }, clock(report.first_seen, now)),
  );
