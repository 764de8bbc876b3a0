// Known differences: what each has explained, and which explain far more than before.

import { withCode } from "./deciding.js";
import { el, render, slot } from "./dom.js";
import { count } from "./format.js";
import { href } from "./route.js";

export function showKnown(root, { name, status }) {
  const { explained_by_rule: explained, surges } = status;
  root.hidden = !Object.keys(explained).length;
  slot(root, "lead").hidden = !surges.length;
  render(slot(root, "surges"), surges, () => surges.map(({ text }) => el("li", {}, ...withCode(text))));
  render(slot(root, "explained"), explained, () => [
    `Explained: ${Object.entries(explained).map(byRule).join(", ")}. `,
    Object.values(explained).some(Boolean) &&
      el("a", { href: href({ name, filters: { explained: "true" } }) }, "Show examples"),
  ]);
}

const byRule = ([rule, hits]) => `${hits ? count(hits) : "nothing"} by ${rule}`;
