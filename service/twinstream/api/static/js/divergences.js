// The latest divergences. A card is rebuilt only when its report changed: what a person has unfolded or
// selected stays.

import { el, render, setText, slot } from "./dom.js";
import { clock, count, duration, place } from "./format.js";
import { json, recordTable } from "./record.js";

const WORDS = {
  missing: "in the reference only",
  extra: "in the candidate only",
  changed: "same thing, other content",
  reordered: "in another order",
  duplicate: "more often in the candidate",
};

export function showDivergences(root, comparison, now, choose) {
  const { by_kind, total } = comparison.status.divergences;
  setText(slot(root, "count"), total ? count(total) : "");
  render(slot(root, "kinds"), { by_kind, chosen: comparison.kind }, () => kindButtons(comparison, choose));
  setText(slot(root, "none"), emptyText(comparison, total));
  showCards(slot(root, "list"), comparison, now);
  slot(root, "older").hidden = !comparison.older;
}

function kindButtons({ status, kind: chosen }, choose) {
  return Object.entries(status.divergences.by_kind)
    .filter(([kind, value]) => value > 0 || kind === chosen)
    .map(([kind, value]) =>
      el(
        "button",
        {
          type: "button",
          "aria-pressed": String(kind === chosen),
          onclick: () => choose(kind === chosen ? null : kind),
        },
        `${kind} ${count(value)}`,
      ),
    );
}

function emptyText(comparison, total) {
  if (comparison.divergences.size) return "";
  if (!total && !comparison.status.matched) return "Nothing has been matched yet.";
  if (!total) return "No difference has been found.";
  return comparison.loaded
    ? "No records of these are kept; the counts are exact."
    : "Fetching the records…";
}

function showCards(list, comparison, now) {
  const cards = new Map([...list.children].map((card) => [card.dataset.id, card]));
  const wanted = [...comparison.divergences.values()].map((report) => {
    const card = cards.get(report.id) ?? el("li", { "data-id": report.id, class: "card" });
    render(card, report, () => cardContent(report, now));
    return card;
  });
  if (
    wanted.length !== list.children.length ||
    wanted.some((card, index) => list.children[index] !== card)
  ) {
    list.replaceChildren(...wanted);
  }
}

function cardContent(report, now) {
  return [
    el(
      "div",
      { class: "line" },
      el(
        "h3",
        {},
        el("span", { class: "kind" }, report.kind),
        " ",
        el("span", { class: "meaning" }, WORDS[report.kind]),
      ),
      el("span", { class: "scope" }, scope(report.scope)),
      el("time", { datetime: report.first_seen }, clock(report.first_seen, now)),
    ),
    flags(report),
    el("p", { class: "text" }, report.text),
    recordTable(report),
    witness(report),
    el("p", { class: "id" }, report.id),
  ];
}

const scope = (value) =>
  Object.entries(value)
    .map(([name, member]) => `${name} ${json(member)}`)
    .join(" · ") || "whole stream";

function flags(report) {
  const texts = [
    report.provisional && "provisional: its scope is still open, or it is not saved yet, so this may be replaced",
    report.late !== null && `late: its partner came after all, ${duration(report.late)} later`,
    report.tainted && "tainted: found after a stretch that was not checked, so the verdict leaves it out",
    report.explained && `explained by the known difference ${report.explained}`,
  ].filter(Boolean);
  return texts.length ? el("ul", { class: "flags" }, ...texts.map((text) => el("li", {}, text))) : null;
}

function witness(report) {
  if (!report.witness.length) return null;
  const number = report.witness.length;
  const title = number === 1 ? "The event that proves it" : `The ${number} events that prove it`;
  const items = report.witness.map(({ side, position, value }) =>
    el(
      "li",
      {},
      el("span", { class: side }, side),
      " ",
      el("span", { class: "place" }, place(position)),
      el("code", {}, json(value)),
    ),
  );
  return el(
    "details",
    { class: "witness", open: report.kind === "reordered" },
    el("summary", {}, title),
    el("ol", {}, ...items),
  );
}
