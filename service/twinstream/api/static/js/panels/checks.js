// The checks of each side by itself: what was found, with the places of the first violations.

import { el, render, slot } from "../base/dom.js";
import { count, place } from "../base/format.js";

export function showChecks(root, { status }) {
  const checks = status.checks ?? []; // None of an older matcher.
  root.hidden = !checks.length;
  render(slot(root, "checks"), checks, () => checks.map(item));
}

const item = (check) =>
  el("li", {}, el("strong", {}, check.id), `: ${check.text}. ${found(check)}`, ...violations(check));

function found(check) {
  const sides = ["reference", "candidate"].filter((side) => check[side]);
  return sides.map((side) => `The ${side}: ${told(check[side])}.`).join(" ");
}

function told({ state, checked, violations: number, reason }) {
  const counts = number ? `${count(number)} violated of ${count(checked)}` : `${count(checked)} checked`;
  return `${state.replace("_", " ")}, ${counts}${reason ? `: ${reason}` : ""}`;
}

const violations = ({ reference, candidate }) =>
  [reference, candidate]
    .flatMap((side) => side?.first ?? [])
    .map(({ position, problem }) =>
      el("div", { class: "place" }, `${place(position)} · the record ${problem}`),
    );
