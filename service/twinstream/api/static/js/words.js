// The words that the page has for divergences, wherever it names one.

import { visible } from "./format.js";
import { json } from "./record.js";

export const MEANING = {
  missing: "the candidate did not put it out",
  extra: "only the candidate put it out",
  changed: "same thing, other content",
  reordered: "both put it out, in another order",
  duplicate: "the candidate put it out once more",
};

/** A divergence in a few words; one that may still change is never called by its kind alone. */
export const title = ({ kind, provisional }) => (provisional ? `${kind}, provisional` : kind);

/** Where in the order it lies. */
export const scopeText = (scope) =>
  Object.entries(scope)
    .map(([name, member]) => `${visible(name)} ${json(member)}`)
    .join(" · ") || "whole stream";
