"use strict";
// Curves with hover, zoom and a choice of scale; tables that sort. Texts from the report only ever become text nodes.

const HEIGHT = 260, MARGIN = { left: 56, right: 12, top: 10, bottom: 34 };
const COLOURS = 8;

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function drawn(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function colour(curve) { return `var(--c${curve.colour % COLOURS})`; }

function dash(curve) { return ["", "6 3", "2 3", "8 3 2 3"][Math.floor(curve.colour / COLOURS) % 4]; }

// Round numbers between low and high, about as many as wanted; for epochs whole ones.
function ticks(low, high, wanted, whole = false) {
  const rough = Math.max((high - low) / wanted, whole ? 1 : 0), power = 10 ** Math.floor(Math.log10(rough));
  const steps = [1, 2, 2.5, 5, 10].map((m) => m * power).filter((s) => !whole || Number.isInteger(s));
  const step = steps.find((s) => s >= rough * 0.999);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high * (1 + 1e-12) + 1e-12; k++) found.push(k * step);
  return found;
}

function number(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e6 || size < 1e-3 ? value.toExponential(3).replace(/\.?0+e/, "e") : String(Number(value.toPrecision(6)));
}

class Plot {
  constructor(figure, chart) {
    this.chart = chart;
    this.scale = 0;
    this.hidden = new Set();
    this.range = null;
    this.place = figure.querySelector(".plot");
    this.place.replaceChildren();
    this.tip = element("div", { class: "tip", hidden: "" });
    figure.append(this.keys());
    new ResizeObserver(() => this.draw()).observe(this.place);
  }

  keys() {
    const box = element("div", { class: "keys" });
    this.chart.curves.forEach((curve, index) => {
      const swatch = element("span", { class: "swatch", style: `background: ${colour(curve)}` });
      const button = element("button", { type: "button", "aria-pressed": "true" }, swatch, curve.name);
      button.addEventListener("click", () => {
        if (!this.hidden.delete(index)) this.hidden.add(index);
        button.setAttribute("aria-pressed", String(!this.hidden.has(index)));
        this.draw();
      });
      box.append(button);
    });
    if (this.chart.scales.length > 1) box.append(this.choice());
    return box;
  }

  choice() {
    const select = element("select", { "aria-label": "horizontal scale" });
    this.chart.scales.forEach((name, index) => select.append(element("option", { value: index }, name)));
    select.addEventListener("change", () => { this.scale = Number(select.value); this.range = null; this.draw(); });
    return select;
  }

  shown() { return this.chart.curves.filter((_, index) => !this.hidden.has(index)); }

  x(point) { return point[this.scale]; }

  y(point) { return point[point.length - 1]; }

  limits() {
    const points = this.shown().flatMap((curve) => curve.points);
    let [left, right] = this.range ?? [Infinity, -Infinity];
    if (!this.range) for (const p of points) { left = Math.min(left, this.x(p)); right = Math.max(right, this.x(p)); }
    let low = Infinity, high = -Infinity;
    for (const p of points) {
      if (this.x(p) < left || this.x(p) > right) continue;
      low = Math.min(low, this.y(p)); high = Math.max(high, this.y(p));
    }
    if (low > high) return null;
    const slack = (high - low) * 0.06 || Math.abs(high) * 0.05 || 1;
    return { left, right: right > left ? right : left + 1, low: low - slack, high: high + slack };
  }

  draw() {
    this.place.replaceChildren(this.tip);
    this.tip.hidden = true;
    const width = this.place.clientWidth, limits = this.limits();
    if (!limits || width < 80) return;
    this.box = { ...limits, width };
    const svg = drawn("svg", { height: HEIGHT, role: "img", "aria-label": this.chart.title });
    const id = `clip-${Math.random().toString(36).slice(2)}`;
    const clip = drawn("clipPath", { id });
    clip.append(drawn("rect", { x: MARGIN.left, y: 0, width: width - MARGIN.left - MARGIN.right, height: HEIGHT - MARGIN.bottom }));
    svg.append(clip, ...this.axes());
    for (const curve of this.shown()) svg.append(this.curve(curve, id));
    this.listen(svg);
    this.place.append(svg);
  }

  across(value) {
    const { left, right, width } = this.box;
    return MARGIN.left + (value - left) / (right - left) * (width - MARGIN.left - MARGIN.right);
  }

  down(value) {
    const { low, high } = this.box;
    return MARGIN.top + (high - value) / (high - low) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  }

  back(pixels) {
    const { left, right, width } = this.box;
    return left + (pixels - MARGIN.left) / (width - MARGIN.left - MARGIN.right) * (right - left);
  }

