// The title of the tab, which is read where the page itself is not seen: what is shown, and how it stands.

import { scopeText, title } from "../differences/words.js";
import { glyph, standing } from "../panels/verdict.js";

/** Of the view of `route`; `comparison` and `report` are null where they are not known. */
export function tabTitle({ name, id }, { comparison, report, known, lostSince }) {
  if (!name) return overall(known, lostSince);
  const word = comparison && standing(comparison, lostSince).word;
  if (!id) return word ? `${glyph(word)} ${word} · ${name}` : `${name} · Twinstream`;
  const mark = word ? `${glyph(word)} ` : "";
  const what = report ? `${title(report)} · ${about(report)}` : "divergence";
  return `${mark}${what} · ${name}`;
}

/** What a divergence is about, on one line; where in the order it lies, if the service does not say. */
export const about = ({ title: told, scope }) => told || scopeText(scope);

/** How many of the worst there are; trials call nobody. */
function overall(known, lostSince) {
  const judged = known.filter(({ status }) => !status.trial_of);
  const words = judged.map((comparison) => standing(comparison, lostSince).word);
  const worst = ["DIVERGED", "INCONCLUSIVE", "NOT LIVE"].find((word) => words.includes(word));
  if (!worst) return "Twinstream";
  return `${glyph(worst)} ${words.filter((word) => word === worst).length} ${worst} · Twinstream`;
}
