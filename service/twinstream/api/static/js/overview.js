// The switch between comparisons, each with its standing; hidden while there is only one.

import { el, render } from "./dom.js";
import { glyph, standing } from "./verdict.js";

export function showOverview(root, comparisons, selected, lostSince) {
  root.hidden = comparisons.length < 2;
  const entries = comparisons.map((comparison) => ({
    name: comparison.name,
    selected: comparison === selected,
    ...standing(comparison, lostSince),
  }));
  render(root, entries, () => entries.map(link));
}

const link = ({ name, selected, word, state }) =>
  el(
    "a",
    { href: `#${encodeURIComponent(name)}`, "data-state": state, "aria-current": selected ? "page" : null },
    el("span", { class: "glyph", "aria-hidden": "true" }, glyph(word)),
    el("span", {}, name),
    el("span", { class: "hidden" }, `: ${word}`),
  );
