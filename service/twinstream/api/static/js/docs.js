// Shows the description of the API with the viewer that the service ships: nothing is fetched from elsewhere. What the
// viewer does not do for everybody is mended here and in docs.css.

const root = document.getElementById("docs");

const dark = matchMedia("(prefers-color-scheme: dark)");
const showTheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", showTheme);
showTheme();

/** Its headings leave a level out, and no key scrolls its examples. */
function mend() {
  for (const level of [3, 4, 5]) root.querySelectorAll(`h${level}`).forEach((one) => (one.ariaLevel = `${level - 1}`));
  root.querySelectorAll(".body-param__example, .microlight").forEach((one) => (one.tabIndex = 0));
}
new MutationObserver(mend).observe(root, { childList: true, subtree: true });

/** It puts a link into a button; the button leads to the same. */
const plainNames = ({ React }) => ({
  components: { DeepLink: ({ text }) => React.createElement("span", null, text) },
});

SwaggerUIBundle({
  url: "openapi.json",
  domNode: root,
  deepLinking: true,
  validatorUrl: null,
  defaultModelsExpandDepth: -1, // the shapes are shown where they are used
  plugins: [plainNames],
});
