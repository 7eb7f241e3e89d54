// The tabs that show tables: rows drawn under the conditions, a file filled in, a file searched for oddities.

import { onlyLatest } from "./api.js";
import { h, say } from "./dom.js";
import { moment, percent, title, written } from "./words.js";

const SHOWN = 200; // rows of a table on the page; downloads hold all
const POLL = 300; // milliseconds between two looks at a job

const ODD = 0.1, LEAST = 5; // of cells and rows, those that are less probable are shown, and the first few in any case

/** A value as people read it: levels as their column writes them, times without their T. */
function cell(value, column) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return Number(value.toPrecision(7)).toString();
  return column?.levels.length ? written(column, value) : moment(column, value);
}

/** A table; `mark(row, column, td)` may colour a cell; `facts` are what the schema says of columns. */
function table(columns, rows, mark = () => {}, facts = []) {
  const known = columns.map((name) => facts.find((one) => one.name === name));
  const numeric = columns.map((_, k) => rows.some((row) => typeof row[k] === "number") && rows.every((row) => typeof row[k] === "number" || (row[k] ?? null) === null));
  const head = h("tr", {}, ...columns.map((name, k) => h("th", { scope: "col", class: numeric[k] && "number", title: name }, title(name))));
  const body = rows.slice(0, SHOWN).map((row, at) => h("tr", {}, ...row.map((value, k) => {
    const td = h("td", { class: numeric[k] && "number" }, cell(value, known[k]));
    mark(at, columns[k], td);
    return td;
  })));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "table" }, h("table", {}, h("thead", {}, head), h("tbody", {}, ...body)));
}

