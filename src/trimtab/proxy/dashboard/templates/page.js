// What the pages do besides showing: they refresh their live parts, so that nothing that is being
// typed, selected or read is lost; they copy texts; and they can be used by keys.
"use strict";
(() => {
  const gone = document.getElementById("gone");
  const parts = (page) => [...page.querySelectorAll("[data-part]")];
  const names = (page) => parts(page).map((part) => part.dataset.part).join();
  const typing = () => document.activeElement && document.activeElement.matches("input");

  function exchange(page) {
    if (names(page) !== names(document)) {
      if (!typing()) location.reload();
      return;
    }
    const fresh = parts(page);
    parts(document).forEach((part, index) => {
      if (part.innerHTML === fresh[index].innerHTML) return;
      if (part.contains(document.activeElement)) return;
      const open = [...part.querySelectorAll("details")];
      fresh[index].querySelectorAll("details").forEach((one) => {
        const was = open.find((each) => each.dataset.name === one.dataset.name);
        if (was) one.open = was.open;
      });
      if (part.innerHTML === fresh[index].innerHTML) return;
      const places = [...part.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
      part.replaceWith(fresh[index]);
      fresh[index].querySelectorAll(".scroll").forEach((one, n) => { one.scrollLeft = places[n] || 0; });
      ready(fresh[index]);
    });
  }

  async function refresh() {
    const selection = document.getSelection();
    if (document.hidden || (selection && !selection.isCollapsed)) return;
    try {
      const answer = await fetch(location.href, { cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      exchange(new DOMParser().parseFromString(await answer.text(), "text/html"));
      gone.hidden = true;
    } catch {
      gone.hidden = false;
    }
  }

  // Buttons that need a script are hidden until it runs.
  function ready(part) {
    part.querySelectorAll(".copy").forEach((button) => { button.hidden = false; });
  }

  async function copy(button) {
    const source = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch { // not a secure context: the text is selected, and the browser copies it
      document.getSelection().selectAllChildren(source);
      button.textContent = document.execCommand("copy") ? "Copied" : "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  }

  function step(by) {
    const rows = [...document.querySelectorAll("a[data-row]")].filter((row) => row.offsetParent);
    const at = rows.indexOf(document.activeElement);
    const next = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by];
    if (next) next.focus();
  }

  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      const up = [...document.querySelectorAll(".trail a")].pop();
      if (document.activeElement !== document.body) document.activeElement.blur();
      else if (up) location.href = up.href;
      return;
    }
    if (typing()) return;
    const search = document.querySelector("input[type=search]");
    if (event.key === "/" && search) {
      event.preventDefault();
      search.focus();
    } else if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
  }

  document.addEventListener("keydown", key);
  document.addEventListener("click", (event) => {
    const button = event.target.closest(".copy");
    if (button) copy(button);
  });
  ready(document);
  if (document.body.dataset.live) setInterval(refresh, Number(document.body.dataset.live) * 1000);
})();