  axes() {
    const { left, right, low, high, width } = this.box, bottom = HEIGHT - MARGIN.bottom, made = [];
    for (const value of ticks(low, high, 5)) {
      made.push(drawn("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: this.down(value), y2: this.down(value) }));
      made.push(drawn("text", { x: MARGIN.left - 6, y: this.down(value) + 4, "text-anchor": "end" }, number(value)));
    }
    const whole = this.shown().every((curve) => curve.points.every((p) => Number.isInteger(this.x(p))));
    for (const value of ticks(left, right, Math.max(2, Math.floor(width / 90)), whole)) {
      made.push(drawn("text", { x: this.across(value), y: bottom + 16, "text-anchor": "middle" }, number(value)));
    }
    made.push(drawn("text", { x: width - MARGIN.right, y: HEIGHT - 3, "text-anchor": "end" }, this.chart.scales[this.scale]));
    return made;
  }

  curve(curve, clip) {
    const spots = curve.points.map((p) => `${this.across(this.x(p)).toFixed(1)},${this.down(this.y(p)).toFixed(1)}`);
    const look = { class: "curve", style: `stroke: ${colour(curve)}`, "stroke-dasharray": dash(curve), "clip-path": `url(#${clip})` };
    if (spots.length > 1) return drawn("polyline", { ...look, points: spots.join(" ") });
    const [cx, cy] = spots[0].split(",");
    return drawn("circle", { cx, cy, r: 4, style: `fill: ${colour(curve)}` });
  }

  listen(svg) {
    const line = drawn("line", { class: "cursor", y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom, visibility: "hidden" });
    const brush = drawn("rect", { class: "brush", y: MARGIN.top, height: HEIGHT - MARGIN.top - MARGIN.bottom, visibility: "hidden" });
    svg.append(brush, line);
    let start = null;
    const at = (event) => event.clientX - svg.getBoundingClientRect().left;
    svg.addEventListener("pointermove", (event) => {
      this.point(at(event), line);
      if (start === null) return;
      const [from, to] = [start, at(event)].sort((a, b) => a - b);
      for (const [key, value] of Object.entries({ x: from, width: to - from, visibility: "visible" })) brush.setAttribute(key, value);
    });
    svg.addEventListener("pointerdown", (event) => {
      this.point(at(event), line);
      if (event.pointerType === "mouse") { start = at(event); svg.setPointerCapture(event.pointerId); }
    });
    svg.addEventListener("pointerup", (event) => {
      const [from, to] = [start ?? 0, at(event)].sort((a, b) => a - b);
      if (start !== null && to - from > 10) { this.range = [this.back(from), this.back(to)]; this.draw(); }
      start = null;
    });
    svg.addEventListener("dblclick", () => { this.range = null; this.draw(); });
    svg.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "touch") return; // a finger leaves at once: what it asked for stays
      this.tip.hidden = true; line.setAttribute("visibility", "hidden");
    });
  }

  // Shows the values nearest to a place.
  point(pixels, line) {
    const wanted = this.back(pixels);
    const near = this.shown().map((curve) => [curve, nearest(curve.points, (p) => Math.abs(this.x(p) - wanted))]);
    if (!near.length) return;
    const centre = this.x(nearest(near.map(([, p]) => p), (p) => Math.abs(this.x(p) - wanted)));
    const place = this.across(centre);
    for (const [key, value] of Object.entries({ x1: place, x2: place, visibility: "visible" })) line.setAttribute(key, value);
    const rows = near.map(([curve, p]) => element("div", {},
      element("span", { class: "swatch", style: `background: ${colour(curve)}` }), element("span", {}, curve.name), element("span", {}, number(this.y(p)))));
    this.tip.replaceChildren(element("b", {}, `${this.chart.scales[this.scale]} ${number(centre)}`), ...rows);
    this.tip.hidden = false;
    const room = this.box.width, own = this.tip.offsetWidth;
    this.tip.style.left = `${place + own + 12 < room ? place + 10 : Math.max(0, place - own - 10)}px`;
  }
}

function nearest(items, distance) {
  return items.reduce((best, item) => (distance(item) < distance(best) ? item : best));
}

function sortable(table) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const rows = [...body.rows].sort((a, b) => compare(a.cells[column].dataset.key, b.cells[column].dataset.key));
    body.append(...(up ? rows : rows.reverse()));
  }));
}

function compare(a, b) {
  const [x, y] = [a, b].map((text) => (text === "" ? NaN : Number(text)));
  if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) && Number.isNaN(y) ? a.localeCompare(b) : Number.isNaN(x) ? 1 : -1;
  return x - y;
}

const charts = JSON.parse(document.getElementById("charts").textContent);
for (const figure of document.querySelectorAll("[data-chart]")) new Plot(figure, charts[Number(figure.dataset.chart)]);
document.querySelectorAll("table").forEach(sortable);
for (const picture of document.querySelectorAll(".pictures img")) {
  picture.addEventListener("click", () => picture.closest("figure").classList.toggle("large"));
}
for (const box of document.querySelectorAll(".differ")) {
  const part = box.closest(".table"), update = () => part.classList.toggle("only", box.checked);
  box.addEventListener("change", update);
  update();
}
