// Policies, most limited keys, last decisions.
import { $, el, inFlight, label, number, options, places, policyName, say, sum, svg, time } from "./dom.js";
import { action } from "./api.js";

const rows = new Map();

// policies keeps a row of each policy, so that focus stays where it is.
export function policies(state, columns, choose) {
	const names = state.policies.map((p) => p.name);
	for (const [name, row] of rows) if (!names.includes(name)) { row.node.remove(); rows.delete(name); }
	for (const p of state.policies) {
		if (!rows.has(p.name)) rows.set(p.name, new Row(p, choose));
		rows.get(p.name).update(p, columns.get(p.name), state.actions);
	}
	const body = $("policies").tBodies[0];
	const nodes = names.map((n) => rows.get(n).node);
	if (!nodes.length) nodes.push(empty(9, "No policy, and no decision in the last five minutes."));
	if (nodes.length !== body.children.length || nodes.some((n, i) => body.children[i] !== n)) body.replaceChildren(...nodes);
	options($("which"), [["*", "All policies"], ...names.map((n) => [":" + n, policyName(n)])]);
	options($("key-policy"), state.policies.filter((p) => p.registered).map((p) => [p.name, p.name]));
}

class Row {
	constructor(p, choose) {
		this.name = p.name;
		this.title = el("button", { class: "link", type: "button" }, policyName(p.name));
		this.title.addEventListener("click", () => choose(p.name));
		this.kind = el("small");
		this.full = el("span", { class: "badge bad", hidden: true });
		this.trial = el("span", { class: "badge warn", hidden: true }, "denies nothing");
		this.cells = {};
		const cell = (name, cls) => (this.cells[name] = el("td", { class: cls }));
		this.node = label(el("tr", {}, el("td", {}, el("div", {}, this.title, this.kind, this.full, this.trial)), cell("limit"),
			...["admitted", "queued", "shadowed", "denied", "sum"].map((k) => cell(k, "num")), cell("by", "gap"), cell("on")), $("policies"));
		this.state = el("span", { class: "badge" });
		this.where = el("small");
		this.long = el("select", { "aria-label": "Off for how long" },
			...[[600, "for 10 minutes"], [3600, "for 1 hour"], [86400, "for 1 day"]].map(([value, text]) => el("option", { value, selected: value === 3600 }, text)));
		this.why = el("input", { maxlength: 90, autocomplete: "off", "aria-label": "Why the limit is off", placeholder: "why" });
		this.ask = el("span", { class: "row", hidden: true }, this.long, this.why);
		this.button = el("button", { type: "button" });
		this.button.addEventListener("click", () => this.flip());
	}

	update(p, counts, actions) {
		this.on = p.on;
		say(this.kind, p.registered ? p.kind + (p.table ? `, ${number(p.table.keys)} keys, room for ${number(p.table.capacity)} or more` : "") + (p.blocked ? `, ${p.blocked} blocked` : "") : "not registered");
		this.trial.hidden = !p.off;
		this.full.hidden = !p.table || !p.table.overflowed;
		if (p.table) {
			const from = p.table.origins.map((o) => `${o.prefix}… ${percent(o.part)}`).join(", ");
			say(this.full, `table of keys full: ${number(p.table.overflowed)} charges without a place` + (from ? `; new keys: ${from}` : ""));
		}
		say(this.cells.limit, p.text || limit(p.limit));
		for (const k of ["admitted", "queued", "shadowed", "denied"]) {
			const rate = sum(counts[k].slice(-10)) / 10;
			say(this.cells[k], number(rate));
			this.cells[k].classList.toggle("zero", rate === 0);
		}
		say(this.cells.sum, number(sum(counts.denied)));
		say(this.cells.by, decidedBy(counts));
		if (p.on === null) return this.cells.on.replaceChildren("none");
		if (!this.cells.on.contains(this.state)) this.cells.on.replaceChildren(el("span", {}, this.state, " ", this.button, this.ask, this.where));
		say(this.state, p.on ? "on" : "off: limits nothing");
		say(this.where, [p.until && `until ${new Date(p.until).toLocaleString("en-GB")}`, p.why_off, places[p.scopes.switch]].filter(Boolean).join("; "));
		this.state.className = "badge " + (p.on ? "good" : "bad");
		this.button.disabled = !actions;
		this.button.title = actions ? "" : "Actions are off";
		if (!this.sure) this.rest();
	}

	rest() {
		this.sure = false;
		this.ask.hidden = true;
		this.button.className = "";
		say(this.button, this.on ? "Switch off" : "Switch on");
	}

	// flip asks again before it takes a limit away.
	async flip() {
		if (this.on && !this.sure) {
			this.sure = true;
			this.ask.hidden = false;
			this.button.className = "sure";
			say(this.button, "Really? Limits nothing");
			this.timer = setTimeout(() => this.rest(), 30000);
			return;
		}
		clearTimeout(this.timer);
		this.sure = false;
		const reply = await action("switch", { policy: this.name, on: !this.on, seconds: +this.long.value, note: this.why.value });
		if (reply) this.on = reply.on;
		this.rest();
	}
}

function limit(l) {
	if (!l) return "by key";
	if (l.unit === "concurrent-requests") return `${inFlight(l.quota)} in flight`;
	return l.window ? `${number(l.quota)} in ${time(l.window)}` : number(l.quota);
}

export const sources = { remote: "Redis", "deny-cache": "deny cache", block: "blocks", fallback: "fallback" };

