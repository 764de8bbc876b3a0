// Rules on trial: what a changed comparison file would hide of a comparison, and what it alone reports.

import { el, render, slot } from "../base/dom.js";
import { count, counted } from "../base/format.js";
import { href } from "../state/route.js";

export function showTrial(root, { name, status, trial }) {
  root.hidden = !trial && !status.trial_of;
  render(slot(root, "contrast"), [name, status.trial_of, trial], () =>
    status.trial_of ? [of(status.trial_of)] : trial ? contrast(name, trial) : [],
  );
}

const link = (name) => el("a", { href: href({ name }) }, name);
const of = (name) =>
  el("p", {}, "Changed rules, tried beside ", link(name), ". They have no gate and no alert.");

function contrast(name, trial) {
  const { hidden, alone, changes } = trial;
  const why = [...hidden.why, ...alone.why].map((reason) => el("li", {}, reason));
  return [
    el("p", {}, link(trial.name), ` tries a changed comparison file: ${trial.verdict}. ${trial.reason}`),
    el("p", { class: "quiet" }, `What it changes: ${changes.join(", ") || "nothing"}`),
    el("p", {}, `It hides ${told(hidden)}. It alone reports ${told(alone)}.`),
    why.length && el("ul", { class: "sentences quiet" }, ...why),
    examples("Hidden", name, hidden.examples),
    examples("New", trial.name, alone.examples),
  ];
}

/** How many, and of how many that cannot be told. */
function told({ count: found, open, unknown }) {
  const untold = [open && `${count(open)} open`, unknown && `${count(unknown)} unknown`].filter(Boolean);
  return counted(found, "divergence") + (untold.length ? ` (${untold.join(", ")})` : "");
}

function examples(title, name, found) {
  if (!found.length) return null;
  const items = found.map(({ id, kind, text, rule }) =>
    el("li", {}, el("a", { href: href({ name, id }) }, kind), ` ${text}`, rule && el("small", {}, ` (rule ${rule})`)),
  );
  return el("details", {}, el("summary", {}, `${title}: examples`), el("ul", { class: "sentences" }, ...items));
}
