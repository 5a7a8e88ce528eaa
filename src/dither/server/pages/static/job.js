// Waits for an answer. Without this script the link "Look again" does the same.
"use strict";
(() => {
  const place = document.getElementById("job");
  if (!place || place.dataset.state !== "waiting") return;
  const path = location.pathname;
  async function look() {
    try {
      const response = await fetch(`${path}/state`, { redirect: "error" });
      if (response.ok && (await response.json()).state !== "waiting") { location.assign(path); return; }
    } catch (error) { /* the server may be starting again: look once more */ }
    setTimeout(look, 1000);
  }
  look();
})();
