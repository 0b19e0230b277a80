// Panels of adaptive limiters and of stores.
import { $, el, inFlight, number, policyName, say, sum, time } from "./dom.js";
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

// Panel has a title, a badge, facts that are set by name, and a chart.
class Panel {
	constructor(title, names) {
		this.badge = el("span", { class: "badge", role: "status" });
		this.facts = Object.fromEntries(names.map((n) => [n, el("dd")]));
		this.legend = el("div", { class: "legend small" });
		this.chart = el("div", { class: "chart" });
		this.node = el("section", { "aria-label": title }, el("div", { class: "head" }, el("h2", {}, title), this.badge),
			el("dl", { class: "facts" }, ...names.map((n) => el("div", {}, el("dt", {}, n), this.facts[n]))), this.legend, this.chart);
	}

	set(name, value, note) {
		this.facts[name].replaceChildren(value, ...(note ? [" ", el("small", {}, note)] : []));
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
		this.causes = el("p", { class: "note" });
		this.tenants = el("tbody");
		this.shares = el("table", { hidden: true }, el("caption", {}, "Tenants that asked for the most under overload"), el("thead", {}, el("tr", {},
			...["Tenant", "Asked for", "Admitted of that", "Of all admitted"].map((n) => el("th", {}, n)))), this.tenants);
		this.node.append(this.causes, this.shares, el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, "Strategy"), el("th", {}, "Allows"), el("th", {}, "Signal"))), this.parts));
	}

	update(a, process, history) {
		this.set("In flight", number(a.in_flight));
		this.set("Limit", inFlight(a.limit));
		this.set("Waiting", number(a.waiting));
		this.set("Takes", a.rtt ? time(a.rtt) : "–");
		this.set("Pace at the limit", a.pace ? number(a.pace) : "–", a.pace ? "/s" : "");
		this.set("Run queue", number(process.runnable), `on ${process.procs} procs`);
		const held = a.strategies.find((s) => s.overloaded);
		if (held) this.mark("overloaded: " + held.cause, "bad");
		else if (a.in_flight >= a.limit) this.mark("at its limit", "warn");
		else this.mark("has room", "good");
		this.drawing.show({ "in-flight": history.a, limit: history.b });
		this.parts.replaceChildren(...a.strategies.map((s) => el("tr", {}, el("td", {}, s.name), el("td", {}, inFlight(s.limit)),
			el("td", {}, ...signal(s), s.estimate ? el("small", {}, " " + s.estimate) : null))));
		this.shares.hidden = !a.tenants.length;
		this.tenants.replaceChildren(...a.tenants.map((t) => el("tr", {}, el("td", { class: "mono" }, t.hash || "no key", t.key ? el("small", {}, " " + t.key) : null),
			...[t.asked, t.admitted, t.served].map((v) => el("td", {}, percent(v))))));
		const drops = a.denied.filter((d) => d.n).map((d) => `${d.name} ${number(d.n)}`);
		say(this.causes, `Dropped since the start: ${drops.join(", ") || "nothing"}.`);
	}
}

function percent(v) {
	return `${(100 * v).toFixed(v < 0.1 ? 1 : 0)} %`;
}

function signal(s) {
	if (!s.signal) return [s.overloaded ? s.cause : "none"];
	if (!s.known) return [`${s.signal}: unknown`];
	return [`${s.signal} ${Math.round(s.level * 100)} % `, el("meter", { min: 0, max: 2, high: 1, optimum: 0, value: Math.min(s.level, 2), "aria-label": s.signal })];
}

class Redis extends Panel {
	constructor(name) {
		super(`Redis: ${name}`, ["Calls to Redis", "Time to Redis", "Share of a limit", "Deny cache hits", "Block hits", "Fallback", "Without Redis"]);
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
		const words = { degraded: s.away < s.nodes ? `degraded: ${s.away} of ${s.nodes} away` : "degraded: Redis is away", probing: "probing: coming back",
			far: `far: replies take ${s.round_trip_ms} ms, more than the timeout of ${s.timeout_ms} ms` };
		const since = s.since ? ` since ${new Date(s.since).toLocaleTimeString("en-GB")}` : "";
		this.mark((words[s.state] || s.state) + since, { healthy: "good", degraded: "bad", far: "bad", probing: "warn" }[s.state] || "");
		this.set("Calls to Redis", s.percent + " %");
		const recent = (k) => names.reduce((n, name) => n + sum((columns.get(name)?.[k] || []).slice(-10)), 0);
		this.set("Time to Redis", recent("remote") ? time(recent("remote-us") / recent("remote") / 1e6) : "–", "mean of 10 s");
		this.set("Share of a limit", s.instances === 1 ? "all" : "1/" + s.instances, s.counted ? "" : "not counted yet");
		this.set("Deny cache hits", number(sum(counts["deny-cache"])), s.denied_most ? `${number(s.denied)} of ${number(s.denied_most)} keys` : "off");
		this.set("Block hits", number(sum(counts.block)), `${number(s.blocks)} keys`);
		this.set("Fallback", number(sum(counts.fallback)));
		this.set("Without Redis", { FallbackLocal: "own share", FallbackAllow: "allow all", FallbackDeny: "deny all" }[s.fallback] || s.fallback);
		this.drawing.show(counts);
		say(this.about, "Hits and decisions of the last five minutes" + (s.policies.length ? ": " + s.policies.map(policyName).join(", ") : ", all policies") + ".");
	}
}
