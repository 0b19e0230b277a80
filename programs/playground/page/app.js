import { canvas, colour, Overload } from "./overload.js";

const $ = (id) => document.getElementById(id);
const sliders = ["rate", "users", "limit", "burst"];
const units = { rate: " /s", users: "", limit: " /s", burst: "" };
const figures = [["atOnce", "at once", "started when they came"], ["delayed", "delayed", "admitted to start later"],
  ["denied", "denied", "denied, retries included"], ["share", "denied %", "share of what was asked"],
  ["tenth", "in 0.1 s", "largest burst: most starts within 100 ms"], ["second", "in 1 s", "most starts within a second"],
  ["inFlight", "in flight", "most in flight at once, those who wait included"]];
const calm = matchMedia("(prefers-reduced-motion: reduce)");

let hello, source, overload, lanes = [], offered = [], touched = -Infinity, frames = 0;

// element makes one, with text that is never taken for markup.
function element(tag, text, attributes = {}) {
  const e = document.createElement(tag);
  if (text) e.textContent = text;
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  return e;
}

// radios fills a box with one choice of several.
export function radios(box, name, options, chosen) {
  box.replaceChildren(...options.map((o) => {
    const label = element("label"), input = element("input", "", { type: "radio", name, value: o.name });
    input.addEventListener("change", () => chosen(o.name));
    label.append(input, o.title);
    return label;
  }));
}

async function post(path, body) {
  const response = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  if (!response.ok) say(await response.text(), true);
}

function say(text, bad = false) {
  $("status").textContent = text;
  $("status").classList.toggle("bad", bad);
}

// begin builds what does not change, once. A new connection starts the charts anew.
function begin(h) {
  offered = [];
  if (hello) {
    lanes.forEach((l) => { l.columns = []; });
    overload.clear();
    return;
  }
  hello = h;
  radios($("loads"), "load", h.loads, (name) => { touched = -Infinity; post("settings", { load: name }); });
  for (const s of sliders) $(s).max = h.bounds[s];
  lanes = h.algorithms.map(lane);
  $("grid").replaceChildren(...lanes.map((l) => l.box));
  $("choices").append(...lanes.map(choice));
  show();
  overload = new Overload(h, post, radios);
}

// lane is one algorithm's part of the page.
function lane(a) {
  const box = element("article", "", { class: "lane" }), strip = element("canvas", "", { role: "img" });
  strip.setAttribute("aria-label", `${a.title}: started and denied over the last 24 seconds`);
  const note = element("p", a.about), list = element("dl"), values = {};
  for (const [key, label, title] of figures) {
    const pair = element("div", "", { title });
    values[key] = element("dd", "0");
    pair.append(element("dt", label), values[key]);
    list.append(pair);
  }
  box.append(element("h3", a.title), note, strip, list);
  return { ...a, box, note, strip, values, columns: [] };
}

// choice is the box that shows or hides a lane. What is shown stands in the
// address, to be kept and passed on.
function choice(l) {
  const label = element("label"), input = element("input", "", { type: "checkbox" });
  l.input = input;
  input.addEventListener("change", () => {
    const names = lanes.filter((x) => x.input.checked).map((x) => x.name);
    history.replaceState(null, "", names.length === lanes.length ? "#" : "#show=" + names.join(","));
    show();
  });
  label.append(input, " ", l.title);
  return label;
}

