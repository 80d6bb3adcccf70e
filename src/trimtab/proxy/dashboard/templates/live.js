// Loads the page again every five seconds and puts in its live parts, so that nothing that is being
// typed, selected or read is lost.
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
  setInterval(refresh, Number(document.body.dataset.live) * 1000);
})();
