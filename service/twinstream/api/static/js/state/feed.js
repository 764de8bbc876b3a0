// The live connection: server-sent events, and the knowledge of whether they still come. A broken connection
// often shows as silence only, so silence counts as a break; so does that of a stream that a proxy keeps back.

const SILENCE_MILLISECONDS = 12_000; // the service says something at least every five seconds
const RETRY_MILLISECONDS = 2_000;
const EVENTS = ["status", "gate", "sample", "phase", "divergence", "withdrawn", "heartbeat"];

/**
 * Keep a connection to `url`. Calls `on.event(name, text)` for each event, `on.live()` whenever the stream
 * has (again) begun, `on.lost()` once when it breaks or does not begin, `on.again()` before each further try.
 */
export function follow(url, on) {
  let source = null;
  let told = ""; // "live" or "lost", whichever was told last
  let heard = 0;

  function open() {
    heard = performance.now();
    source = new EventSource(url);
    source.addEventListener("error", broken);
    for (const name of EVENTS) {
      source.addEventListener(name, (message) => {
        heard = performance.now();
        if (told !== "live") {
          told = "live";
          on.live();
        }
        on.event(name, message.data);
      });
    }
  }

  function broken() {
    source.close(); // the browser's own retry gives up on an error status; ours does not
    if (told !== "lost") on.lost();
    told = "lost";
    heard = Infinity; // until the next try
    setTimeout(() => {
      on.again();
      open();
    }, RETRY_MILLISECONDS);
  }

  function watch() {
    if (performance.now() - heard > SILENCE_MILLISECONDS) broken();
  }

  open();
  setInterval(watch, 1000);
}
