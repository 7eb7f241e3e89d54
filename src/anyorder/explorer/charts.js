// Two drawings of one column: an axis to drag a range on, and bars of levels that are buttons.
//
// Before (grey) and after (colour) lie over each other, since the cells of an axis never change.

import { h, s, say } from "./dom.js";
import { levelsOf, onAxis, percent, plain, same, written } from "./words.js";

const WIDE = 1000, HIGH = 100;
const A_CLICK = 4; // pixels that a pointer may tremble
const FEW = 7; // levels shown before "show all"
const LONG = 16; // letters of a level beyond which its bar stands below its name

/** Where a column's numbers stand on its axis: 0 to 1, and back. */
class Scale {
  constructor(axis) {
    this.log = axis.logarithmic && axis.edges[0] > 0;
    this.form = this.log ? Math.log : (x) => x;
    this.first = this.form(axis.edges[0]);
    this.width = this.form(axis.edges.at(-1)) - this.first || 1;
  }
  share(number) { return (this.form(number) - this.first) / this.width; }
  number(share) {
    const there = this.first + Math.min(1, Math.max(0, share)) * this.width;
    return this.log ? Math.exp(there) : there;
  }
}

/** A number of an axis as people would say it: rounded to a hundredth of the axis, or to two digits where it is logarithmic. */
export function sayable({ axis, step }, number) {
  const size = axis.logarithmic && axis.edges[0] > 0 ? Math.abs(number) : axis.edges.at(-1) - axis.edges[0];
  const fine = 10 ** Math.floor(Math.log10(size / 20));
  const unit = Math.max(fine, axis.step || 0, step ? Math.min(step, fine * 10) : 0);
  return Number(plain(Math.round(number / unit) * unit));
}

/** The range of an axis that a statement leaves possible, in numbers to draw by; null if it is none. */
export function rangeOf(column, statement) {
  if (statement === undefined || statement === null || !column.axis) return null;
  const number = (value) => { const found = onAxis(value); return Number.isFinite(found) ? found : null; };
  if (typeof statement !== "object") {
    const at = number(statement);
    return at === null ? null : [at, at];
  }
  if ("value" in statement) { const at = number(statement.value); return at === null ? null : [at, at]; }
  if (!("low" in statement) && !("high" in statement)) return null;
  const ends = [statement.low ?? null, statement.high ?? null].map((end) => (end === null ? null : number(end)));
  return [ends[0] ?? -Infinity, ends[1] ?? Infinity];
}

/** An axis with the density before and after; a click says a value, a drag a range. */
export class AxisChart {
  constructor(column, onsay) {
    this.column = column;
    this.onsay = onsay;
    this.scale = new Scale(column.axis);
    this.places = column.axis.edges.map((edge) => this.scale.share(edge));
    this.before = s("path", { class: "before" });
    this.after = s("path", { class: "after" });
    this.interval = s("rect", { class: "interval", y: HIGH - 2.5, height: 2.5 });
    this.chosen = s("rect", { class: "chosen", y: 0, height: HIGH });
    this.svg = s("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none", "aria-hidden": "true" },
      this.before, this.after, this.interval, this.chosen);
    // Times of day would not fit beside each other.
    const texts = column.axis.written.map((text) => (column.kind === "datetime" ? text.split(" ")[0] : text));
    this.readout = h("span", { class: "readout" });
    this.element = h("div", { class: "axis-chart" },
      h("div", { class: "plot", title: "click for a value, drag for a range" }, this.svg),
      h("div", { class: "ends" }, h("span", {}, texts[0]), this.readout, h("span", {}, texts.at(-1))));
    this.#listen(this.element.firstChild);
  }

  draw(before, after, statement) {
    const densities = [before, after].map((one) => (one?.cells ? this.#density(one.cells) : null));
    const highest = Math.max(...densities.flatMap((one) => one ?? [0])) || 1;
    this.before.setAttribute("d", densities[0] ? this.#path(densities[0], highest) : "");
    this.after.setAttribute("d", densities[1] ? this.#path(densities[1], highest) : "");
    const shown = after ?? before;
    this.interval.classList.toggle("quiet", !after);
    this.#span(this.interval, shown && shown.low !== undefined ? [onAxis(shown.low), onAxis(shown.high)] : null);
    this.statement = statement;
    this.#choose(rangeOf(this.column, statement));
  }

  #density(cells) { return cells.map((p, k) => p / (this.places[k + 1] - this.places[k] || 1)); }

  #path(density, highest) {
    const x = (share) => (WIDE * share).toFixed(1), y = (value) => (HIGH - 4 - ((HIGH - 8) * value) / highest).toFixed(1);
    const floor = y(0), points = [];
    if (this.column.axis.step > 0 && density.length <= 40) {
      density.forEach((value, k) => points.push(`${x(this.places[k])} ${y(value)}`, `${x(this.places[k + 1])} ${y(value)}`));
    } else density.forEach((value, k) => points.push(`${x((this.places[k] + this.places[k + 1]) / 2)} ${y(value)}`));
    return `M${points[0].split(" ")[0]} ${floor}L${points.join("L")}L${points.at(-1).split(" ")[0]} ${floor}Z`;
  }

  #span(rectangle, ends, least = 0) {
    rectangle.style.display = ends ? "" : "none";
    if (!ends) return;
    const [from, to] = ends.map((end) => Math.min(1, Math.max(0, Number.isFinite(end) ? this.scale.share(end) : end < 0 ? 0 : 1)));
    const width = Math.max(to - from, least);
    rectangle.setAttribute("x", (WIDE * Math.min(from, 1 - width)).toFixed(1));
    rectangle.setAttribute("width", (WIDE * width).toFixed(1));
  }

  #choose(ends) { this.#span(this.chosen, ends, 0.008); }

  /** A number near a place that people would say; an edge where values have a form of their own. */
  #near(share) {
    const { axis, kind, own_form: own } = this.column;
    if (kind === "datetime" || own) {
      let best = 0;
      this.places.forEach((place, k) => { if (Math.abs(place - share) < Math.abs(this.places[best] - share)) best = k; });
      return { value: axis.values[best], number: axis.edges[best] };
    }
    const rounded = sayable(this.column, this.scale.number(share));
    return { value: rounded, number: rounded };
  }

  #statement(from, to) {
    if (same(from.value, to.value)) return from.value;
    const [low, high] = from.number < to.number ? [from, to] : [to, from];
    return { low: low.value, high: high.value };
  }

  #listen(plot) {
    let start = null, began = 0;
    const share = (event) => { const box = plot.getBoundingClientRect(); return (event.clientX - box.left) / box.width; };
    const show = (value) => written(this.column, value);
    plot.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      [start, began] = [share(event), event.clientX];
      plot.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    plot.addEventListener("pointermove", (event) => {
      const here = this.#near(share(event));
      if (start === null) return say(this.readout, show(here.value));
      const from = this.#near(start);
      this.#choose([from.number, here.number].sort((a, b) => a - b));
      return say(this.readout, same(from.value, here.value) ? show(here.value) : [from, here].sort((a, b) => a.number - b.number).map((one) => show(one.value)).join(" to "));
    });
    plot.addEventListener("pointerup", (event) => {
      if (start === null) return;
      const from = this.#near(start), to = this.#near(share(event)), a_click = Math.abs(event.clientX - began) < A_CLICK;
      start = null;
      this.onsay(a_click ? to.value : this.#statement(from, to));
    });
    const leave = () => { start = null; say(this.readout, ""); this.#choose(rangeOf(this.column, this.statement)); };
    plot.addEventListener("pointercancel", leave);
    plot.addEventListener("pointerleave", () => { if (start === null) leave(); });
  }
}

