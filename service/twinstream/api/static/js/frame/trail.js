// The way back: all comparisons › one of them › one divergence of it.

import { el, render } from "../base/dom.js";
import { title } from "../differences/words.js";
import { href } from "../state/route.js";

/** `overview` is the address of all comparisons as they were last looked at. */
export function showTrail(root, { name, id, filters }, report, overview) {
  const steps = [
    ["Comparisons", overview],
    name && [name, href({ name, filters: id ? filters : {} })],
    id && [report ? title(report) : "divergence", href({ name, id, filters })],
  ].filter(Boolean);
  root.hidden = steps.length < 2;
  render(root, steps, () => [
    el(
      "ol",
      {},
      ...steps.map(([text, to], index) =>
        el("li", {}, el("a", { href: to, "aria-current": index === steps.length - 1 ? "page" : null }, text)),
      ),
    ),
  ]);
}
