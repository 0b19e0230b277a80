// The panels of adaptive limiters and of stores on Redis.
import { $, el, number, policyName, say, sum, time } from "./dom.js";
import { Chart, span } from "./chart.js";
import { sources } from "./tables.js";

const panels = new Map();

// panel returns the one of that name, made by build if it is new.
function panel(key, build) {
  if (!panels.has(key)) {
    panels.set(key, build());
    $("panels").append(panels.get(key).node);
  }
  return panels.get(key);
}

export function update(state, history, columns) {
  const keys = new Set();
  for (const a of state.adaptive) {
    keys.add("a" + a.name);
    panel("a" + a.name, () => new Adaptive(a.name)).update(a, state.process, history.get("a" + a.name));
  }
  for (const s of state.stores) {
    keys.add("s" + s.name);
    panel("s" + s.name, () => new Redis(s.name)).update(s, columns);
  }
  for (const [key, p] of panels) if (!keys.has(key)) { p.node.remove(); panels.delete(key); }
}

// facts is a list of names and values that are set by name.
class Facts {
  constructor(names) {
    this.node = el("dl", { class: "facts" });
    this.values = {};
    for (const n of names) this.node.append(el("div", {}, el("dt", {}, n), (this.values[n] = el("dd", {}, "–"))));
  }

  set(name, value, note) {
    const dd = this.values[name];
    if (dd.textContent !== value + (note ? " " + note : "")) dd.replaceChildren(value, ...(note ? [" ", el("small", {}, note)] : []));
  }
}

class Panel {
  constructor(title, names) {
    this.badge = el("span", { class: "badge", role: "status" });
    this.facts = new Facts(names);
    this.legend = el("div", { class: "legend small" });
    this.chart = el("div", { class: "chart" });
    this.node = el("section", { "aria-label": title }, el("div", { class: "head" }, el("h2", {}, title), this.badge),
      this.facts.node, this.legend, this.chart);
  }

  mark(text, cls) {
    say(this.badge, text);
    this.badge.className = "badge " + cls;
  }
}

class Adaptive extends Panel {
  constructor(name) {
    super(`Adaptive limit: ${name}`, ["In flight", "Limit", "Waiting", "Takes", "Pace at the limit", "Run queue"]);
    this.drawing = new Chart(this.chart, this.legend,
      { label: "In flight and limit", layers: { "in-flight": "In flight" }, lines: { limit: "Limit" } });
    this.parts = el("tbody");
    this.causes = el("tbody");
    this.node.append(el("div", { class: "two" },
      el("table", {}, head("Strategy", "Allows", "Signal"), this.parts),
      el("table", {}, head("Dropped because", "Requests"), this.causes)));
  }

  update(a, process, history) {
    this.facts.set("In flight", number(a.in_flight));
    this.facts.set("Limit", number(a.limit));
    this.facts.set("Waiting", number(a.waiting));
    this.facts.set("Takes", a.rtt ? time(a.rtt) : "–");
    this.facts.set("Pace at the limit", a.pace ? number(a.pace) : "–", a.pace ? "/s" : "");
    this.facts.set("Run queue", number(process.runnable), `on ${process.procs} procs`);
    const held = a.strategies.find((s) => s.overloaded);
    this.mark(held ? "overloaded: " + held.cause : a.in_flight >= a.limit ? "at its limit" : "has room", held ? "bad" : a.in_flight >= a.limit ? "warn" : "good");
    this.drawing.show({ "in-flight": history.a, limit: history.b });
    this.parts.replaceChildren(...a.strategies.map((s) => el("tr", {}, el("td", {}, s.name), el("td", { class: "num" }, number(s.limit)),
      el("td", {}, ...signal(s)))));
    this.causes.replaceChildren(...a.denied.map(({ name, n }) =>
      el("tr", {}, el("td", {}, name), el("td", { class: "num" + (n ? "" : " zero") }, number(n)))));
  }
}

function signal(s) {
  if (!s.signal) return [s.overloaded ? s.cause : "none"];
  if (!s.known) return [`${s.signal}: unknown`];
  return [`${s.signal} ${Math.round(s.level * 100)} % `, el("meter", { min: 0, max: 2, high: 1, optimum: 0, value: Math.min(s.level, 2), "aria-label": s.signal })];
}

const head = (...names) => el("thead", {}, el("tr", {}, ...names.map((n, i) => el("th", { scope: "col", class: i === 1 ? "num" : undefined }, n))));

class Redis extends Panel {
  constructor(name) {
    super(`Redis: ${name}`, ["Calls to Redis", "Share of a limit", "Deny cache hits", "Block hits", "Fallback", "Without Redis"]);
    this.drawing = new Chart(this.chart, this.legend, { label: "Who decided, per second",
      layers: { remote: "Redis", "deny-cache": "Deny cache", block: "Blocks", fallback: "Fallback" } });
    this.about = this.node.appendChild(el("p", { class: "note" }));
  }

  update(s, columns) {
    const names = s.policies.length ? s.policies : [...columns.keys()];
    const counts = {};
    for (const k of Object.keys(sources)) {
      counts[k] = new Array(span).fill(0);
      for (const n of names) (columns.get(n)?.[k] || []).forEach((c, i) => { counts[k][i] += c; });
    }
    const words = { healthy: "healthy", degraded: s.away < s.nodes ? `degraded: ${s.away} of ${s.nodes} nodes away` : "degraded: Redis is away", probing: "probing: coming back" };
    this.mark(words[s.state] || s.state, { healthy: "good", degraded: "bad", probing: "warn" }[s.state] || "");
    this.facts.set("Calls to Redis", s.percent + " %");
    this.facts.set("Share of a limit", s.instances === 1 ? "all" : "1/" + s.instances, s.counted ? "" : "not counted yet");
    this.facts.set("Deny cache hits", number(sum(counts["deny-cache"])), s.denied_most ? `${number(s.denied)} of ${number(s.denied_most)} keys` : "off");
    this.facts.set("Block hits", number(sum(counts.block)), `${number(s.blocks)} keys`);
    this.facts.set("Fallback", number(sum(counts.fallback)));
    this.facts.set("Without Redis", { Local: "own share", AllowAll: "allow all", DenyAll: "deny all" }[s.fallback] || s.fallback);
    this.drawing.show(counts);
    say(this.about, "Hits and decisions of the last five minutes" + (s.policies.length ? ": " + s.policies.map(policyName).join(", ") : ", all policies") + ".");
  }
}
