"use strict";

// The settings stand in the address, to be kept and passed on. The server and its limits are
// asked with them, and bring them into their range.
const $ = (id) => document.getElementById(id);
const sliders = { load: " x the capacity", fixed: " in flight" };
let settings = { handler: "5ms", load: 3, fixed: 20 }, shown;

function fromAddress() {
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
    if (name === "handler") settings.handler = value;
    else if (name in sliders && Number.isFinite(Number(value))) settings[name] = Math.round(Math.max(0, Math.min(Number(value), 1000)) * 2) / 2;
  }
  settings.fixed = Math.round(settings.fixed);
}

function say(text, bad = false) {
  $("status").textContent = text;
  $("status").classList.toggle("bad", bad);
}

function play() {
  const page = JSON.parse(sluiceOverload(JSON.stringify(settings)));
  if (page.error) return say(page.error, true);
  shown = page;
  settings = page.settings;
  history.replaceState(null, "", "#" + new URLSearchParams(settings));
  for (const input of document.querySelectorAll("[name=handler]")) input.checked = input.value === settings.handler;
  for (const [name, unit] of Object.entries(sliders)) {
    $(name).value = settings[name];
    $(name + "-value").textContent = settings[name] + unit;
  }
  say(page.about);
  if (!$("lanes").children.length) $("lanes").append(...page.lanes.map(article));
  draw();
}

function element(tag, text, attributes = {}) {
  const e = document.createElement(tag);
  e.textContent = text;
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  return e;
}

function article(lane) {
  const box = element("article", "", { id: lane.name });
  box.append(element("h3", lane.title), element("p", lane.about, { class: "about" }), element("canvas", "", { role: "img" }), element("p", "", { class: "figures" }));
  return box;
}

function draw() {
  shown.lanes.forEach((lane, i) => {
    const box = $("lanes").children[i], picture = box.querySelector("canvas");
    box.querySelector(".about").textContent = lane.about;
    box.querySelector(".figures").textContent = lane.says;
    picture.setAttribute("aria-label", `${lane.title}: ${lane.says}`);
    strip(picture, lane);
  });
}

// strip has the answers in time of each second, and the overload behind them.
function strip(picture, lane) {
  const scale = devicePixelRatio || 1, width = picture.clientWidth, height = picture.clientHeight;
  picture.width = width * scale;
  picture.height = height * scale;
  const pen = picture.getContext("2d"), style = getComputedStyle(document.documentElement);
  pen.scale(scale, scale);
  const w = width / lane.goodput.length, unit = height / 1.3;
  const box = (x, y, across, down, colour) => {
    pen.fillStyle = style.getPropertyValue(colour);
    pen.fillRect(x, y, across, down);
  };
  box(shown.from * w, 0, (shown.to - shown.from) * w, height, "--line");
  lane.goodput.forEach((g, i) => box(i * w, height - Math.min(g, 1.3) * unit, Math.max(w - 1, 1), Math.min(g, 1.3) * unit, "--at-once"));
  box(0, height - unit, width, 1, "--soft");
}

$("controls").addEventListener("submit", (e) => e.preventDefault());
$("controls").addEventListener("input", (e) => {
  if (e.target.name === "handler") settings.handler = e.target.value;
  else settings[e.target.id] = Number(e.target.value);
  if (shown) play();
});
addEventListener("hashchange", () => { fromAddress(); if (shown) play(); });
addEventListener("resize", () => shown && draw());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown && draw());

fromAddress();
globalThis.sluiceReady = () => setTimeout(play);
const go = new Go();
WebAssembly.instantiateStreaming(fetch("overload.wasm"), go.importObject)
  .then(({ instance }) => go.run(instance))
  .catch((err) => say("The limiters could not be loaded: " + err.message, true));
