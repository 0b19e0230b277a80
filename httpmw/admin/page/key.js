// One key: what it has left, and what can be done.
import { $, el, number, places, say, time } from "./dom.js";
import { order } from "./api.js";
import { Chart, span } from "./chart.js";

const left = new Array(span).fill(-1);
const limits = new Array(span).fill(-1);
let chart, watched = null, busy = false, policies = [], actions = false, second = 0, picked = "", insist = "";

export const hash = () => (watched ? watched.hash : "");

export function init() {
	const legend = document.createElement("div");
	legend.className = "legend small";
	$("fill").before(legend);
	chart = new Chart($("fill"), legend, { label: "What the key has left", layers: { remaining: "Left" }, lines: { limit: "Limit" } });
	$("key-form").addEventListener("submit", (e) => { e.preventDefault(); watch(); });
	$("key-policy").addEventListener("change", () => { picked = ""; able(); });
	$("reset").addEventListener("click", () => act("reset", {}, "forgiven"));
	$("unblock").addEventListener("click", () => act("unblock", {}, "unblocked"));
	$("adjust").addEventListener("click", () => act("adjust", { limit: $("limit").value, seconds: +$("seconds").value, note: $("note").value },
		$("limit").value ? `limit ${$("limit").value} for ${time(+$("seconds").value)}` : "its own limit again"));
	$("block").addEventListener("click", () => act("block", { seconds: +$("seconds").value, note: $("note").value }, `blocked for ${time(+$("seconds").value)}`));
	fields(null);
}

const chosen = () => policies.find((q) => q.name === $("key-policy").value);
const inputs = () => [...$("who").querySelectorAll("input")];

// fields makes an input for each part of what a caller is called by.
function fields(p) {
	const parts = p && p.identity.length ? p.identity : ["Key"];
	const same = JSON.stringify(parts);
	if ($("who").dataset.parts === same) return;
	$("who").dataset.parts = same;
	$("who").replaceChildren(...parts.map((name, i) => {
		const id = i ? "key" + i : "key";
		const input = el("input", { id, autocomplete: "off", spellcheck: "false", autocapitalize: "off", placeholder: name === "Key" ? "as the key function makes it, or a hash" : "or a hash" });
		input.addEventListener("input", () => { picked = insist = ""; });
		return el("div", {}, el("label", { for: id }, name), input);
	}));
}

// asked names the key: by the hash of the row that was picked, or by what was typed.
function asked() {
	const p = chosen(), typed = inputs().map((i) => i.value);
	const policy = $("key-policy").value;
	if (picked) return { policy, hash: picked };
	return p && p.identity.length ? { policy, who: typed } : { policy, key: typed[0] };
}

function watch(did) {
	watched = { asked: asked(), hash: "", did };
	left.fill(-1);
	limits.fill(-1);
	look();
}

export function choose(name) { $("key-policy").value = name; picked = ""; able(); }

// pick looks at the key of a row.
export function pick(row) {
	if (!policies.some((p) => p.name === row.policy)) return tell("Not shown: the policy is not registered.", true);
	$("key-policy").value = row.policy;
	able();
	inputs().forEach((input, i) => { input.value = i ? "" : row.hash; });
	picked = row.hash;
	$("key-form").scrollIntoView({ block: "nearest" });
	watch();
}

// able switches off what the chosen policy cannot do.
function able() {
	const p = chosen();
	fields(p);
	for (const name of ["reset", "unblock", "block", "adjust"]) $(name).disabled = !actions || !p || !p.can.includes(name);
	$("limit").disabled = $("adjust").disabled;
	$("seconds").disabled = $("note").disabled = $("block").disabled && $("adjust").disabled;
	$("key-form").querySelector(".main").disabled = !actions || !p;
	say($("scopes"), p ? Object.keys(names).filter((k) => p.can.includes(k)).map((k) => `${names[k]}: ${places[p.scopes[k]]}`).join(". ") : "");
}

const names = { reset: "Reset", block: "Block, Unblock", adjust: "Limit" };

// tick is called with every state.
export function tick(state) {
	if (!state.actions) say($("key-says"), "Actions are off: the service has no authorization for them.");
	policies = state.policies.filter((p) => p.registered);
	actions = state.actions;
	able();
	const passed = second ? Math.min(Math.max(state.to - second, 0), span) : 0;
	second = state.to;
	for (const a of [left, limits]) a.splice(0, passed), a.push(...new Array(passed).fill(-1));
	if (watched && !watched.stopped) look();
}

async function look() {
	if (busy) return;
	busy = true;
	const mine = watched;
	try {
		const d = await order("why", mine.asked);
		if (mine !== watched) return;
		watched.hash = d.hash;
		for (let i = span - 1; i >= 0 && left[i] < 0 && span - i <= 3; i--) { left[i] = d.remaining; limits[i] = d.limit; }
		say($("key-hash"), mine.did || (d.hash ? "hash " + d.hash : "the limit's own"));
		const state = d.blocked_until ? `Blocked until ${new Date(d.blocked_until).toLocaleString("en-GB")}. ` : d.seen ? "" : "No request with this key has been seen: check the spelling. ";
		tell(state + `${number(d.remaining)} of ${number(d.limit)} left` + (d.reset_after ? `, all of it in ${time(d.reset_after)}` : "") + ` (${d.source}).` + (d.adjusted ? ` Limit ${d.adjusted}, set by an operator.` : ""), !d.seen);
	} catch (e) {
		if (mine !== watched) return;
		watched.stopped = e.status !== undefined;
		tell(`Not shown: ${e.message}.`, true);
	} finally {
		busy = false;
		chart.show({ remaining: left, limit: limits });
		if (mine !== watched) look();
	}
}

// act carries out an action. One on a key that no request had takes a second click.
async function act(name, more, done) {
	const what = asked();
	const same = name + JSON.stringify(what);
	const typed = inputs().map((i) => i.value).filter(Boolean).join(", ");
	const shown = typed ? `“${typed.slice(0, 90)}”` : "The limit's own";
	try {
		await order(name, { ...what, ...more, unseen: insist === same });
		insist = "";
		const scope = (name === "block" || name === "adjust") && chosen()?.scopes[name] === "process" ? ", in this process" : "";
		watch(`${shown}: ${done}${scope}`);
	} catch (e) {
		insist = e.unseen ? same : "";
		watched = null;
		tell(`Not done: ${e.message}.` + (e.unseen ? " Click again to do it nevertheless." : ""), true);
	}
}

function tell(text, bad = false) {
	say($("key-says"), text);
	$("key-says").classList.toggle("bad", bad);
}
