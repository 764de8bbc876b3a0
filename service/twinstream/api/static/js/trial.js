// Rules on trial: what a changed comparison file makes of the same records, beside what the one in force does.

import { el, render, setText, slot } from "./dom.js";
import { NOTHING, count, counted } from "./format.js";
import { href } from "./route.js";

const STATES = {
  running: "A changed comparison file is tried on the same records. It has no say in the gate.",
  waiting: "A changed comparison file is to be tried, and has no sound beginning yet.",
  ended: "The trial of a changed comparison file has ended; these are its last counts.",
};

export function showTrial(root, { status }) {
  const { trial } = status;
  root.hidden = !trial;
  if (!trial) return;
  setText(slot(root, "state"), `${STATES[trial.state]} ${trial.reason}`);
  render(slot(root, "changes"), trial.changes, (changes) => [
    "What it changes: ",
    ...changes.flatMap((key, index) => [index ? ", " : "", el("code", {}, key)]),
    !changes.length && "nothing",
  ]);
  render(slot(root, "table"), rows(status, trial), (shown) => [table(shown)]);
  render(slot(root, "contrast"), [status.name, trial.contrast], () => contrast(status.name, trial.contrast));
}

const sum = ({ reference, candidate }) => `${count(reference)} and ${count(candidate)}`;

/** What both say of the same, as texts. */
function rows(status, trial) {
  const kinds = Object.keys(status.divergences.by_kind).filter(
    (kind) => status.divergences.by_kind[kind] || trial.divergences.by_kind[kind],
  );
  return [
    ["Verdict", status.verdict, trial.verdict ?? NOTHING],
    ["Matched pairs", count(status.matched), count(trial.matched)],
    ["Unmatched, of either side", sum(status.unmatched), sum(trial.unmatched)],
    ["Explained, of either side", ...[status, trial].map(({ accounts }) => explained(accounts))],
    ["Divergences", count(status.divergences.total), count(trial.divergences.total)],
    ...kinds.map((kind) => [kind, count(status.divergences.by_kind[kind]), count(trial.divergences.by_kind[kind])]),
  ];
}

const explained = ({ reference, candidate }) => `${count(reference.explained)} and ${count(candidate.explained)}`;

const table = (shown) =>
  el(
    "table",
    { class: "numbers" },
    el("thead", {}, el("tr", {}, ...["", "In force", "On trial"].map((text) => el("th", { scope: "col" }, text)))),
    el(
      "tbody",
      {},
      ...shown.map(([name, ...values]) =>
        el("tr", {}, el("th", { scope: "row" }, name), ...values.map((text) => el("td", {}, text))),
      ),
    ),
  );

/** What the trial would no longer report, and what it alone reports. */
function contrast(name, found) {
  if (!found) return [];
  const { hidden, explained: known } = found.of_live;
  const news = Object.values(found.new_by_kind).reduce((all, one) => all + one, 0);
  return [
    el("p", {}, `It would hide ${counted(hidden + known, "divergence")}, and alone reports ${count(news)}.`),
    examples("Hidden", found.hidden, ({ id }) => href({ name, id })),
    examples("New", found.new, ({ id }) => `v1/comparisons/${encodeURIComponent(name)}/trial/divergences/${id}`),
  ];
}

function examples(title, found, to) {
  if (!found.length) return null;
  const items = found.map((one) =>
    el(
      "li",
      {},
      el("a", { href: to(one) }, one.kind),
      ` ${one.text}`,
      one.rule && el("small", {}, ` (rule ${one.rule})`),
    ),
  );
  return el("details", {}, el("summary", {}, `${title}: examples`), el("ul", { class: "sentences" }, ...items));
}
