// Talking to the service.
import { $, say } from "./dom.js";

let token = "";
export const authorized = () => token !== "";
export const useToken = (t) => { token = t; };

// call returns the answer, or throws what went wrong in words.
export async function call(path, init = {}) {
	const auth = token ? { Authorization: "Bearer " + token } : {};
	const reply = await fetch(path, { ...init, headers: { ...init.headers, ...auth }, signal: AbortSignal.timeout(8000) });
	const body = await reply.json().catch(() => ({}));
	if (!reply.ok) throw Object.assign(new Error(body.error || `the service answered ${reply.status}`), { status: reply.status, unseen: body.unseen });
	return body;
}

// order sends an action, or throws.
export function order(name, body) {
	const headers = { "Content-Type": "application/json", "X-Sluice-Admin": "1" };
	return call("api/" + name, { method: "POST", headers, body: JSON.stringify(body) });
}

// action sends an action and tells on the page if it was refused.
export async function action(name, body) {
	try {
		const reply = await order(name, body);
		notice("");
		return reply;
	} catch (e) {
		notice(`Not done: ${e.message}.`);
		return null;
	}
}

export function notice(text) {
	say($("notice"), text);
	$("notice").hidden = !text;
}