export function asCsv(columns, rows) {
  const text = (value) => { const shown = value === null ? "" : String(value); return /[",\n]/.test(shown) ? `"${shown.replaceAll('"', '""')}"` : shown; };
  return [columns, ...rows].map((row) => row.map(text).join(",")).join("\n") + "\n";
}

function save(blob, name) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const button = (label, act, kind = "") => h("button", { type: "button", class: `quiet-button ${kind}`, onclick: act }, label);

/** Rows drawn jointly: what the world looks like where the conditions hold. */
export class RowsPanel {
  #seed = 0;
  #latest = onlyLatest();
  #drawn = null;

  constructor(ask, columns, given, fail, most) {
    Object.assign(this, { ask, columns, given, fail });
    [this.few, this.many] = [50, 1000].map((count) => Math.min(count, most));
    this.words = h("p");
    this.out = h("div");
    this.element = h("section", { class: "tab", "aria-label": "rows" }, this.words,
      h("div", { class: "actions" }, button("Draw others", () => { this.#seed += 1; this.#draw(); }), button(`Download up to ${this.many} as CSV`, () => this.#download())), this.out);
  }

  stale() {
    this.#drawn = null;
    if (this.element.isConnected) this.#draw();
  }

  open() {
    if (!this.#drawn) this.#draw();
  }

  async #draw() {
    const given = this.given();
    try {
      const answer = this.#drawn = await this.ask("sample", { given, count: this.few, seed: this.#seed }, { signal: this.#latest("rows") });
      const known = Object.keys(given);
      const count = `${answer.rows.length} rows`;
      say(this.words, known.length ? `${count} that the model draws where the conditions hold (${known.map(title).join(", ")}): each is a whole, with all columns in keeping with each other.` : `${count} as the model draws them. Say something on the first tab, and they follow it.`);
      this.out.replaceChildren(table(answer.columns, answer.rows, (_, column, td) => { if (known.includes(column)) td.classList.add("held"); }, this.columns));
    } catch (error) { if (error.name !== "AbortError") this.fail(error); }
  }

  async #download() {
    try {
      save(await this.ask("sample", { given: this.given(), count: this.many, seed: this.#seed }, { accept: "text/csv" }), "rows.csv");
    } catch (error) { this.fail(error); }
  }
}

/** A place to drop a CSV; `take(bytes, name)` gets it as it is, in whatever encoding, `example()` makes one. */
function dropZone(words, take, example) {
  const file = h("input", { type: "file", accept: ".csv,text/csv", hidden: true, onchange: async () => { const one = file.files[0]; if (one) take(await one.arrayBuffer(), one.name); file.value = ""; } });
  const zone = h("div", { class: "drop" }, words, " ", button("choose a file", () => file.click()), " ", button("take an example", example), file);
  zone.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over"); });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", async (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    const one = event.dataTransfer.files[0];
    if (one) take(await one.arrayBuffer(), one.name);
  });
  return zone;
}

/** Every third cell or so of some rows, by a fixed rule: an example has no need of chance. */
const holed = (rows) => rows.map((row, i) => row.map((value, k) => ((i * 5 + k * 3) % 7 < 2 ? null : value)));

/** Holes filled, shaded by how unsure they are. */
export class FillPanel {
  constructor(ask, root, columns, fail) {
    Object.assign(this, { ask, root, columns, fail });
    this.status = h("p", { role: "status" });
    this.actions = h("div", { class: "actions" });
    this.out = h("div");
    this.element = h("section", { class: "tab", "aria-label": "fill" },
      h("p", {}, "Drop a CSV with columns of this model. Its empty cells come back filled; the deeper the colour, the less sure the model is. What is known stays as it is. The file goes to this service alone."),
      dropZone("Drop a CSV here, or", (file, name) => this.#fill(file, name), () => this.#example()), this.status, this.actions, this.out);
  }

  async #example() {
    try {
      const { columns, rows } = await this.ask("sample", { count: 12, seed: 1 });
      await this.#fill(asCsv(columns, holed(rows)), "example.csv");
    } catch (error) { this.fail(error); }
  }

  async #fill(file, name) {
    this.fail(null);
    this.out.replaceChildren();
    this.#forget();
    try {
      const job = this.job = await this.ask("fill?job=true&uncertainty=true&unseen=missing", file, { type: "text/csv" });
      const done = await this.#wait(job, name);
      if (!done) return;
      const answer = await this.root(`jobs/${job.id}/result`), cells = new Map((answer.filled ?? []).map((one) => [`${one.row}\n${one.column}`, one]));
      say(this.status, `${name}: ${cells.size} cells filled in ${answer.rows.length} rows.${answer.rows.length > SHOWN ? ` The first ${SHOWN} are shown.` : ""} ${(answer.notes ?? []).join(" ")}`);
      const download = async () => { try { save(await this.root(`jobs/${job.id}/result`, null, { accept: "text/csv" }), name.replace(/(\.csv)?$/i, "-filled.csv")); } catch (error) { this.fail(error); } };
      this.actions.replaceChildren(button("Download as CSV", download, "primary"));
      this.out.replaceChildren(table(answer.columns, answer.rows, (row, column, td) => {
        const one = cells.get(`${row}\n${column}`);
        if (!one) return;
        td.classList.add("filled");
        const facts = this.columns.find((other) => other.name === column);
        td.textContent = cell(one.written, facts);
        td.style.setProperty("--tint", `${Math.round(12 + 58 * (1 - one.certainty))}%`);
        td.title = one.low === undefined || one.low === null ? `filled; certainty ${percent(one.certainty)}` : `filled; 90 % between ${cell(one.low, facts)} and ${cell(one.high, facts)}`;
      }, this.columns));
    } catch (error) {
      say(this.status, "");
      this.actions.replaceChildren();
      this.fail(error);
    }
  }

  /** The service need not keep the file of before, nor go on with it. */
  #forget() {
    if (this.job) this.root(`jobs/${this.job.id}`, null, { method: "DELETE" }).catch(() => {}); // it may have forgotten it itself
    this.job = null;
  }

  /** Whether the job came to its end; it can be cancelled while it runs, and another file takes its place. */
  async #wait(job, name) {
    const bar = h("progress", { "aria-label": "progress" });
    this.actions.replaceChildren(bar, button("Cancel", () => this.root(`jobs/${job.id}`, null, { method: "DELETE" })));
    for (;;) {
      if (this.job !== job) return false;
      const at = await this.root(`jobs/${job.id}`);
      if (this.job !== job) return false;
      if (at.total) [bar.max, bar.value] = [at.total, at.done];
      say(this.status, `${name}: ${at.total ? `${at.done} of ${at.total} rows` : at.state}`);
      if (at.state === "done") return true;
      if (at.state === "cancelled") { say(this.status, `${name}: cancelled`); this.actions.replaceChildren(); return false; }
      if (at.state === "failed") { await this.root(`jobs/${job.id}/result`); return false; } // says why
      await new Promise((resolve) => { setTimeout(resolve, POLL); });
    }
  }
}

/** Cells and rows that are surprising, with the reason. */
export class AnomaliesPanel {
  constructor(ask, columns, fail) {
    Object.assign(this, { ask, columns, fail });
    this.rows = h("select", { "aria-label": "what to look for", onchange: () => this.last && this.#find(...this.last) }, h("option", { value: "false" }, "cells"), h("option", { value: "true" }, "whole rows"));
    this.status = h("p", { role: "status" });
    this.out = h("div");
    this.element = h("section", { class: "tab", "aria-label": "anomalies" },
      h("p", {}, "Drop a CSV: the cells that fit least to the rest of their row come first, each with what the model expected in its place. Or look for whole rows, each with the cell that fits least."),
      dropZone("Drop a CSV here, or", (file, name) => this.#find(file, name), () => this.#example()),
      h("div", { class: "actions" }, h("label", {}, "look for ", this.rows)), this.status, this.out);
  }

  /** Drawn rows, two of which swapped a cell. */
  async #example() {
    try {
      const { columns, rows } = await this.ask("sample", { count: 30, seed: 2 });
      const last = columns.length - 1;
      [rows[3][last], rows[3][0]] = [rows.find((row) => row[last] !== rows[3][last])?.[last] ?? rows[3][last], rows[3][0]];
      [rows[7][0], rows[20][0]] = [rows[20][0], rows[7][0]];
      await this.#find(asCsv(columns, rows), "example.csv");
    } catch (error) { this.fail(error); }
  }

  async #find(file, name) {
    this.fail(null);
    this.last = [file, name];
    const whole = this.rows.value === "true";
    say(this.status, `${name}: looking …`);
    try {
      const answer = await this.ask(`anomalies?top=30&unseen=missing&rows=${whole}`, file, { type: "text/csv" });
      const odd = answer.anomalies.filter((one, at) => at < LEAST || one.probability < ODD);
      say(this.status, `${name}: the ${odd.length} most surprising ${whole ? "rows" : "cells"} of ${answer.rows} rows. ${(answer.notes ?? []).join(" ")}`);
      const why = (p) => `${percent(p)} ${whole ? "of rows are" : "of values would be"} as odd`;
      const shown = (one, value) => (typeof value === "number" ? value : cell(value, this.columns.find((column) => column.name === one.column)));
      const reason = (one) => [title(one.column ?? ""), shown(one, one.value), shown(one, one.expected)];
      const head = whole ? ["row", "why", "fits least", "value", "expected"] : ["row", "column", "value", "expected", "why"];
      const lines = odd.map((one) => (whole ? [one.row + 1, why(one.probability), ...reason(one)] : [one.row + 1, ...reason(one), why(one.probability)]));
      this.out.replaceChildren(table(head, lines, (_, column, td) => { if (column === "value") td.classList.add("odd"); }));
    } catch (error) {
      say(this.status, "");
      this.fail(error);
    }
  }
}
