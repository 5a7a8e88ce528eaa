// Shows what a question would cost while it is written. Without this script the button "Show the cost" does the same.
"use strict";
(() => {
  const form = document.getElementById("ask");
  if (!form) return;
  const place = document.getElementById("explanation");
  const button = form.querySelector("[data-explain-button]");
  const choice = document.getElementById("table");
  for (const hint of form.querySelectorAll("[data-script]")) hint.hidden = false;
  button.hidden = true;
  let timer = 0;
  let running = null;
  let shown = "";

  async function explain() {
    const fields = new URLSearchParams(new FormData(form));
    const asked = fields.toString();
    if (asked === shown) return;
    if (running) running.abort();
    const control = new AbortController();
    running = control;
    place.setAttribute("aria-busy", "true");
    try {
      const response = await fetch(form.dataset.explain, { method: "POST", body: fields, signal: control.signal, redirect: "error" });
      if (!response.ok) throw new Error("refused");
      const parsed = new DOMParser().parseFromString(await response.text(), "text/html");
      if (running !== control) return;
      place.replaceChildren(...parsed.body.childNodes);
      shown = asked;
    } catch (error) {
      if (control.signal.aborted) return;
      const words = document.createElement("p");
      words.className = "soft";
      words.textContent = "The cost cannot be shown just now. Load the page again to see it.";
      place.replaceChildren(words);
    } finally {
      if (running === control) place.removeAttribute("aria-busy");
    }
  }

  function later(delay) {
    clearTimeout(timer);
    timer = setTimeout(explain, delay);
  }

  shown = new URLSearchParams(new FormData(form)).toString();
  form.addEventListener("input", (event) => {
    const name = event.target.name;
    if (name === "epsilon" || name === "error") {
      const radio = form.querySelector(`input[name="by"][value="${name}"]`);
      if (radio) radio.checked = true;
    }
    later(450);
  });
  form.addEventListener("completed", () => later(150));
  if (choice) {
    choice.addEventListener("change", () => form.requestSubmit(form.querySelector("[data-switch]")));
  }
  // a second click must not send a second question
  let sent = false;
  form.addEventListener("submit", (event) => {
    if (sent) { event.preventDefault(); return; }
    sent = true;
    if (event.submitter && event.submitter.value === "ask") event.submitter.textContent = "Asking…";
  });
  window.addEventListener("pageshow", () => { sent = false; });
})();
