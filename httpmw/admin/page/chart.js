// A chart of 300 seconds: layers on each other, and lines.
import { el, svg, number, say } from "./dom.js";

export const span = 300;
const patterns = {
	queued: "M2 0V6M5 0V6", shadowed: "M0 2H6M0 5H6", denied: "M-1 7L7-1M-1 1L1-1M5 7L7 5", blocked: "M3 0V6M0 3H6", failed: "M0 0L6 6M0 6L6 0",
	"deny-cache": "M0 2H6M0 5H6", block: "M2 0V6M5 0V6", fallback: "M-1 7L7-1M-1 1L1-1M5 7L7 5",
};
let charts = 0;

// pattern tells layers apart without their colour.
function pattern(id, kind) {
	return svg("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse" },
		svg("rect", { width: 6, height: 6, class: "k-" + kind }),
		patterns[kind] ? svg("path", { d: patterns[kind], class: "hatch" }) : null);
}

// Chart draws into host and legend. layers and lines map names to labels.
export class Chart {
	constructor(host, legend, { label, layers, lines = {} }) {
		Object.assign(this, { host, layers, lines, at: -1, data: {}, marks: [], id: "c" + ++charts, numbers: {} });
		this.svg = svg("svg", { role: "img", tabindex: 0, "aria-label": label + ", last five minutes. Arrow keys read single seconds." });
		host.replaceChildren(this.svg);
		legend.replaceChildren();
		for (const [name, text] of Object.entries({ ...layers, ...lines })) {
			this.numbers[name] = el("b", {}, "–");
			legend.append(el("div", {}, this.swatch(name), el("span", {}, text), this.numbers[name]));
		}
		this.when = legend.appendChild(el("div", { class: "when", "aria-live": "polite" }));
		this.listen();
		new ResizeObserver(() => this.draw()).observe(host);
	}

	swatch(name) {
		const s = svg("svg", { width: 14, height: 14, "aria-hidden": true });
		if (this.lines[name]) s.append(svg("path", { d: "M0 7H14", class: "line " + name }));
		else {
			const id = this.id + "s-" + name;
			s.append(svg("defs", {}, pattern(id, name)), svg("rect", { width: 14, height: 14, fill: `url(#${id})` }));
		}
		return s;
	}

	listen() {
		const read = (at) => { this.at = at; this.read(); };
		this.svg.addEventListener("pointermove", (e) => {
			const box = this.svg.getBoundingClientRect();
			read(Math.min(span - 1, Math.max(0, Math.floor((e.clientX - box.left) / box.width * span))));
		});
		this.svg.addEventListener("pointerleave", () => read(-1));
		this.svg.addEventListener("blur", () => read(-1));
		this.svg.addEventListener("keydown", (e) => {
			const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[e.key];
			if (!step) return;
			e.preventDefault();
			read(Math.min(span - 1, Math.max(0, (this.at < 0 ? span : this.at) + step)));
		});
	}

	// mark takes what happened at which second.
	mark(marks) { this.marks = marks.filter((m) => m.at >= 0 && m.at < span); }

	// show takes arrays of 300 numbers by name; -1 is unknown.
	show(data) {
		this.data = data;
		this.draw();
	}

	draw() {
		const w = this.host.clientWidth, h = this.host.clientHeight - 18;
		if (!w || h < 10) return;
		const tops = new Array(span).fill(0);
		const shapes = [];
		const bases = {};
		for (const name of Object.keys(this.layers)) {
			const counts = this.data[name];
			if (!counts || !counts.some((n) => n > 0)) continue;
			bases[name] = tops.slice();
			counts.forEach((n, i) => { tops[i] += Math.max(n, 0); });
			shapes.push([name, tops.slice()]);
		}
		let most = Math.max(...tops, 1);
		for (const name of Object.keys(this.lines)) most = Math.max(most, ...(this.data[name] || [0]));
		const step = tick(most / (h < 150 ? 3 : 4));
		const top = Math.ceil(most / step) * step;
		const x = (i) => +(i * w / span).toFixed(2);
		const y = (n) => +(h - n / top * (h - 8)).toFixed(1);
		const nodes = [svg("defs", {}, ...shapes.map(([name]) => pattern(this.id + name, name)))];
		for (const [name, upper] of shapes) {
			nodes.push(svg("path", { d: area(upper, bases[name], x, y), fill: `url(#${this.id}${name})` }));
		}
		for (let n = step; n <= top; n += step) {
			nodes.push(svg("path", { d: `M0 ${y(n)}H${w}`, class: "grid" }));
			nodes.push(svg("text", { x: 2, y: y(n) + 12, class: "tick" }, number(n)));
		}
		nodes.push(svg("path", { d: `M0 ${h}H${w}`, class: "grid" }));
		for (let m = 0; m <= 5; m++) {
			const anchor = m === 5 ? "end" : m ? "middle" : "start";
			const text = m === 5 ? "now" : `−${5 - m} min`;
			if (w > 420 || m % 2 === 0 || m === 5) nodes.push(svg("text", { x: x(m * 60), y: h + 14, class: "tick", "text-anchor": anchor }, text));
		}
		for (const name of Object.keys(this.lines)) {
			if (this.data[name]) nodes.push(svg("path", { d: line(this.data[name], x, y), class: "line " + name }));
		}
		for (const m of this.marks) {
			nodes.push(svg("path", { d: `M${x(m.at + 0.5)} 4V${h}`, class: "mark" }, svg("title", {}, m.text)), svg("path", { d: `M${x(m.at + 0.5) - 4} 0h8l-4 6z`, class: "flag" }));
		}
		this.cross = svg("path", { class: "cross" });
		this.height = h;
		this.width = w;
		this.svg.replaceChildren(...nodes, this.cross);
		this.read();
	}

	// read writes the numbers of the second pointed at, or the last.
	read() {
		const i = this.at < 0 ? span - 1 : this.at;
		for (const [name, node] of Object.entries(this.numbers)) {
			const n = this.data[name] ? this.data[name][i] : -1;
			say(node, n < 0 ? "–" : number(n));
		}
		const near = this.marks.filter((m) => Math.abs(m.at - i) < 2).map((m) => m.text);
		say(this.when, this.at < 0 ? "" : [`${span - i} s ago`, ...near].join(", "));
		if (!this.cross) return;
		const x = ((i + 0.5) * this.width / span).toFixed(1);
		this.cross.setAttribute("d", this.at < 0 ? "" : `M${x} 0V${this.height}`);
	}
}

// tick is the next of 1, 2, 5, 10, 20, ...
function tick(least) {
	const ten = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
	return [1, 2, 5, 10].map((f) => f * ten).find((s) => s >= least) || 10 * ten;
}

function area(upper, lower, x, y) {
	let d = `M0 ${y(upper[0])}`;
	for (let i = 0; i < span; i++) d += `V${y(upper[i])}H${x(i + 1)}`;
	for (let i = span - 1; i >= 0; i--) d += `V${y(lower[i])}H${x(i)}`;
	return d + "Z";
}

function line(values, x, y) {
	let d = "", on = false;
	values.forEach((n, i) => {
		if (n >= 0) d += `${on ? "V" : `M${x(i)} `}${y(n)}H${x(i + 1)}`;
		on = n >= 0;
	});
	return d;
}
