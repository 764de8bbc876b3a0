// Texts to be taken elsewhere: commands, and parts of comparison files, each with a button that copies it.

import { el } from "./dom.js";

const TOLD_MILLISECONDS = 2000;

/** A block of text with its button. */
export const copyable = (text, what) =>
  el("div", { class: "copyable" }, el("pre", { tabindex: "0" }, text), copyButton(text, what));

/** A button that copies `text`; `what` names that for those who do not see where it stands. */
export function copyButton(text, what) {
  const told = el("span", {}, "Copy");
  const button = el("button", { type: "button", class: "copy" }, told, el("span", { class: "hidden" }, ` ${what}`));
  button.addEventListener("click", async () => {
    told.textContent = (await copied(text, button)) ? "Copied" : "Select it, then copy";
    setTimeout(() => (told.textContent = "Copy"), TOLD_MILLISECONDS);
  });
  return button;
}

/** Whether it is in the clipboard. Without TLS a page has none: then the text is selected, for a person to copy. */
async function copied(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection().selectAllChildren(button.previousElementSibling);
    return false;
  }
}
