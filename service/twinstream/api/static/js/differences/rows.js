// Divergences as rows: the answer first, then where and when. A row leads to its records.

import { el, keyed, render } from "../base/dom.js";
import { duration, visible } from "../base/format.js";
import { recordPlace } from "../base/kafka.js";
import { withCode } from "../base/sentence.js";
import { when } from "../base/times.js";
import { scopePair } from "../state/filters.js";
import { added, href } from "../state/route.js";
import { json } from "./record.js";
import { MEANING, answer, scopeText, title } from "./words.js";

/** A row is built anew only when its report changed, so that nothing is lost under a pointer or a finger. */
export function showRows(list, reports, { route, service }) {
  keyed(
    list,
    reports,
    ({ id }) => id,
    () => el("li", { class: "row" }),
    (row, report) => {
      row.dataset.provisional = report.provisional;
      render(row, { report, route, service }, () => content(report, { route, service }));
    },
  );
}

const content = (report, { route, service }) => [
  el(
    "div",
    { class: "line" },
    el(
      "h3",
      {},
      el(
        "a",
        { href: href({ name: route.name, id: report.id, filters: route.filters }) },
        el("span", { class: "kind" }, title(report)),
        " ",
        el("span", { class: "answer" }, ...withCode(answer(report))),
      ),
    ),
    when(report.first_seen),
  ),
  flags({ ...report, provisional: false }), // the list says that
  el("p", { class: "places" }, MEANING[report.kind], ...scopes(report, route), ...places(report, service)),
];

/** Each part of the scope as a link to all that differs in it. */
function scopes(report, route) {
  const parts = Object.entries(report.scope);
  if (!parts.length) return [el("span", {}, scopeText(report.scope))];
  return parts.map(([field, value]) =>
    el(
      "a",
      {
        class: "scope",
        href: href({ name: route.name, filters: added(route.filters, "scope", scopePair(field, value)) }),
      },
      el("span", { class: "hidden" }, "Only "),
      `${visible(field)} ${json(value)}`,
    ),
  );
}

const places = ({ positions }, service) =>
  ["reference", "candidate"]
    .filter((side) => positions[side])
    .map((side) => recordPlace(positions[side], service, `place ${side}`));

/** What a divergence is besides its kind: marks that say how far it counts. */
export function flags(report) {
  const texts = [
    report.provisional && "Provisional: its scope is still open, or it is not saved yet. Its kind may change.",
    report.late !== null && `Late: its partner came after all, ${duration(report.late)} later.`,
    report.tainted && "Tainted: found after a stretch that was not checked, so the verdict leaves it out.",
    report.explained && `Explained by the known difference ${report.explained}.`,
  ].filter(Boolean);
  return texts.length ? el("ul", { class: "flags" }, ...texts.map((text) => el("li", {}, text))) : null;
}
