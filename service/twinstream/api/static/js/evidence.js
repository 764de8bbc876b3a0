// What a verdict still lacks, while it is PENDING.

import { el, render, slot } from "./dom.js";
import { count, duration } from "./format.js";

export function showEvidence(root, comparison) {
  const { status } = comparison;
  root.hidden = status.verdict !== "PENDING";
  if (root.hidden) return;
  const { coverage } = status;
  render(slot(root, "bars"), coverage, () => [
    bar("Matched pairs", coverage.matched, coverage.matched_required, count),
    bar("Verified time", coverage.seconds, coverage.seconds_required, duration),
    kinds(coverage.matched_by_kind),
  ]);
  render(slot(root, "missing"), coverage.missing, (missing) => missing.map((text) => el("li", {}, text)));
}

function bar(title, value, required, format) {
  const done = Math.min(value, required);
  return el(
    "label",
    {},
    el("span", {}, title),
    el("progress", { value: required ? done : 1, max: required || 1 }),
    el("b", {}, `${format(value)} of ${format(required)}`),
  );
}

function kinds(matched) {
  const each = Object.entries(matched).map(([kind, value]) => `${kind} ${count(value)}`);
  return each.length > 1 ? el("p", { class: "quiet" }, `Matched by kind: ${each.join(" · ")}`) : null;
}