function decidedBy(counts) {
	const all = sum(["admitted", "queued", "shadowed", "denied"].map((k) => sum(counts[k])));
	if (!all) return "–";
	const parts = Object.entries(sources).map(([k, text]) => [text, sum(counts[k])]);
	parts.unshift(["this process", Math.max(all - sum(parts.map((p) => p[1])), 0)]);
	const some = parts.filter((p) => p[1] > 0).sort((a, b) => b[1] - a[1]);
	if (some.length === 1) return some[0][0];
	return some.map(([text, n]) => `${text} ${percent(n / all)}`).join(", ");
}

const percent = (share) => (share < 0.01 ? "< 1 %" : share > 0.99 ? "> 99 %" : Math.round(share * 100) + " %");

const empty = (columns, text) => el("tr", {}, el("td", { class: "empty", colspan: columns }, text));

// caller is a button that picks a key by its hash.
function caller(k, pick, ...more) {
	if (!k.hash || k.hash === "everybody") return el("td", { class: "mono" }, k.hash || "none", ...more);
	const button = el("button", { class: "link mono", type: "button", title: "Look at this key" }, k.hash);
	button.addEventListener("click", () => pick(k));
	return el("td", { class: "mono" }, button, ...(k.key ? [" ", el("small", {}, k.key)] : []), ...more);
}

let listed = "";

// blocks lists the blocked keys, if they are others than before.
export function blocks(state, pick, unblock) {
	$("blocked").hidden = !state.blocks.length;
	const key = JSON.stringify([state.blocks, state.actions]);
	if (key === listed) return;
	listed = key;
	const clock = (ms) => new Date(ms).toLocaleString("en-GB");
	$("blocks").tBodies[0].replaceChildren(...state.blocks.map((b) => {
		const word = b.limit ? "End" : "Unblock";
		const button = el("button", { type: "button", disabled: !state.actions, "aria-label": `${word} ${b.hash}` }, word);
		button.addEventListener("click", () => unblock(b));
		return label(el("tr", {}, caller(b, pick), el("td", {}, policyName(b.policy)), el("td", {}, b.limit || "blocked"), el("td", {}, clock(b.until)),
			el("td", {}, b.since ? clock(b.since) : "–"), el("td", {}, b.by || (b.limit ? "–" : "this process")), el("td", {}, b.note || "–"), el("td", {}, places[b.scope]), el("td", {}, button)), $("blocks"));
	}));
}

let ranked = "";

// top lists the keys that were limited most, if they are others than before: a
// row that is replaced loses the focus.
export function top(keys, watched, pick) {
	const same = JSON.stringify([keys, watched]);
	if (same === ranked) return;
	ranked = same;
	const most = (k) => Math.max(1, ...keys.filter((other) => other.trial === k.trial).map((other) => other.most));
	const made = keys.map((k) => el("tr", { class: k.hash === watched && "same" },
		caller(k, pick, k.hash === watched ? el("small", {}, " watched") : null),
		el("td", {}, policyName(k.policy), k.trial ? el("small", { class: "badge warn" }, "on trial: not denied") : null),
		el("td", { class: "num" }, (k.least < k.most ? "≤ " : "") + number(k.most)),
		el("td", { class: "bar" }, svg("svg", { "aria-hidden": true }, svg("rect", { width: `${k.most / most(k) * 100}%`, height: 9, class: k.trial ? "k-shadowed" : "k-denied" })))));
	$("top").tBodies[0].replaceChildren(...(made.length ? made : [empty(4, "No key was limited.")]));
}

const marks = { admitted: "good", queued: "warn", shadowed: "warn", denied: "bad", blocked: "bad", failed: "bad" };
const refused = (d) => d.kind === "denied" || d.kind === "blocked" || d.kind === "failed";
let told = "";

// last lists the decisions, if there are others than before.
export function last(decisions) {
	const only = $("only").value;
	const key = only + JSON.stringify(decisions);
	if (key === told) return;
	told = key;
	const shown = decisions.filter((d) => !only || refused(d) === (only === "refused")).slice(0, 60);
	$("last").tBodies[0].replaceChildren(...(shown.length ? shown.map(decision) : [empty(9, "No decision yet.")]));
}

function decision(d) {
	const cell = (cls, ...children) => el("td", { class: cls }, ...children);
	const result = d.result === "denied" || d.result === "allowed" ? d.kind : d.result;
	const at = new Date(d.time);
	const clock = at.toLocaleTimeString("en-GB") + "." + String(at.getMilliseconds()).padStart(3, "0");
	const via = [d.client ? "to a server" : "", d.transport, d.method].filter(Boolean).join(" ");
	const lines = [...d.sent.map((l) => el("div", {}, l)), d.err ? el("div", {}, "error: " + d.err) : null];
	return label(el("tr", {},
		cell("", clock),
		cell("", el("div", {}, el("span", { class: "badge " + marks[d.kind] }, result + (d.status ? " " + d.status : "")),
			d.reason === "admitted" || d.kind === "blocked" ? null : el("small", {}, d.reason))),
		cell("", el("div", {}, policyName(d.policy), el("small", {}, via))),
		cell("mono", d.hash || "none", d.key ? el("small", {}, d.key) : null),
		cell("num", number(d.cost)),
		cell("num", `${number(d.remaining)} / ${number(d.limit)}`),
		cell("gap", waits(d)),
		cell("", d.source),
		cell("mono", lines.some(Boolean) ? el("div", {}, ...lines) : el("span", { class: "zero" }, "nothing sent"))), $("last"));
}

function waits(d) {
	if (d.retry === null) return "never fits";
	if (d.retry > 0) return "retry after " + time(d.retry);
	if (d.delay > 0) return "delayed " + time(d.delay);
	return d.waited >= 0.001 ? "waited " + time(d.waited) : "–";
}
