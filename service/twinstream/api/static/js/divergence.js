// One divergence: what it is in words and as a picture, both records side by side, the events that prove it, and
// how to read them oneself.

import { copyable } from "./base/copy.js";
import { el, fill, render, setAttribute, slot } from "./base/dom.js";
import { clock, visible } from "./base/format.js";
import { commandsFor, recordPlace } from "./base/kafka.js";
import { withCode } from "./base/sentence.js";
import { picture } from "./differences/picture.js";
import { json, recordTable } from "./differences/record.js";
import { flags } from "./differences/rows.js";
import { MEANING, scopeText, title } from "./differences/words.js";
import { href } from "./state/route.js";

/** `found`: the report; null while it is fetched, or once it no longer stands, which `gone` says. */
export function showDivergence(root, { comparison, report, gone, route, now, service }) {
  slot(root, "gone").hidden = !gone;
  slot(root, "body").hidden = !report;
  fill(root, { kind: report ? title(report) : "Divergence", gone: gone ?? "" });
  setAttribute(root, "data-provisional", report?.provisional ? "true" : "false");
  showNeighbours(slot(root, "neighbours"), comparison, route);
  if (!report) return fill(root, { meaning: "", scope: "", seen: "" });
  fill(root, {
    meaning: MEANING[report.kind],
    scope: scopeText(report.scope),
    seen: `first seen ${clock(report.first_seen, now)}`,
    id: report.id,
  });
  render(slot(root, "text"), report.text, (text) => withCode(visible(text)));
  render(slot(root, "flags"), report, () => [flags(report)]);
  render(slot(root, "picture"), report, () => [picture(report)]);
  const shown = { report, service };
  render(slot(root, "records"), shown, () => [recordTable(report, service)]);
  slot(root, "witness").hidden = !report.witness.length;
  render(slot(root, "witness"), shown, () => witness(report, service));
  render(slot(root, "commands"), shown, () => commandsFor(report, service).map((text) => copyable(text, "the command")));
}

function showNeighbours(root, comparison, { name, id, filters }) {
  const settled = comparison?.settled.around(id) ?? {};
  const around = "before" in settled ? settled : (comparison?.open.around(id) ?? {});
  render(root, { around, name, filters }, () =>
    [
      ["before", "prev", "← Newer"],
      ["after", "next", "Older →"],
    ].map(
      ([which, rel, text]) =>
        around[which] && el("a", { rel, class: "chip", href: href({ name, id: around[which], filters }) }, text),
    ),
  );
}

function witness(report, service) {
  if (!report.witness.length) return [];
  const one = report.witness.length === 1;
  const items = report.witness.map(({ side, position, value }) =>
    el(
      "li",
      {},
      el("span", { class: side }, side),
      " ",
      recordPlace(position, service),
      el("code", {}, json(value)),
    ),
  );
  return [
    el("h2", {}, one ? "The event that proves it" : `The ${report.witness.length} events that prove it`),
    el("ol", { class: "witness" }, ...items),
  ];
}
