// Charts of the overload, and what both files draw with.

const $ = (id) => document.getElementById(id);

// colour is one of the style sheet's, in the scheme of the moment.
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// canvas clears a canvas, sized to its box and the screen's pixels.
export function canvas(c) {
  const scale = devicePixelRatio || 1, width = c.clientWidth, height = c.clientHeight;
  if (c.width !== Math.round(width * scale) || c.height !== Math.round(height * scale)) {
    c.width = Math.round(width * scale);
    c.height = Math.round(height * scale);
  }
  const pen = c.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  return { pen, width, height };
}

const answers = [["in time", "--at-once"], ["late", "--delayed"], ["rejected", "--arriving"], ["gave up", "--denied"]];
const perSecond = 4; // moments

// nice is the next round number.
function nice(x) {
  const ten = 10 ** Math.floor(Math.log10(Math.max(x, 1)));
  return [1, 1.5, 2, 3, 4, 6, 8, 10].map((m) => m * ten).find((m) => m >= x);
}

export class Overload {
  constructor(hello, post, radios) {
    this.hello = hello;
    this.post = post;
    this.moments = [];
    this.touched = -Infinity;
    $("capacity").textContent = `Each request takes ${hello.work} ms of processor time, so this machine can do about ` +
      `${hello.capacity} a second. Clients give up after 1 s; an answer after ${hello.slo} ms is late. This page comes from the same process: it stutters when that is overloaded.`;
    radios($("strategies"), "strategy", hello.strategies, () => this.send(this.order.running));
    $("load").addEventListener("input", () => this.moved());
    $("run").addEventListener("click", () => this.send(!this.order.running));
  }

  clear() { this.moments = []; }

  moved() {
    this.touched = performance.now();
    this.writeLoad(Number($("load").value));
    clearTimeout(this.later);
    this.later = setTimeout(() => this.send(this.order.running), 300);
  }

  send(running) {
    this.touched = performance.now();
    const strategy = $("strategies").querySelector(":checked")?.value ?? "none";
    this.post("overload", { running, strategy, load: Number($("load").value) });
  }

  writeLoad(percent) {
    $("load-value").textContent = `${percent} % of capacity, ${Math.round(this.hello.capacity * percent / 100)} /s`;
  }

  take(f) {
    this.order = f.order;
    this.moments.push(...f.moments);
    this.moments.splice(0, Math.max(this.moments.length - this.hello.moments, 0));
    if (performance.now() - this.touched > 800) {
      $("load").value = f.order.load;
      this.writeLoad(f.order.load);
      for (const input of $("strategies").querySelectorAll("input")) input.checked = input.value === f.order.strategy;
    }
    $("run").textContent = f.order.running ? "Stop the load" : "Start the load";
    $("why").textContent = f.why.replaceAll("2147483647", "none");
    this.draw();
  }

  draw() {
    const last = this.moments.at(-1) ?? { answers: [0, 0, 0, 0], p50: 0, p99: 0, inFlight: 0, limit: 0, waiting: 0 };
    this.drawAnswers();
    this.lines("latency", [["p50", "--at-once"], ["p99", "--denied"]], " ms", this.hello.slo);
    this.lines("flight", [["waiting", "--arriving"], ["limit", "--delayed"], ["inFlight", "--at-once"]], "");
    const recent = this.moments.slice(-perSecond);
    legend("answers-legend", answers.map(([name, c], i) => [name, c, recent.reduce((n, m) => n + m.answers[i], 0)]));
    legend("latency-legend", [["p50", "--at-once", Math.round(last.p50) + " ms"], ["p99", "--denied", Math.round(last.p99) + " ms"]]);
    legend("flight-legend", [["in flight", "--at-once", last.inFlight], ["limit", "--delayed", last.limit || "none"],
      ["clients waiting", "--arriving", last.waiting]]);
  }

  // frameOf clears a chart and draws its scale up to most.
  frameOf(id, most, unit) {
    const { pen, width, height } = canvas($(id));
    pen.font = "10.5px system-ui, sans-serif";
    for (const share of [0, .5, 1]) {
      const y = Math.round((height - 14) * (1 - share)) + 12.5;
      pen.fillStyle = colour("--line");
      pen.fillRect(0, y, width, 1);
      pen.fillStyle = colour("--soft");
      if (share) pen.fillText(most * share + unit, 0, y - 3);
    }
    const step = width / this.hello.moments, left = this.hello.moments - this.moments.length;
    const changes = this.moments.flatMap((m, i) => i && m.strategy === this.moments[i - 1].strategy ? [] : [i]);
    changes.forEach((i, k) => { // of the strategy, named where there is room
      const x = (left + i) * step, next = k + 1 < changes.length ? (left + changes[k + 1]) * step : width;
      const title = this.hello.strategies.find((s) => s.name === this.moments[i].strategy)?.title ?? "";
      pen.fillStyle = colour("--soft");
      if (i) pen.fillRect(x, 13, 1, height - 14);
      const begin = Math.max(x + 4, 58);
      if (begin + pen.measureText(title).width < next) pen.fillText(title, begin, 9);
    });
    return { pen, width, step, first: left, y: (v) => height - 1.5 - (height - 14) * Math.min(v / most, 1) };
  }

  drawAnswers() {
    const sums = this.moments.map((m) => m.answers.reduce((a, b) => a + b, 0) * perSecond);
    const { pen, step, first, y } = this.frameOf("answers", nice(Math.max(10, ...sums)), " /s");
    this.moments.forEach((m, i) => {
      let below = 0;
      answers.forEach(([, c], k) => {
        const n = m.answers[k] * perSecond;
        pen.fillStyle = colour(c);
        pen.fillRect((first + i) * step, y(below + n), Math.max(step - .5, 1), y(below) - y(below + n));
        below += n;
      });
    });
  }

  lines(id, series, unit, mark) {
    const most = nice(Math.max(mark ?? 8, ...this.moments.flatMap((m) => series.map(([key]) => m[key]))));
    const { pen, width, step, first, y } = this.frameOf(id, most, unit);
    if (mark) {
      pen.fillStyle = colour("--delayed");
      for (let x = 0; x < width; x += 6) pen.fillRect(x, y(mark), 3, 1);
    }
    pen.lineWidth = 1.5;
    for (const [key, c] of series) {
      pen.strokeStyle = colour(c);
      pen.beginPath();
      let open = false;
      this.moments.forEach((m, i) => {
        if (!m[key] && key !== "inFlight" && key !== "waiting") { open = false; return; }
        const x = (first + i + .5) * step;
        if (open) pen.lineTo(x, y(m[key])); else pen.moveTo(x, y(m[key]));
        open = true;
      });
      pen.stroke();
    }
  }
}

function legend(id, entries) {
  const classes = { "--at-once": "at-once", "--delayed": "delayed", "--denied": "denied", "--arriving": "" };
  $(id).replaceChildren(...entries.map(([name, c, value]) => {
    const key = document.createElement("span"), number = document.createElement("b");
    key.className = "key " + classes[c];
    number.textContent = value;
    key.append(name + " ", number);
    return key;
  }));
}
