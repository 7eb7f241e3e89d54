// How the explorer asks in a report, where nobody is there to answer: of rows that the model drew, those are kept that
// satisfy the conditions, and counted.
//
// What is kept of independent draws of p(x) are independent draws of p(x | conditions), so any combination of levels, sets,
// ranges and missing cells has an answer, with the error of a count. A condition on one exact number of a line keeps
// nothing; it is taken as a narrow range around it, and that is said.

import { Failure } from "./api.js";
import { asCsv } from "./tables.js";
import { fewDigits, onAxis, plain, same, said } from "./words.js";

const QUANTILES = { low: 0.05, median: 0.5, high: 0.95 };
const NEAR = 1 / 40; // of an axis, to each side of an exact number
const FEW = 100; // kept rows below which a warning is due
const EXACTLY = "anyorder serve MODEL on the command line, or model.explore() in a notebook, answers exactly.";

/** What a report holds, unpacked: base64 of deflated JSON. */
export async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
}

/**
 * An `ask` of drawn rows. `drawn`: {name, rows, schema, cells: {column: numbers}}, where cells are the numbers of an axis,
 * or which level it is; null where a cell is missing.
 */
export function fromDraws(drawn) {
  const columns = drawn.schema.columns.map((facts) => new Column(facts, drawn.cells[facts.name], drawn.forms?.[facts.name]));
  const all = Array.from({ length: drawn.rows }, (_, row) => row);
  for (const column of columns) column.facts.marginal = column.marginal(all, drawn.rows);
  for (const { facts } of columns) facts.levels.forEach((level, k) => { level.share = facts.marginal.probs[k].prob; });

  const kept = (given) => {
    const notes = [], tests = Object.entries(given).filter(([, statement]) => statement !== null).map(([name, statement]) => columns.find((one) => one.facts.name === name).test(statement, notes));
    return [all.filter((row) => tests.every((test) => test(row))), notes];
  };

  function marginals({ given = {} }) {
    const [rows, notes] = kept(given), words = Object.entries(given).map(([name, statement]) => `${name} ${said(columns.find((one) => one.facts.name === name).facts, statement)}`).join(", ");
    const of = `${drawn.rows.toLocaleString("en")} rows that the model drew`;
    if (!rows.length) throw new Failure({ message: `None of the ${of} satisfies all of these conditions: take one of them back, or widen a range. ${EXACTLY}` });
    const answered = columns.filter((one) => !(Object.hasOwn(given, one.facts.name) && one.settled(given[one.facts.name])));
    const error = 50 / Math.sqrt(rows.length); // at a share of one half, in hundredths: the greatest that it can be
    const basis = Object.keys(given).length ? `From ${rows.length.toLocaleString("en")} of the ${of}: shares are uncertain by ± ${error < 1 ? error.toFixed(1) : Math.round(error)} point${Math.round(error) === 1 && error >= 1 ? "" : "s"} at most. ${notes.join(" ")}` : "";
    const warnings = rows.length < FEW ? [`Only ${rows.length} drawn row${rows.length === 1 ? " is" : "s are"} left, so this is rough. ${EXACTLY}`] : [];
    return { given: words, columns: Object.fromEntries(answered.map((one) => [one.facts.name, one.marginal(rows, drawn.rows, given[one.facts.name])])), basis, notes: warnings };
  }

  /** Kept rows as they come: they are independent, so one stretch of them is as good as another. */
  function sample({ given = {}, count, seed = 0 }, accept) {
    const [rows] = kept(given), taken = rows.length <= count ? rows : Array.from({ length: count }, (_, k) => rows[(seed * count + k) % rows.length]);
    const names = columns.map((one) => one.facts.name), cells = taken.map((row) => columns.map((one) => one.cell(row)));
    return accept === "text/csv" ? new Blob([asCsv(names, cells)], { type: accept }) : { columns: names, rows: cells, notes: [] };
  }

  const ask = async (path, body = null, { accept } = {}) => {
    const what = path.split("/").at(-1);
    if (what === "models") return { models: [{ name: drawn.name, status: "ready", modality: "table" }] };
    if (what === "schema") return drawn.schema;
    if (what === "marginals") return marginals(body);
    if (what === "sample") return sample(body, accept);
    throw new Failure({ message: `A report cannot answer this. ${EXACTLY}` }, 404);
  };
  ask.able = ["marginals", "sample"];
  return ask;
}

