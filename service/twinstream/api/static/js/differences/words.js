// The words that the page has for divergences, wherever it names one.

import { count, visible } from "../base/format.js";
import { json } from "./record.js";

export const MEANING = {
  missing: "not in the candidate",
  extra: "only in the candidate",
  changed: "same record, different values",
  reordered: "on both sides, in a different order",
  duplicate: "one copy too many",
};

/** A divergence in a word; one that may still change is never called by its kind alone. */
export const title = ({ kind, provisional }) => (provisional ? `${kind}, provisional` : kind);

/** The divergence itself in one line. A service of an older version has only the sentence. */
export const answer = (report) => visible(report.title || report.text);

/** Where in the order it lies. */
export const scopeText = (scope) =>
  Object.entries(scope)
    .map(([name, member]) => `${visible(name)} ${json(member)}`)
    .join(" · ") || "whole stream";

/** "12 final", "12 final, 3 provisional", "3 provisional". */
export function counts(all, final) {
  const provisional = Math.max(0, all - final);
  const both = [final && `${count(final)} final`, provisional && `${count(provisional)} provisional`];
  return both.filter(Boolean).join(", ");
}
