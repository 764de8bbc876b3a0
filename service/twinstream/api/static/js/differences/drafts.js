// Drafts of a group: changes of the comparison file that would hide it, each with what it would hide and how to try it.

import { copyable } from "../base/copy.js";
import { el, render, slot } from "../base/dom.js";
import { visible } from "../base/format.js";
import { withCode } from "../base/sentence.js";

/** The fold of a group in which its drafts stand, by the counts of when it was opened. */
export const draftsFold = () =>
  el("details", { "data-slot": "drafts" }, el("summary", {}, "Draft a rule"), el("div", { "data-slot": "draft-list" }));

/** `ask.drafts(comparison, id)`: somebody wants the drafts of a group; a provisional one has none. */
export function showDrafts(fold, group, comparison, { ask, provisional }) {
  fold.hidden = group.kind === "others" || provisional;
  fold.ontoggle = () => fold.open && ask.drafts(comparison, group.id);
  if (!fold.open) return;
  render(slot(fold, "draft-list"), comparison.drafts.get(group.id), (told) => content(told ?? {}));
}

function content({ found, problem }) {
  if (problem) return [el("p", { class: "quiet" }, problem)];
  if (!found) return [el("p", { class: "quiet" }, "Fetching …")];
  if (!found.items.length) return [el("p", { class: "quiet" }, "No rule of a comparison file hides this group alone.")];
  return [
    el("p", { class: "quiet" }, "A rule hides a difference for good. Add one only if the difference is wanted."),
    ...found.items.map(draft),
  ];
}

const draft = ({ title, hides, yaml, command }) =>
  el(
    "section",
    { class: "draft" },
    el("h4", {}, ...withCode(visible(title))),
    el("p", {}, ...withCode(visible(hides))),
    copyable(yaml, "this part of the comparison file"),
    command && el("p", { class: "quiet" }, "Try the changed file on these differences:"),
    command && copyable(command, "the command"),
  );