/** Bars of levels. A click chooses one, with Shift (or Ctrl) one more; the chosen one again takes it back. */
export class LevelBars {
  constructor(column, levels, onsay) {
    this.column = column;
    this.onsay = onsay;
    this.rows = levels.map((level) => this.#row(level));
    this.all = levels.length <= FEW + 1;
    this.more = h("button", { class: "more", type: "button", onclick: () => { this.all = true; this.#hide(); } });
    const long = levels.some((level) => level.written.length > LONG);
    this.element = h("div", { class: long ? "levels long" : "levels", role: "group", "aria-label": `levels of ${column.name}` }, ...this.rows.map((row) => row.element), this.more);
    this.#hide();
  }

  #row({ level, written: text }) {
    const before = h("span", { class: "bar before" }), after = h("span", { class: "bar after" }), share = h("span", { class: "share" });
    const element = h("button", { type: "button", class: "level", "aria-pressed": "false", onclick: (event) => this.#pick(level, event.shiftKey || event.ctrlKey || event.metaKey) },
      h("span", { class: "name", title: text }, text), h("span", { class: "track", "aria-hidden": "true" }, before, after), share);
    return { level, element, before, after, share };
  }

  #pick(level, more) {
    const chosen = this.chosen ?? [], there = chosen.some((one) => same(one, level));
    let next = more ? (there ? chosen.filter((one) => !same(one, level)) : [...chosen, level]) : there && chosen.length === 1 ? [] : [level];
    next = this.rows.map((row) => row.level).filter((one) => next.some((other) => same(one, other)));
    const all = next.length === this.column.levels.length; // says nothing; all atoms do: that it is one of them
    this.onsay(!next.length || all ? null : next.length === 1 ? { value: next[0] } : { one_of: next });
  }

  draw(before, after, statement) {
    this.chosen = levelsOf(statement);
    const prob = (marginal, level) => marginal?.probs?.find((one) => same(one.level, level))?.prob;
    for (const row of this.rows) {
      const was = prob(before, row.level), given = this.chosen?.some((one) => same(one, row.level));
      const is = prob(after, row.level) ?? (after || !this.chosen ? undefined : this.chosen.length === 1 ? Number(given) : undefined);
      row.before.style.width = `${100 * (was ?? 0)}%`;
      row.after.style.width = `${100 * (is ?? 0)}%`;
      row.after.hidden = is === undefined;
      say(row.share, is === undefined && was === undefined ? "" : percent(is ?? was));
      row.element.setAttribute("aria-pressed", String(Boolean(given)));
    }
    this.#hide();
  }

  #hide() {
    this.rows.forEach((row, k) => { row.element.hidden = !this.all && k >= FEW && row.element.getAttribute("aria-pressed") !== "true"; });
    this.more.hidden = this.all;
    say(this.more, `show all ${this.rows.length}`);
  }
}
