// Suggests names of tables, columns and functions in the editor. Its words come with the page.
"use strict";
(() => {
  const area = document.getElementById("sql");
  if (!area || !area.dataset.words) return;
  const words = JSON.parse(area.dataset.words);
  const list = document.createElement("ul");
  list.id = "completions";
  list.className = "completions";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Suggestions");
  list.hidden = true;
  area.parentElement.append(list);
  area.setAttribute("aria-autocomplete", "list");
  const told = document.createElement("p");
  told.className = "visually-hidden";
  told.setAttribute("role", "status");
  area.parentElement.append(told);
  let matches = [];
  let selected = 0;

  function wordBefore() {
    const before = area.value.slice(0, area.selectionStart);
    const match = /"?[\p{L}_][\p{L}\p{N}_]*$/u.exec(before);
    return match ? match[0] : "";
  }

  function quoted(text) {
    // inside a text literal nothing is suggested
    return (text.match(/'/g) || []).length % 2 === 1;
  }

  function caret() {
    // where the cursor is, measured with a copy of the text
    const style = getComputedStyle(area);
    const copy = document.createElement("div");
    for (const name of ["font", "padding", "border", "width", "letterSpacing", "tabSize", "lineHeight", "boxSizing"]) copy.style[name] = style[name];
    copy.style.position = "absolute";
    copy.style.visibility = "hidden";
    copy.style.whiteSpace = "pre-wrap";
    copy.style.overflowWrap = "break-word";
    copy.textContent = area.value.slice(0, area.selectionStart);
    const mark = document.createElement("span");
    mark.textContent = "|";
    copy.append(mark);
    area.parentElement.append(copy);
    const result = { left: mark.offsetLeft, top: mark.offsetTop + mark.offsetHeight - area.scrollTop };
    copy.remove();
    return result;
  }

  function close() {
    list.hidden = true;
    matches = [];
    area.removeAttribute("aria-activedescendant");
    area.removeAttribute("aria-controls");
  }

  function choose(index) {
    selected = (index + matches.length) % matches.length;
    [...list.children].forEach((item, place) => item.setAttribute("aria-selected", String(place === selected)));
    const item = list.children[selected];
    area.setAttribute("aria-activedescendant", item.id);
    item.scrollIntoView({ block: "nearest" });
    told.textContent = `${matches[selected][0]}, ${matches[selected][1]}, ${selected + 1} of ${matches.length}`;
  }

  function open() {
    const typed = wordBefore().replace(/^"/, "").toLowerCase();
    const before = area.value.slice(0, area.selectionStart);
    if (!typed || quoted(before)) return close();
    const plain = (text) => text.replace(/^"/, "").toLowerCase();
    matches = words.filter(([text]) => plain(text).startsWith(typed) && plain(text) !== typed).slice(0, 8);
    if (!matches.length) return close();
    list.replaceChildren(...matches.map(([text, kind], place) => {
      const item = document.createElement("li");
      item.id = `completion-${place}`;
      item.setAttribute("role", "option");
      const name = document.createElement("span");
      name.textContent = text;
      const about = document.createElement("span");
      about.className = "kind";
      about.textContent = kind;
      item.append(name, about);
      item.addEventListener("mousedown", (event) => { event.preventDefault(); choose(place); take(); });
      return item;
    }));
    list.hidden = false;
    area.setAttribute("aria-controls", list.id);
    const at = caret();
    list.style.top = `${Math.min(at.top + 4, area.offsetHeight)}px`;
    list.style.left = `${Math.max(0, Math.min(at.left, area.offsetWidth - list.offsetWidth))}px`;
    choose(0);
  }

  function take() {
    const text = matches[selected][0];
    const end = area.selectionStart;
    const start = end - wordBefore().length;
    area.setRangeText(text, start, end, "end");
    close();
    area.dispatchEvent(new Event("completed", { bubbles: true }));
  }

  area.addEventListener("input", open);
  area.addEventListener("blur", close);
  window.addEventListener("resize", close);
  area.addEventListener("click", close);
  area.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); choose(selected + (event.key === "ArrowDown" ? 1 : -1)); }
    else if (event.key === "Tab" && !event.shiftKey) { event.preventDefault(); take(); }
    else if (event.key === "Escape") { event.preventDefault(); close(); }
  });
})();
