// Search, theme and copy buttons of the documents. Loads nothing but the index of this site, and that only when it is needed.
"use strict";

const root = document.documentElement;
const up = root.dataset.up;
const input = document.getElementById("search");
const found = document.getElementById("found");

const stored = (() => { try { return localStorage.getItem("polis-docs-theme"); } catch { return null; } })();
if (stored) root.dataset.theme = stored;
document.getElementById("theme").addEventListener("click", () => {
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  try { localStorage.setItem("polis-docs-theme", root.dataset.theme); } catch { /* it lasts for this page */ }
});

for (const pre of document.querySelectorAll("pre")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = root.dataset.copy;
  button.addEventListener("click", () => navigator.clipboard?.writeText(pre.querySelector("code").textContent));
  pre.append(button);
}

const menu = document.querySelector(".menu");
if (matchMedia("(max-width: 48rem)").matches) menu.open = false;
else document.querySelector(".menu [aria-current]")?.scrollIntoView({ block: "nearest" });

let loading;
function index() {
  loading ??= new Promise((done) => {
    const script = document.createElement("script");
    script.src = `${up}search-${root.lang}.js`;
    script.onload = () => done(window.polisIndex);
    script.onerror = () => done([]);
    document.head.append(script);
  });
  return loading;
}

// A word in a heading counts more than one in a title or a text; all words must be there.
function score([, , title, heading, text], words) {
  let sum = 0;
  for (const word of words) {
    const at = [heading, title, text].findIndex((part) => part.toLowerCase().includes(word));
    if (at < 0) return 0;
    sum += [9, 4, 1][at];
  }
  return sum;
}

async function search() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  found.hidden = words.length === 0;
  if (found.hidden) return;
  const entries = (await index()).map((entry) => [score(entry, words), entry]).filter(([points]) => points > 0);
  entries.sort((a, b) => b[0] - a[0]);
  found.replaceChildren(...entries.slice(0, 20).map(([, [address, anchor, title, heading, text]]) => {
    const link = document.createElement("a");
    link.href = `${up}${address}#${anchor}`;
    const name = document.createElement("b");
    name.textContent = heading === title ? title : `${title} › ${heading}`;
    const excerpt = document.createElement("span");
    const at = Math.max(0, text.toLowerCase().indexOf(words[0]) - 60);
    excerpt.textContent = text.slice(at, at + 200);
    link.append(name, excerpt);
    link.addEventListener("click", () => { found.hidden = true; });
    return link;
  }));
  if (!entries.length) found.textContent = "–";
}

input.addEventListener("input", search);
addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== input) {
    event.preventDefault();
    input.focus();
  }
  if (event.key === "Escape") found.hidden = true;
  if (event.key === "Enter" && document.activeElement === input) found.querySelector("a")?.click();
});
