// Who looks at the page, where tokens are needed, and the way out.

import { get } from "../base/api.js";
import { setText, slot } from "../base/dom.js";

/** Show who is signed in, nothing where nobody has to be; hands back who it is, null where that is not known. */
export async function showSession(root) {
  slot(root, "leave").addEventListener("click", leave);
  try {
    const me = await get("v1/me");
    setText(slot(root, "who"), me.role === "operate" ? me.name : `${me.name}, who may only look`);
    root.hidden = !me.tokens;
    return me;
  } catch {
    return null; // the page shows that the connection is lost; who looks at it does not matter then
  }
}

async function leave() {
  await fetch("logout", { method: "POST", headers: { "Content-Type": "application/json" } });
  location.assign("login");
}
