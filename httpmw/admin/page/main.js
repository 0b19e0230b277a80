// Asks for the state and shows it.
import { $, say, policyName } from "./dom.js";
import { action, authorized, call, notice, useToken } from "./api.js";
import { Chart, span } from "./chart.js";
import * as tables from "./tables.js";
import * as panels from "./panels.js";
import * as key from "./key.js";

const names = ["admitted", "queued", "shadowed", "denied", "blocked", "failed", "remote", "deny-cache", "block", "fallback", "remote-us"];
const columns = new Map(); // of each policy, by column: 300 numbers, the last second last
const history = new Map(); // of each adaptive limiter
let requests = null; // admitted and denied ones, each counted once, if the service counts them
let next = 0, boot = 0, failures = 0, timer = 0, state = null;

const traffic = new Chart($("traffic"), $("traffic-legend"), { label: "Decisions per second",
	layers: { admitted: "Admitted", queued: "Queued", shadowed: "Shadowed", denied: "Denied", blocked: "Blocked", failed: "Failed" } });

// push moves seconds into an array of 300; without values they are fill.
function push(array, values, n, fill) {
	const fresh = values || new Array(n).fill(fill);
	array.push(...fresh.slice(-span));
	array.splice(0, array.length - span);
}

function take(s) {
	const other = boot && s.boot !== boot; // another process: from its beginning, next time
	if (other || s.from !== next) { columns.clear(); history.clear(); requests = null; }
	boot = s.boot;
	if (other) { next = 0; return; }
	const n = s.to - s.from;
	next = s.to;
	for (const p of s.policies) {
		if (!columns.has(p.name)) columns.set(p.name, Object.fromEntries(names.map((k) => [k, new Array(span).fill(0)])));
	}
	for (const [name, arrays] of columns) {
		const p = s.policies.find((q) => q.name === name);
		if (!p) { columns.delete(name); continue; }
		for (const k of names) push(arrays[k], p.columns[k], n, 0);
	}
	if (s.requests) {
		requests ??= { admitted: new Array(span).fill(0), denied: new Array(span).fill(0) };
		for (const k in requests) push(requests[k], s.requests[k], n, 0);
	}
	for (const a of s.adaptive) {
		const k = "a" + a.name;
		if (!history.has(k)) history.set(k, { a: new Array(span).fill(-1), b: new Array(span).fill(-1) });
		push(history.get(k).a, a.in_flights, n, -1);
		push(history.get(k).b, a.limits, n, -1);
	}
	state = s;
	show();
}

function show() {
	document.title = `${state.title} · limits`;
	say($("title"), state.title);
	tables.policies(state, columns, pick);
	draw();
	tables.top(state.top, key.hash(), key.pick);
	tables.blocks(state, key.pick, unblock);
	if ($("pause").getAttribute("aria-pressed") === "false") tables.last(state.decisions);
	panels.update(state, history, columns);
	key.tick(state);
}

function pick(name) {
	$("which").value = $("which").value === ":" + name ? "*" : ":" + name;
	key.choose(name);
	draw();
}

async function unblock(b) {
	if (await action(b.limit ? "adjust" : "unblock", { policy: b.policy, hash: b.hash, unseen: true })) { clearTimeout(timer); poll(); }
}

function draw() {
	const which = $("which").value;
	const shown = [...columns].filter(([name]) => which === "*" || which === ":" + name).map((c) => c[1]);
	const total = {};
	for (const k of names.slice(0, 6)) {
		total[k] = new Array(span).fill(0);
		for (const arrays of shown) arrays[k].forEach((n, i) => { total[k][i] += n; });
	}
	const once = which === "*" && requests;
	if (once) for (const k in total) total[k] = requests[k] || new Array(span).fill(0);
	traffic.mark(state.marks.map((m) => ({ at: span - (state.to - m.second), text: m.text })));
	traffic.show(total);
	say($("h-traffic"), once ? "Requests per second" : which === "*" ? "Decisions per second" : `Decisions per second: ${policyName(which.slice(1))}`);
	say($("traffic-note"), which !== "*" ? "" : once ? "each counted once" : "a request is one in each limit that it meets");
}

// live tells on the page whether it is up to date.
function live(text, cls) {
	say($("live"), text);
	$("live").className = "badge " + cls;
}

async function poll() {
	try {
		const s = await call("api/state?since=" + next);
		if (failures) notice("");
		failures = 0;
		take(s);
		live("Live", "good");
	} catch (e) {
		failures++;
		if (!e.status) live("No answer", "bad");
		else live("Refused", "bad");
		if (e.status === 403) notice(authorized() ? "The service refuses this token." : "You may not read this. Type the token, or open the page on the service's own machine.");
		else if (failures > 1) notice(`The service does not answer: ${e.message}. What is shown may be old.`);
	}
	// Slower while unseen or failing.
	clearTimeout(timer);
	timer = setTimeout(poll, Math.max(document.hidden ? 15000 : 0, 1000 * 2 ** Math.min(failures, 5)));
}

document.addEventListener("visibilitychange", () => { if (!document.hidden) { clearTimeout(timer); poll(); } });
$("which").addEventListener("change", draw);
$("only").addEventListener("change", () => state && tables.last(state.decisions));
$("pause").addEventListener("click", () => {
	const on = $("pause").getAttribute("aria-pressed") === "false";
	$("pause").setAttribute("aria-pressed", on);
	say($("pause"), on ? "Held" : "Hold");
});
$("login").addEventListener("submit", (e) => {
	e.preventDefault();
	useToken($("token").value);
	$("token").value = "";
	$("token").placeholder = "in use";
	notice("");
	clearTimeout(timer);
	poll();
});
key.init();
poll();
