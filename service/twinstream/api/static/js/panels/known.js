// Known differences: what each has explained.

import { el, render, slot } from "../base/dom.js";
import { count } from "../base/format.js";
import { href } from "../state/route.js";

export function showKnown(root, { name, status }) {
  const { explained_by_rule: explained } = status;
  root.hidden = !Object.keys(explained).length;
  render(slot(root, "explained"), explained, () => [
    `Explained: ${Object.entries(explained).map(byRule).join(", ")}. `,
    Object.values(explained).some(Boolean) &&
      el("a", { href: href({ name, filters: { explained: "true" } }) }, "Show examples"),
  ]);
}

const byRule = ([rule, hits]) => `${hits ? count(hits) : "nothing"} by ${rule}`;
