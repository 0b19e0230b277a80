// One key: what it has left, and what can be done.
import { $, number, say, time } from "./dom.js";
import { order } from "./api.js";
import { Chart, span } from "./chart.js";

const left = new Array(span).fill(-1);
const limits = new Array(span).fill(-1);
let chart, watched = null, busy = false, policies = [], actions = false, second = 0;

export const hash = () => (watched ? watched.hash : "");

export function init() {
	const legend = document.createElement("div");
	legend.className = "legend small";
	$("fill").before(legend);
	chart = new Chart($("fill"), legend, { label: "What the key has left", layers: { remaining: "Left" }, lines: { limit: "Limit" } });
	$("key-form").addEventListener("submit", (e) => { e.preventDefault(); watch(); });
	$("key-policy").addEventListener("change", able);
	$("reset").addEventListener("click", () => act("reset", {}, "forgiven"));
	$("block").addEventListener("click", () => act("block", { seconds: +$("seconds").value }, `blocked for ${time(+$("seconds").value)}`));
}

const asked = () => ({ policy: $("key-policy").value, key: $("key").value });

function watch(did) {
	watched = { ...asked(), hash: "", did };
	left.fill(-1);
	limits.fill(-1);
	look();
}

export function choose(name) { $("key-policy").value = name; able(); }

// able switches off what the chosen policy cannot do.
function able() {
	const p = policies.find((q) => q.name === $("key-policy").value);
	for (const name of ["reset", "block"]) $(name).disabled = !actions || !p || !p.can.includes(name);
	$("seconds").disabled = $("block").disabled;
	$("key-form").querySelector(".main").disabled = !actions || !p;
	$("block").title = p && p.scope === "process" ? "In this process only" : "";
}

// tick is called with every state.
export function tick(state) {
	if (!state.actions) say($("key-says"), "Off: the service has not said who may.");
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
		const d = await order("peek", { policy: mine.policy, key: mine.key });
		if (mine !== watched) return;
		watched.hash = d.hash;
		for (let i = span - 1; i >= 0 && left[i] < 0 && span - i <= 3; i--) { left[i] = d.remaining; limits[i] = d.limit; }
		say($("key-hash"), mine.did || (d.hash ? "hash " + d.hash : "the limit's own"));
		tell(`${number(d.remaining)} of ${number(d.limit)} left` + (d.reset_after ? `, all of it in ${time(d.reset_after)}` : "") + ` (${d.source}).`);
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

async function act(name, more, done) {
	const what = asked();
	const shown = what.key ? `“${what.key.slice(0, 90)}”` : "The limit's own";
	try {
		await order(name, { ...what, ...more });
		const scope = name === "block" && policies.find((p) => p.name === what.policy)?.scope === "process" ? ", in this process" : "";
		watch(`${shown}: ${done}${scope}`);
	} catch (e) {
		tell(`Not done: ${e.message}.`, true);
	}
}

function tell(text, bad = false) {
	say($("key-says"), text);
	$("key-says").classList.toggle("bad", bad);
}
