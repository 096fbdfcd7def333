"use strict";
(() => {
  const reveal = () => {
    let target = location.hash && document.getElementById(location.hash.slice(1));
    if (!target) return;
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    target.scrollIntoView({ block: "start" });
  };
  addEventListener("hashchange", reveal);
  reveal();

  const box = document.getElementById("filter"), shown = document.getElementById("shown");
  const groups = [...document.querySelectorAll(".group")].map((group) => ({
    group, rows: [...group.querySelectorAll(".row")].map((row) => ({ row, text: row.querySelector("p").textContent.toLowerCase() })),
  }));
  box.closest("p").hidden = false;
  box.addEventListener("input", () => {
    const wanted = box.value.trim().toLowerCase();
    let count = 0;
    for (const { group, rows } of groups) {
      let here = 0;
      for (const { row, text } of rows) {
        const fits = text.includes(wanted);
        row.hidden = !fits;
        here += fits;
      }
      group.hidden = here === 0;
      group.open = wanted !== "" && here > 0;
      count += here;
    }
    shown.value = wanted === "" ? "" : `${count} shown`;
  });

  for (const pre of document.querySelectorAll(".replay")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(pre.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(pre);
        button.textContent = "Selected";
      }
    });
    pre.after(button);
  }
})();
