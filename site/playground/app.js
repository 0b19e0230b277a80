"use strict";

// The settings stand in the address, to be kept and passed on. What the limiters are asked
// with comes back from them, brought into its range.
const $ = (id) => document.getElementById(id);
const sliders = ["rate", "limit", "burst"];
const units = { rate: "/s", limit: "/s", burst: "" };
let settings = { load: "burst", rate: 30, limit: 20, burst: 12 }, shown;

function fromAddress() {
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
    if (name === "load") settings.load = value;
    else if (sliders.includes(name) && Number.isInteger(Number(value))) settings[name] = Math.max(-1e6, Math.min(Number(value), 1e6));
  }
}

function say(text, bad = false) {
  $("status").textContent = text;
  $("status").classList.toggle("bad", bad);
}

function play() {
  const page = JSON.parse(sluicePlay(JSON.stringify(settings)));
  if (page.error) return say(page.error, true);
  shown = page;
  settings = page.settings;
  history.replaceState(null, "", "#" + new URLSearchParams(settings));
  for (const input of document.querySelectorAll("[name=load]")) input.checked = input.value === settings.load;
  for (const name of sliders) {
    $(name).value = settings[name];
    $(name + "-value").textContent = settings[name] + units[name];
  }
  const offered = page.offered.reduce((a, b) => a + b, 0);
  say(`${offered} requests in 12 seconds`);
  if (!$("lanes").children.length) $("lanes").append(...page.lanes.map(article));
  draw();
}

function element(tag, text, attributes = {}) {
  const e = document.createElement(tag);
  e.textContent = text;
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  return e;
}

function article(lane, i) {
  const box = element("article", "", { id: lane.name });
  box.append(element("h3", lane.title), element("p", lane.about), element("canvas", "", { role: "img" }), element("p", "", { class: "figures" }),
    copier("Copy as Go", () => shown.lanes[i].go), copier("Copy as YAML", () => shown.lanes[i].yaml), documentation(lane));
  return box;
}

// documentation links to the algorithm's page: its bound, source and options.
function documentation(lane) {
  const [, pkg, name] = lane.go.match(/(\w+)\.([A-Z]\w+)/);
  const path = pkg === "algo" ? pkg : "algo/" + pkg;
  return element("a", name, { href: `https://pkg.go.dev/github.com/sluice-go/sluice/${path}#${name}` });
}

function copier(label, text) {
  const button = element("button", label, { type: "button" });
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      prompt(label, text()); // the browser does not let a page write to the clipboard
    }
    setTimeout(() => { button.textContent = label; }, 1500);
  });
  return button;
}

function draw() {
  const up = Math.max(1, ...shown.lanes.flatMap((l) => l.atOnce.map((n, i) => n + l.delayed[i])));
  const down = Math.max(1, ...shown.lanes.flatMap((l) => l.denied));
  shown.lanes.forEach((lane, i) => {
    const box = $("lanes").children[i], [now, later, no] = lane.totals;
    box.querySelector(".figures").textContent = `${now} at once, ${later} delayed, ${no} denied; at most ${lane.densest} within a second`;
    const picture = box.querySelector("canvas");
    picture.setAttribute("aria-label", `${lane.title}: ${now} requests start at once, ${later} after a delay, ${no} are denied`);
    strip(picture, lane, up, down);
  });
}

// strip has what starts above the line, and what is denied below; heights are square roots.
function strip(picture, lane, up, down) {
  const scale = devicePixelRatio || 1, width = picture.clientWidth, height = picture.clientHeight;
  picture.width = width * scale;
  picture.height = height * scale;
  const pen = picture.getContext("2d"), style = getComputedStyle(document.documentElement);
  pen.scale(scale, scale);
  const unit = (height - 1) / (Math.sqrt(up) + Math.sqrt(down)), axis = Math.round(Math.sqrt(up) * unit), w = width / lane.atOnce.length;
  const bar = (i, y, h, colour) => {
    pen.fillStyle = style.getPropertyValue(colour);
    if (h > 0) pen.fillRect(i * w, y, Math.max(w - .5, 1), Math.max(h, 1));
  };
  lane.atOnce.forEach((n, i) => {
    const both = n + lane.delayed[i], whole = Math.sqrt(both) * unit, part = both ? whole * n / both : 0;
    bar(i, axis - part, part, "--at-once");
    bar(i, axis - whole, whole - part, "--delayed");
    bar(i, axis + 1, Math.sqrt(lane.denied[i]) * unit, "--denied");
  });
  pen.fillStyle = style.getPropertyValue("--soft");
  pen.fillRect(0, axis, width, 1);
}

$("controls").addEventListener("submit", (e) => e.preventDefault());
$("controls").addEventListener("input", (e) => {
  if (e.target.name === "load") settings.load = e.target.value;
  else settings[e.target.id] = Number(e.target.value);
  if (shown) play();
});
addEventListener("hashchange", () => { fromAddress(); if (shown) play(); });
addEventListener("resize", () => shown && draw());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown && draw());

fromAddress();
globalThis.sluiceReady = () => setTimeout(play);
const go = new Go();
WebAssembly.instantiateStreaming(fetch("playground.wasm"), go.importObject)
  .then(({ instance }) => go.run(instance))
  .catch((err) => say("The limiters could not be loaded: " + err.message, true));
