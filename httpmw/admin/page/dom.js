// Building the page. Whatever comes from outside goes through textContent.

// el makes an element: el("td", {class: "num"}, "text", child, ...).
export function el(name, attributes, ...children) {
	return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes, ...children) {
	return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill(node, attributes, children) {
	for (const [k, v] of Object.entries(attributes || {})) {
		if (v !== undefined && v !== false) node.setAttribute(k, v === true ? "" : v);
	}
	node.append(...children.filter((c) => c !== null && c !== undefined));
	return node;
}

export const $ = (id) => document.getElementById(id);

// say sets a text, if it is another one: screen readers tell of changes.
export function say(node, text) {
	if (node.textContent !== text) node.textContent = text;
}

// options fills a select, keeping what was chosen.
export function options(select, pairs) {
	const key = JSON.stringify(pairs);
	if (select.dataset.key === key) return;
	select.dataset.key = key;
	const was = select.value;
	select.replaceChildren(...pairs.map(([value, text]) => el("option", { value }, text)));
	if (pairs.some(([value]) => value === was)) select.value = was;
}

export function number(n) {
	if (n >= 1e6) return (n / 1e6).toFixed(n < 1e7 ? 1 : 0) + " M";
	if (n > 0 && n < 10 && n % 1) return n.toFixed(1);
	return Math.round(n).toLocaleString("en").replaceAll(",", "\u202f");
}

// inFlight writes a limit in flight.
export const inFlight = (n) => (n === 2147483647 ? "no limit" : number(n));

// time writes seconds; null: for ever.
export function time(s) {
	if (s === null) return "never";
	if (s === 0) return "0";
	if (s < 0.001) return (s * 1e6).toFixed(0) + " µs";
	if (s < 1) return (s * 1e3).toFixed(s < 0.01 ? 1 : 0) + " ms";
	if (s < 120) return +s.toFixed(s < 10 ? 1 : 0) + " s";
	if (s < 7200) return +(s / 60).toFixed(1) + " min";
	return +(s / 3600).toFixed(1) + " h";
}

// label gives each cell the name of its column, for narrow screens.
export function label(row, table) {
	[...row.cells].forEach((c, i) => { c.dataset.name = table.tHead.rows[0].cells[i].textContent.trim(); });
	return row;
}

// places are where an action holds.
export const places = { process: "this process, until its restart", everywhere: "all instances" };

export const sum = (counts) => counts.reduce((a, b) => a + b, 0);
export const policyName = (name) => name || "(all others)";
