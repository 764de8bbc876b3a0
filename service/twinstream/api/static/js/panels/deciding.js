// What would make an undecided gate decided: the service's own sentences, and how far the evidence has come.

import { el, render, setText, slot } from "../base/dom.js";
import { count, duration } from "../base/format.js";
import { withCode } from "../base/sentence.js";

export function showDeciding(root, { status, gate }, lostSince) {
  const steps = gate.to_decide ? gate.to_decide.split("\n") : [];
  root.hidden = Boolean(lostSince) || !steps.length;
  if (root.hidden) return;
  const pending = status.verdict === "PENDING" && !gate.stale;
  setText(slot(root, "deciding-title"), pending ? "What a verdict still needs" : "What would decide it");
  render(slot(root, "steps"), steps, () => steps.map((step) => el("li", {}, ...withCode(step))));
  slot(root, "bars").hidden = !pending;
  const { coverage } = status;
  render(slot(root, "bars"), coverage, () => [
    bar("Matched pairs", coverage.matched, coverage.matched_required, count),
    bar("Verified time", coverage.seconds, coverage.seconds_required, duration),
    kinds(coverage.matched_by_kind),
  ]);
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
