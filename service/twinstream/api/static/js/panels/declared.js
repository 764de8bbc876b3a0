// The comparison file as its owner wrote it, and the versions that are at work.

import { copyable } from "../base/copy.js";
import { el, render, slot } from "../base/dom.js";
import { NOTHING } from "../base/format.js";

/** `ask.file(comparison)`: somebody wants to read the file. */
export function showDeclared(root, comparison, { ask, service }) {
  const { spec_digest: digest, reference, candidate } = comparison.status;
  const facts = {
    Reference: version(reference),
    Candidate: version(candidate),
    Twinstream: service?.version ?? NOTHING,
    "Digest of the file": digest,
  };
  render(slot(root, "versions"), facts, () =>
    Object.entries(facts).map(([name, text]) => el("div", {}, el("dt", {}, name), el("dd", {}, text))),
  );
  const fold = root.querySelector("details");
  fold.ontoggle = () => ask.again();
  if (!fold.open) return;
  if (comparison.file?.digest !== digest) ask.file(comparison);
  render(slot(root, "file"), comparison.file, ({ found, problem }) => [text(found, problem)]);
}

const version = ({ topic, version: name }) => `${topic}, version ${name ?? "not given"}`;

function text(found, problem) {
  if (problem) return el("p", { class: "quiet" }, problem);
  return found ? copyable(found, "the comparison file") : el("p", { class: "quiet" }, "Fetching …");
}
