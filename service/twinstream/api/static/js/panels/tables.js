// The accounts, the wait histogram, the partitions, what was not checked, and the particulars.

import { el, fill, render, slot } from "../base/dom.js";
import { NOTHING, bytes, clock, count, counted, duration, place, secondsSince, span } from "../base/format.js";
import { when } from "../base/times.js";

const FATES = [
  ["matched", "paired with an equal event of the other side"],
  ["ignored", "left out by a declared rule"],
  ["before_start", "before the start of the comparison"],
  ["replayed", "written again by a retry"],
  ["superseded", "replaced by a later row of its key"],
  ["undecodable", "not an event of this comparison"],
  ["explained", "different, covered by a known difference"],
  ["divergent", "part of a difference"],
  ["unmatched", "no partner yet"],
];

const ALWAYS = new Set(["matched", "divergent", "unmatched"]); // the others only when there are any

const cells = (...values) => values.map((value) => el("td", {}, value));
const headings = (...texts) =>
  el("thead", {}, el("tr", {}, ...texts.map((text) => el("th", { scope: "col" }, text))));

export function showAccounts(root, { status }) {
  render(slot(root, "table"), status.accounts, ({ reference, candidate }) => {
    const rows = FATES.filter(([fate]) => ALWAYS.has(fate) || reference[fate] || candidate[fate]);
    return [
      el(
        "table",
        { class: "numbers accounts" },
        headings("Events", "Reference", "Candidate"),
        el("tbody", {}, ...rows.map(([fate, meaning]) => fateRow(fate, meaning, reference, candidate))),
        el(
          "tfoot",
          {},
          el("tr", {}, el("th", { scope: "row" }, "consumed"), total(reference), total(candidate)),
        ),
      ),
    ];
  });
}

const fateRow = (fate, meaning, reference, candidate) =>
  el(
    "tr",
    { class: fate === "divergent" && (reference[fate] || candidate[fate]) ? "differs" : null },
    el("th", { scope: "row" }, fate.replace("_", " "), el("small", {}, meaning)),
    ...cells(count(reference[fate]), count(candidate[fate])),
  );

/** The sum of a side; says so when the rows do not add up to it, since then nothing here can be trusted. */
function total(account) {
  const sum = FATES.reduce((all, [fate]) => all + account[fate], 0);
  if (sum === account.consumed) return el("td", {}, count(account.consumed));
  return el("td", { class: "wrong" }, `${count(account.consumed)}, but the rows add up to ${count(sum)}`);
}

export function showLatency(root, comparison) {
  const recent = comparison.recent("latency");
  const cost = comparison.recent("processing");
  render(slot(root, "table"), recent, () => [latencyTable(recent)]);
  const events = cost.counts.reduce((sum, value) => sum + value, 0);
  fill(root, {
    window: recent.window,
    processing: events ? `The matcher spends ${span(cost.sum / events)} on an event, ${cost.window}.` : "",
  });
}

function latencyTable({ edges, counts }) {
  const all = counts.reduce((sum, value) => sum + value, 0);
  const label = (index) => (index < edges.length ? `≤ ${span(edges[index])}` : `> ${span(edges.at(-1))}`);
  const rows = counts.map((value, index) => {
    const share = all ? value / all : 0;
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, label(index)),
      el("td", { class: "meter" }, el("meter", { value: share, max: 1, "aria-hidden": "true" })),
      el("td", {}, value ? percent(share) : NOTHING),
    );
  });
  return el("table", { class: "numbers latency" }, el("tbody", {}, ...rows));
}

const percent = (share) =>
  share < 0.001 ? "< 0.1 %" : `${(share * 100).toFixed(share < 0.9995 ? 1 : 0)} %`;

