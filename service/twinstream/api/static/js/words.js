// The words that the page has for divergences, wherever it names one.

import { visible } from "./format.js";
import { json } from "./record.js";

export const MEANING = {
  missing: "the candidate did not write it",
  extra: "only the candidate wrote it",
  changed: "same thing, other content",
  reordered: "both wrote it, in another order",
  duplicate: "the candidate wrote it once more",
};

/** A divergence in a few words; one that may still change is never called by its kind alone. */
export const title = ({ kind, provisional }) => (provisional ? `${kind}, provisional` : kind);

/** Where in the order it lies. */
export const scopeText = (scope) =>
  Object.entries(scope)
    .map(([name, member]) => `${visible(name)} ${json(member)}`)
    .join(" · ") || "whole stream";