/** One column: its drawn cells, which of them satisfy a statement, and what is to be said of some of them. */
class Column {
  constructor(facts, cells, forms) {
    Object.assign(this, { facts, cells, forms });
    const { axis } = facts;
    if (!axis) return;
    this.scale = axis.logarithmic ? Math.log : (x) => x;
    this.back = axis.logarithmic ? Math.exp : (x) => x;
    // Where every whole number has a cell of its own, one of them can be said; among many it would keep next to nothing.
    this.single = axis.step > 0 && axis.edges[1] - axis.edges[0] <= axis.step;
  }

  // ---- conditions ---------------------------------------------------------------------------------------------------

  /** Whether a statement leaves nothing open. */
  settled(statement) {
    if (this.facts.axis) return Boolean(statement?.missing);
    return this.#levels(statement)?.length === 1 || Boolean(statement?.missing);
  }

  /** Which levels a statement on levels allows, by their number; null if it is about missing cells. */
  #levels(statement) {
    const at = (value) => {
      const found = this.facts.levels.findIndex((one) => same(one.level, value) || one.written === String(value) || String(one.level) === String(value));
      if (found < 0) throw new Failure({ message: `${this.facts.name} has no level ${JSON.stringify(value)}; there are ${this.facts.levels.map((one) => one.written).join(", ")}` });
      return found;
    };
    const every = this.facts.levels.map((_, k) => k), part = this.#read(statement);
    if (part.missing) return null;
    if (part.either) return [...new Set(part.either.flatMap((one) => this.#levels(one)))];
    if (part.one_of) return part.one_of.map(at);
    if (part.not_one_of) { const not = part.not_one_of.map(at); return every.filter((k) => !not.includes(k)); }
    if ("value" in part) return [at(part.value)];
    const low = part.low === undefined ? -Infinity : at(part.low) + (part.low_open ? 0.5 : 0), high = part.high === undefined ? Infinity : at(part.high) - (part.high_open ? 0.5 : 0);
    return every.filter((k) => k >= low && k <= high);
  }

  /** A statement as an object: {value}, {one_of}, {not_one_of}, {low, high}, {either} or {missing}. */
  #read(statement) {
    if (statement !== null && typeof statement === "object") return Object.fromEntries(Object.entries(statement).filter(([, value]) => value !== null));
    if (typeof statement !== "string") return { value: statement };
    const text = statement.trim(), level = this.facts.levels.some((one) => one.written === text || String(one.level) === text);
    if (level) return { value: text };
    if (text === "missing") return { missing: true };
    if (/\s+or\s+/.test(text)) return { either: text.split(/\s+or\s+/).map((part) => this.#read(part)) };
    let found = text.match(/^(<=?|>=?|≤|≥)\s*(.+)$/);
    if (found) { const side = /[<≤]/.test(found[1]) ? "high" : "low"; return { [side]: found[2], ...(/^[<>]$/.test(found[1]) ? { [`${side}_open`]: true } : {}) }; }
    found = text.match(/^between\s+(.+)\s+and\s+(.+)$/i) ?? text.match(/^(.*?)\s*\.\.\s*(.*)$/);
    if (found) return { ...(found[1] ? { low: found[1] } : {}), ...(found[2] ? { high: found[2] } : {}) };
    found = text.match(/^!=\s*(.+)$/);
    if (found) return { not_one_of: found[1].replace(/^\{(.*)\}$/, "$1").split(",").map((part) => part.trim()) };
    found = text.match(/^\{(.+)\}$/);
    return found ? { one_of: found[1].split(",").map((part) => part.trim()) } : { value: text };
  }

  /** A value of an axis as its number. */
  #number(value) {
    const { axis, kind, name } = this.facts;
    if (typeof value === "number") return value;
    const form = this.forms?.written.indexOf(String(value).trim()) ?? -1, at = axis.written.indexOf(String(value).trim()), listed = axis.values.findIndex((one) => same(one, value));
    if (listed >= 0) return axis.edges[listed];
    if (form >= 0) return this.forms.numbers[form];
    if (at >= 0) return axis.edges[at];
    const found = kind === "datetime" ? onAxis(value) : /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(String(value).trim()) ? Number(value) : NaN;
    if (!Number.isFinite(found)) throw new Failure({ message: `${name}: ${JSON.stringify(value)} cannot be read in a report; drag across the curve instead, or type a value such as ${axis.written[Math.floor(axis.written.length / 2)]}. ${EXACTLY}` });
    return found;
  }

  /** The stretches of an axis that a statement allows, as [from, to, without from, without to]. */
  #stretches(statement, notes) {
    const part = this.#read(statement);
    if (part.either) return part.either.flatMap((one) => this.#stretches(one, notes));
    if (part.one_of) return part.one_of.flatMap((value) => this.#stretches({ value }, notes));
    if (part.not_one_of) {
      const out = part.not_one_of.map((value) => this.#number(value)).sort((a, b) => a - b), ends = [-Infinity, ...out, Infinity];
      return ends.slice(1).map((to, k) => [ends[k], to, true, true]);
    }
    if (!("value" in part)) return [[part.low === undefined ? -Infinity : this.#number(part.low), part.high === undefined ? Infinity : this.#number(part.high), Boolean(part.low_open), Boolean(part.high_open)]];
    const at = this.#number(part.value);
    if (this.single || this.facts.atoms?.includes(at)) return [[at, at, false, false]];
    const { edges } = this.facts.axis, reach = NEAR * (this.scale(edges.at(-1)) - this.scale(edges[0]));
    const ends = this.facts.axis.logarithmic && at <= 0 ? [at, at] : [this.back(this.scale(at) - reach), this.back(this.scale(at) + reach)];
    notes.push(`${this.facts.name} ${this.written(at)} is taken as ${this.written(ends[0])} to ${this.written(ends[1])}, since no drawn row has exactly that value.`);
    return [[...ends, false, false]];
  }

  test(statement, notes) {
    const { cells } = this;
    if (this.#read(statement).missing) return (row) => cells[row] === null;
    if (!this.facts.axis) { const allowed = new Set(this.#levels(statement)); return (row) => allowed.has(cells[row]); }
    const stretches = this.#stretches(statement, notes);
    return (row) => {
      const x = cells[row];
      return x !== null && stretches.some(([from, to, above, below]) => (above ? x > from : x >= from) && (below ? x < to : x <= to));
    };
  }

  // ---- answers ------------------------------------------------------------------------------------------------------

  /** A drawn cell as it stands in a table. */
  cell(row) {
    const value = this.cells[row];
    if (value === null) return null;
    return this.facts.axis ? (this.facts.own_form || this.facts.kind === "datetime" ? this.written(value) : value) : this.facts.levels[value].level;
  }

  /** A number of the axis for people. */
  written(x) {
    if (this.forms) return this.forms.written[nearest(this.forms.numbers, x)];
    if (this.facts.kind === "datetime") {
      const text = new Date(Math.round(x * 864e5)).toISOString();
      return this.facts.resolution === "day" ? text.slice(0, 10) : text.slice(0, 19).replace("T", " ");
    }
    return fewDigits(x);
  }

  /** What is to be said of these rows; `of`, how many there were before any condition. */
  marginal(rows, of, statement) {
    const there = rows.filter((row) => this.cells[row] !== null), count = Math.max(there.length, 1);
    const error = rows.length < of ? 0.5 / Math.sqrt(count) : 0, chance = rows.length < of ? 1 / Math.sqrt(count) : 0;
    const facts = { kind: this.facts.kind, chance };
    return this.facts.axis ? this.#line(facts, there.map((row) => this.cells[row]), statement) : this.#bars({ ...facts, standard_error: error }, there, count);
  }

  #bars(facts, there, count) {
    const counts = this.facts.levels.map(() => 0);
    for (const row of there) counts[this.cells[row]] += 1;
    const probs = this.facts.levels.map((one, k) => ({ level: one.level, written: one.written, prob: counts[k] / count }));
    const best = counts.indexOf(Math.max(...counts)), written = { best: this.facts.levels[best].written };
    return { ...facts, probs, best: this.facts.levels[best].level, written };
  }

  #line(facts, numbers, statement) {
    const { axis, kind, atoms = [] } = this.facts, sorted = Float64Array.from(numbers).sort(), n = Math.max(sorted.length, 1);
    const value = (x) => (kind === "datetime" ? new Date(Math.round(x * 864e5)).toISOString() : x);
    const found = { ...facts, ...this.#cells(numbers, axis, atoms ?? [], statement), written: {} };
    const summary = { mean: sorted.reduce((sum, x) => sum + x, 0) / n };
    for (const [name, level] of Object.entries(QUANTILES)) summary[name] = sorted[Math.max(Math.ceil(level * sorted.length) - 1, 0)] ?? 0;
    for (const [name, x] of Object.entries(summary)) { found[name] = value(x); found.written[name] = this.written(x); }
    if (atoms?.length) found.probs = atoms.map((level) => ({ level, written: plain(level), prob: numbers.filter((x) => x === level).length / n }));
    return found;
  }

  /** The share of each cell. On a line the counts are spread by a normal kernel, the narrower the more rows there are; not beyond a range that was said, and not those of atoms. */
  #cells(numbers, { edges, step }, atoms, statement) {
    const last = edges.length - 1, n = Math.max(numbers.length, 1), spread = new Float64Array(last), points = new Float64Array(last), smooth = [];
    let below = 0, above = 0;
    for (const x of numbers) {
      if (x <= edges[0]) below += 1;
      else if (x > edges[last]) above += 1;
      else {
        const k = cellOf(edges, x);
        if (step > 0 || atoms.includes(x)) points[k] += 1;
        else { spread[k] += 1; smooth.push(k + 0.5); }
      }
    }
    const stretches = statement === undefined ? [[-Infinity, Infinity]] : this.#stretches(statement, []);
    const open = edges.slice(1).map((edge, k) => stretches.some(([from, to]) => edge > from && edges[k] < to));
    const cells = blurred(spread, open, width(smooth));
    return { cells: Array.from(cells, (share, k) => (share + points[k]) / n), below: below / n, above: above / n };
  }
}

/** The cell that holds a number; a cell holds its upper edge and not its lower one. */
function cellOf(edges, x) {
  let low = 0, high = edges.length - 1;
  while (high - low > 1) { const middle = (low + high) >> 1; if (edges[middle] < x) low = middle; else high = middle; }
  return low;
}

/** The width of the kernel, in cells: two thirds of Silverman's, which is for a single hump. */
function width(places) {
  const n = places.length;
  if (n < 2) return 1;
  const mean = places.reduce((a, b) => a + b, 0) / n, sorted = [...places].sort((a, b) => a - b);
  const deviation = Math.sqrt(places.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (n - 1));
  const quartiles = (sorted[Math.floor(0.75 * (n - 1))] - sorted[Math.floor(0.25 * (n - 1))]) / 1.34;
  return Math.max(0.6 * Math.min(deviation, quartiles || deviation) * n ** -0.2, 0.25);
}

/** Counts spread over the cells that are open and hang together; what each spreads stays there, so the sum does. */
function blurred(counts, open, wide) {
  const out = new Float64Array(counts.length), reach = Math.ceil(4 * wide);
  counts.forEach((count, from) => {
    if (!count) return;
    let first = from, last = from;
    while (open[first - 1] && from - first < reach) first -= 1;
    while (open[last + 1] && last - from < reach) last += 1;
    const weights = [];
    for (let to = first; to <= last; to += 1) weights.push(Math.exp(-0.5 * ((to - from) / wide) ** 2));
    const sum = weights.reduce((a, b) => a + b, 0);
    weights.forEach((weight, k) => { out[first + k] += (count * weight) / sum; });
  });
  return out;
}

/** Where the number nearest to x stands among sorted ones. */
function nearest(numbers, x) {
  let best = 0;
  numbers.forEach((one, k) => { if (Math.abs(one - x) < Math.abs(numbers[best] - x)) best = k; });
  return best;
}
