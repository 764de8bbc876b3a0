// Hands the token to the service, which keeps it in a cookie that no script can read.

const form = document.getElementById("login");
const problem = document.getElementById("problem");
const field = document.getElementById("token");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  problem.hidden = true;
  const told = await send(field.value);
  if (!told) return location.assign(`./${location.hash}`); // where the link led to
  problem.textContent = told;
  problem.hidden = false;
  field.select();
});

/** What is wrong; empty when nothing is. */
async function send(token) {
  try {
    const response = await fetch("login", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token }),
    });
    return response.ok ? "" : (await response.json()).detail;
  } catch {
    return "The service cannot be reached.";
  }
}