export function showProgress(root, { status }) {
  const { progress, verified_up_to, reference, candidate, frontier } = status;
  render(slot(root, "frontiers"), frontier, () => ["reference", "candidate"].map((side) => front(side, frontier[side])));
  render(slot(root, "table"), { progress, verified_up_to }, () => [
    el(
      "table",
      { class: "numbers" },
      headings("Topic and partition", "Verified up to", "Next to read", "End", "Lag", "Newest event"),
      el(
        "tbody",
        {},
        ...partitionRows("reference", reference.topic, progress.reference, verified_up_to.reference),
        ...partitionRows("candidate", candidate.topic, progress.candidate, verified_up_to.candidate),
      ),
    ),
  ]);
}

/** How far a side has come on the clock that makes events of the other one overdue, and what holds it back. */
const front = (side, { at, held_back_by: why }) =>
  (at || why) &&
  el(
    "li",
    {},
    el("span", { class: side }, side),
    at ? ` read up to ${at}` : " not read yet",
    why && `; ${why}`,
  );

function partitionRows(side, topic, partitions, verified) {
  if (!partitions.length) {
    const nothing = el("td", { colspan: 5 }, "not read yet");
    return [el("tr", {}, el("th", { scope: "row", class: side }, topic), nothing)];
  }
  return partitions.map(({ partition, position, end, lag, newest_event_at }) =>
    el(
      "tr",
      {},
      el("th", { scope: "row", class: side }, `${topic} ${partition}`),
      ...cells(
        count(verified[partition]),
        count(position),
        count(end),
        count(lag),
        when(newest_event_at),
      ),
    ),
  );
}

export function showUnchecked(root, { status }, now) {
  const { holes, undecodable } = status;
  root.hidden = !holes.length && !undecodable.length;
  render(slot(root, "holes"), holes, () => (holes.length ? [holeList(holes, now)] : []));
  render(slot(root, "undecodable"), undecodable, () =>
    undecodable.length ? undecodableList(undecodable) : [],
  );
}

const where = (...parts) => el("span", { class: "place" }, parts.filter(Boolean).join(" · "));

const holeList = (holes, now) =>
  el(
    "ul",
    { class: "sentences" },
    ...holes.map(({ reason, side, position, seen_at }) =>
      el("li", {}, `${reason} `, where(side, position && place(position), clock(seen_at, now))),
    ),
  );

const undecodableList = (records) => [
  el("h3", {}, "Undecodable records"),
  el(
    "ul",
    { class: "sentences" },
    ...records.map(({ side, position, reason }) =>
      el("li", {}, `${reason} `, where(side, place(position))),
    ),
  ),
];

/** Each reset: when, by whom, why, and what it ended. */
export function showResets(root, { status }) {
  root.hidden = !status.resets.length;
  render(slot(root, "list"), status.resets, () =>
    status.resets.toReversed().map(({ at, by, reason, before }) =>
      el(
        "li",
        {},
        when(at),
        ` by ${by}: ${reason} `,
        el("small", {}, `It was ${before.verdict}: ${count(before.matched)} pairs matched, ${counted(before.divergences, "divergence")}.`),
      ),
    ),
  );
}

const sizeAndCost = ({ size_bytes, duration_seconds }) =>
  `${bytes(size_bytes ?? 0)} in ${span(duration_seconds ?? 0)}`;

const runsSince = ({ started_at }, now) =>
  `${clock(started_at, now)}, for ${duration(secondsSince(started_at, now))}`;

export function showParticulars(root, { status, gate }, now) {
  const { checkpoint } = status;
  const published = gate.updated_at !== "";
  const saved = checkpoint.written_at
    ? [clock(checkpoint.written_at, now), sizeAndCost(checkpoint)].join(" · ")
    : "none yet";
  const facts = {
    Order: status.order,
    "Matcher runs since": published ? runsSince(status, now) : NOTHING,
    "Last checkpoint": saved,
    "Last status": published ? clock(status.updated_at, now) : "none yet",
  };
  render(root, facts, () =>
    Object.entries(facts).map(([name, text]) => el("div", {}, el("dt", {}, name), el("dd", {}, text))),
  );
}
