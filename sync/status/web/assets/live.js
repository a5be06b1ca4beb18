// Keeps a page up to date. The page is complete without it: this only fetches the
// same page again when something has happened, and puts what differs in its place.
(() => {
  "use strict";
  const source = document.currentScript.dataset.events;
  const every = 30_000; // ages are worded on the server
  const pause = 1_000; // between two fetches, however much happens
  let wanted = false;
  let fetching = false;
  let last = 0;

  const offline = (is) => { document.getElementById("offline").hidden = !is; };

  // busy reports whether a person is at something that must not be pulled away.
  const busy = (part) => {
    const selection = document.getSelection();
    return selection && !selection.isCollapsed && part.contains(selection.anchorNode);
  };

  const addCopying = (root) => {
    if (!navigator.clipboard) return;
    for (const command of root.querySelectorAll("[data-copy]")) {
      if (command.querySelector("button")) continue;
      const text = command.textContent;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = "Copy";
      button.setAttribute("aria-label", "Copy the command");
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(text);
        button.textContent = "Copied";
        say("Copied");
      });
      command.prepend(button);
    }
  };

  const say = (text) => { document.getElementById("announce").textContent = text; };

  // place puts a new part where the old one is, and keeps what a person has opened
  // and where the focus is.
  const place = (part, fresh) => {
    for (const details of part.querySelectorAll("details[id]")) {
      const same = fresh.querySelector("#" + CSS.escape(details.id));
      if (same) same.open = details.open;
    }
    const focus = part.contains(document.activeElement) ? focusable(part).indexOf(document.activeElement) : null;
    if (part.hasAttribute("data-announce")) {
      const before = part.textContent.replace(/\s+/g, " ").trim();
      const after = fresh.textContent.replace(/\s+/g, " ").trim();
      if (before !== after) say(after);
    }
    addCopying(fresh);
    part.replaceWith(fresh);
    if (focus !== null) focusable(fresh)[focus]?.focus({ preventScroll: true });
  };

  const focusable = (root) => [...root.querySelectorAll("a[href], button, summary, input, select")];

  const refresh = async () => {
    if (fetching) return;
    fetching = true;
    wanted = false;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
      if (!answer.ok && answer.status !== 404) throw new Error(answer.statusText);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of document.querySelectorAll("[data-live]")) {
        const same = fresh.getElementById(part.id);
        if (same && !busy(part) && plain(same) !== plain(part)) place(part, document.adoptNode(same));
      }
      offline(false);
    } catch {
      offline(true);
    } finally {
      last = Date.now();
      fetching = false;
      if (wanted) soon();
    }
  };

  // plain is a part as the server made it.
  const plain = (part) => {
    const copy = part.cloneNode(true);
    for (const button of copy.querySelectorAll("[data-copy] > button")) button.remove();
    for (const details of copy.querySelectorAll("details")) details.open = false;
    return copy.innerHTML;
  };

  let timer = 0;
  const soon = () => {
    wanted = true;
    if (timer || fetching) return;
    timer = setTimeout(() => { timer = 0; refresh(); }, Math.max(100, last + pause - Date.now()));
  };

  addCopying(document);
  const events = new EventSource(source);
  for (const type of ["stage", "sync", "drift", "unlisted", "list", "lease", "stale"]) events.addEventListener(type, soon);
  let lost = false;
  events.addEventListener("error", () => { lost = true; offline(true); });
  events.addEventListener("open", () => { offline(false); if (lost) soon(); lost = false; });
  setInterval(() => { if (document.visibilityState === "visible") soon(); }, every);
  document.addEventListener("visibilitychange", () => { if (document.visibilityState === "visible") soon(); });
})();
