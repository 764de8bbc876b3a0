// Sentences of the service, in which code stands between backquotes. A command can be copied.

import { copyButton } from "./copy.js";
import { el } from "./dom.js";

/** The parts of a sentence. */
export const withCode = (text) =>
  text.split("`").flatMap((part, index) => (index % 2 ? code(part) : [part]));

const code = (text) => (text.startsWith("twinstream ") ? [el("code", {}, text), copyButton(text, text)] : [el("code", {}, text)]);