function show() {
  const [, names] = location.hash.match(/^#show=([a-z0-9,-]+)$/) || [];
  const chosen = names ? names.split(",") : lanes.map((l) => l.name);
  for (const l of lanes) {
    l.box.hidden = !chosen.includes(l.name);
    l.box.style.display = l.box.hidden ? "none" : "";
    l.input.checked = !l.box.hidden;
  }
}

function keep(list, more, most) {
  list.push(...more);
  list.splice(0, Math.max(list.length - most, 0));
}

function frame(f) {
  say("Running");
  settings(f.settings);
  keep(offered, f.offered || [], hello.columns);
  f.lanes.forEach((look, i) => {
    keep(lanes[i].columns, look.columns, 3 * hello.columns);
    lanes[i].totals = look.totals;
  });
  overload.take(f);
  if (!calm.matches || frames++ % 5 === 0) draw(f.settings);
}

// settings follows the server, but not under the hand of who moves a slider.
function settings(s) {
  if (performance.now() - touched < 800) return;
  for (const name of sliders) {
    $(name).value = s[name];
    $(name + "-value").textContent = s[name] + units[name];
  }
  for (const input of $("loads").querySelectorAll("input")) input.checked = input.value === s.load;
  $("about").textContent = hello.loads.find((l) => l.name === s.load)?.about ?? "";
}

let later;
function moved(event) {
  touched = performance.now();
  $(event.target.id + "-value").textContent = event.target.value + units[event.target.id];
  clearTimeout(later);
  later = setTimeout(() => {
    const load = $("loads").querySelector(":checked")?.value ?? hello.loads[0].name;
    post("settings", { load, ...Object.fromEntries(sliders.map((s) => [s, Number($(s).value)])) });
  }, 150);
}

const root = Math.sqrt;

function draw(s) {
  let up = 2, down = 1;
  for (const l of lanes) {
    for (let i = 0; i < l.columns.length; i += 3) {
      up = Math.max(up, l.columns[i] + l.columns[i + 1]);
      down = Math.max(down, l.columns[i + 2]);
    }
  }
  drawOffered();
  for (const l of lanes) {
    if (l.box.hidden || !l.totals) continue;
    drawStrip(l, root(up), root(down));
    write(l, s);
  }
}

function drawOffered() {
  const { pen, width, height } = canvas($("offered").querySelector("canvas"));
  const most = root(Math.max(2, ...offered)), w = width / hello.columns, first = hello.columns - offered.length;
  pen.fillStyle = colour("--arriving");
  offered.forEach((n, i) => {
    const h = n && Math.max(root(n) / most * height, 1);
    pen.fillRect((first + i) * w, height - h, Math.max(w - .5, 1), h);
  });
}

// drawStrip has what starts above the line, and what is denied below.
function drawStrip(l, up, down) {
  const { pen, width, height } = canvas(l.strip);
  const unit = (height - 1) / (up + down), axis = Math.round(up * unit);
  const w = width / hello.columns, first = hello.columns - l.columns.length / 3;
  const atOnce = colour("--at-once"), delayed = colour("--delayed"), denied = colour("--denied");
  for (let i = 0; i < l.columns.length; i += 3) {
    const x = (first + i / 3) * w, [now, waited, no] = l.columns.slice(i, i + 3);
    const whole = root(now + waited) * unit, part = now + waited ? whole * now / (now + waited) : 0;
    pen.fillStyle = atOnce;
    pen.fillRect(x, axis - part, Math.max(w - .5, 1), part);
    pen.fillStyle = delayed;
    pen.fillRect(x, axis - whole, Math.max(w - .5, 1), whole - part);
    pen.fillStyle = denied;
    pen.fillRect(x, axis + 1, Math.max(w - .5, 1), root(no) * unit);
  }
  pen.fillStyle = colour("--line");
  pen.fillRect(0, axis, width, 1);
}

function write(l, s) {
  const t = l.totals;
  for (const [key] of figures) {
    const value = key === "share" ? (t.asked ? Math.round(100 * t.denied / t.asked) : 0) : t[key];
    l.values[key].textContent = String(value);
  }
  let note = l.about;
  if (s.users > 1) note = `${t.users} of ${s.users} users denied`;
  if (t.retries) note = `${t.retries} retries`;
  l.note.textContent = note;
}

function connect() {
  source = new EventSource("events");
  source.addEventListener("hello", (e) => begin(JSON.parse(e.data)));
  source.addEventListener("frame", (e) => frame(JSON.parse(e.data)));
  source.addEventListener("error", () => say("No connection, trying again", true));
}

function pause() {
  if (source) {
    source.close();
    source = null;
    say("Paused");
  } else {
    connect();
  }
  $("pause").textContent = source ? "Pause" : "Resume";
}

for (const s of sliders) $(s).addEventListener("input", moved);
$("pause").addEventListener("click", pause);
$("reset").addEventListener("click", () => post("reset", {}));
for (const form of document.forms) form.addEventListener("submit", (e) => e.preventDefault());
addEventListener("hashchange", () => lanes.length && show());
connect();
