// Statements and answers in words: for people, for Python, and for the command line.

export const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
const is_object = (x) => x !== null && typeof x === "object";

/** 0.4168 → "42 %"; the ends are not rounded to "0 %" and "100 %". */
export function percent(p) {
  const hundredths = 100 * p;
  if (hundredths === 0 || hundredths === 100) return `${hundredths}\u202f%`;
  if (hundredths < 0.1) return "< 0.1\u202f%";
  if (hundredths > 99.9) return "> 99.9\u202f%";
  return `${hundredths.toFixed(hundredths < 9.95 || (hundredths > 99 && hundredths < 100) ? 1 : 0)}\u202f%`;
}

/** A number without the noise of its last bits. */
export const plain = (x) => String(Number(x.toPrecision(10)));

/** A number for people: in four digits, or as many as it has before the point. */
export function fewDigits(x) {
  const size = Math.abs(x);
  if (size >= 1e4 && size < 1e12) return x.toFixed(0);
  return size && (size < 1e-4 || size >= 1e12) ? x.toExponential(3) : plain(Number(x.toPrecision(4)));
}

/** A time for people, of what JSON says: a date of a column of dates, else no finer than a second. */
export function moment(column, text) {
  const at = String(text).replace(/^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)/, "$1 $2");
  return column?.resolution === "day" ? at.replace(/(\d{4}-\d\d-\d\d) \d\d:.*/, "$1") : at.replace(/(:\d\d)\.\d+/, "$1").replace(/ 00:00:00(Z|\+00:00)?$/, "");
}

/** A column's name as it is read: underscores are for computers. */
export const title = (name) => (/[A-Za-z]_[A-Za-z0-9]/.test(name) ? name.replaceAll("_", " ") : name);

/** A value as people write it in this column. */
export function written(column, value) {
  const level = column.levels.find((one) => same(one.level, value));
  if (level) return level.written;
  const at = column.axis ? column.axis.values.findIndex((one) => same(one, value)) : -1;
  if (at >= 0 && (column.own_form || column.kind === "datetime")) return column.axis.written[at];
  return typeof value === "number" ? plain(value) : String(value);
}

/** The levels that a statement leaves possible, or null if it is no set of levels. */
export function levelsOf(statement) {
  if (is_object(statement) && "value" in statement) return [statement.value];
  if (is_object(statement) && statement.one_of) return statement.one_of;
  return typeof statement === "boolean" ? [statement] : null;
}

/** A statement as a chip says it, after the name of the column. */
export function said(column, statement) {
  const show = (value) => written(column, value);
  if (!is_object(statement)) {
    const reads = typeof statement === "string" && /^\s*([<>]|!=|between\b|missing\s*$)|\.\./.test(statement);
    return reads ? statement : `= ${show(statement)}`;
  }
  if (statement.missing) return "is missing";
  const levels = levelsOf(statement);
  if (levels) return levels.length === 1 ? `= ${show(levels[0])}` : `is ${levels.map(show).join(" or ")}`;
  const { low, high, low_open, high_open } = statement;
  if (low === undefined || low === null) return `${high_open ? "<" : "≤"} ${show(high)}`;
  if (high === undefined || high === null) return `${low_open ? ">" : "≥"} ${show(low)}`;
  return `${low_open ? "above " : ""}${show(low)} to ${high_open ? "below " : ""}${show(high)}`;
}

/** What is known as it is sent: a level goes as it is, but one that would be read as a range or a set goes marked as a value. */
export function sent(given) {
  const looks = /\.\.|^\s*([<>{!~]|between\b|missing\s*$)|\bor\b/i;
  return Object.fromEntries(Object.entries(given).map(([name, statement]) => {
    const marked = is_object(statement) && "value" in statement && !(typeof statement.value === "string" && looks.test(statement.value));
    return [name, marked ? statement.value : statement];
  }));
}

/** The other way: what others said, in the words of this page, where a level is marked as one and numbers are numbers. */
export function heard(column, statement) {
  if (is_object(statement)) return statement;
  if (column.levels.some((one) => same(one.level, statement))) return { value: statement };
  return typeof statement === "string" ? typed(column, statement) : statement;
}

/** What was typed into a card: numbers and ranges of numbers as such, so that the chart can show them; else the text. */
export function typed(column, text) {
  const trimmed = text.trim();
  if (!trimmed) return null;
  if (column.missing_can_be_given && trimmed === "missing") return { missing: true };
  const level = column.levels.find((one) => one.written === trimmed || String(one.level) === trimmed);
  if (level) return { value: level.level };
  if (column.axis && column.kind !== "datetime" && !column.own_form) {
    const number = "([-+]?(?:\\d+\\.?\\d*|\\.\\d+)(?:[eE][-+]?\\d+)?)";
    const whole = (pattern) => trimmed.match(new RegExp(`^${pattern}$`));
    let found = whole(number);
    if (found) return Number(found[1]);
    found = whole(`${number}\\s*(?:\\.\\.|to|–)\\s*${number}`);
    if (found) return { low: Number(found[1]), high: Number(found[2]) };
    found = whole(`(<=?|>=?|≤|≥)\\s*${number}`);
    if (found) {
      const end = Number(found[2]), open = found[1] === "<" || found[1] === ">";
      const side = found[1].startsWith("<") || found[1] === "≤" ? "high" : "low";
      return { [side]: end, ...(open ? { [`${side}_open`]: true } : {}) };
    }
  }
  return trimmed;
}

// ---- for the command line -------------------------------------------------------------------------------------------

const word = (value) => {
  const text = typeof value === "number" ? plain(value) : String(value);
  return /^[\p{L}\p{N}_.+\-: ]+$/u.test(text) && !/\b(or|between|and)\b|\.\.|^\s|\s$/.test(text) ? text : `"${text.replaceAll('"', "'")}"`;
};

/** A statement in the grammar of questions: `alcohol=12..13`. */
export function inGrammar(name, statement) {
  const column = word(name);
  if (!is_object(statement)) {
    if (typeof statement !== "string") return `${column}=${word(statement)}`;
    return /^\s*([<>]|!=|between\b)/.test(statement) ? `${column} ${statement}` : `${column}=${/\.\.|^\{/.test(statement) ? statement : word(statement)}`;
  }
  if (statement.missing) return `${column}=missing`;
  const levels = levelsOf(statement);
  if (levels) return `${column}=${levels.length === 1 ? word(levels[0]) : `{${levels.map(word).join(", ")}}`}`;
  const { low = null, high = null, low_open, high_open } = statement;
  if (low === null) return `${column} ${high_open ? "<" : "<="} ${word(high)}`;
  if (high === null) return `${column} ${low_open ? ">" : ">="} ${word(low)}`;
  if (!low_open && !high_open) return `${column}=${word(low)}..${word(high)}`;
  return `${word(low)} ${low_open ? "<" : "<="} ${column} ${high_open ? "<" : "<="} ${word(high)}`;
}

/** The command that asks for some columns given all that is known. */
export function asCommand(model, given, asked) {
  const known = Object.entries(given).map(([name, statement]) => inGrammar(name, statement)).join(", ");
  const question = asked.map(word).join(", ") + (known ? ` | ${known}` : "");
  return `anyorder ask ${model}.anyorder '${question.replaceAll("'", "'\\''")}'`;
}

// ---- for Python -----------------------------------------------------------------------------------------------------

const literal = (value) => {
  if (typeof value === "boolean") return value ? "True" : "False";
  return typeof value === "number" ? plain(value) : JSON.stringify(value);
};

function inPython(statement) {
  if (!is_object(statement)) return literal(statement);
  if (statement.missing) return "ao.MISSING";
  const levels = levelsOf(statement);
  if (levels) return levels.length === 1 ? literal(levels[0]) : `ao.OneOf(${levels.map(literal).join(", ")})`;
  const end = (value) => (value === undefined || value === null ? "None" : literal(value));
  const open = ["low_open", "high_open"].filter((name) => statement[name]).map((name) => `, ${name}=True`).join("");
  return `ao.Between(${end(statement.low)}, ${end(statement.high)}${open})`;
}

/** The same question in Python; without a name the model is there already. */
export function asPython(model, given, asked, columns) {
  const known = Object.entries(given).map(([name, statement]) => `    ${JSON.stringify(name)}: ${inPython(statement)},`);
  const lines = ["import anyorder as ao", "", ...(model === null ? [] : [`model = ao.load(${JSON.stringify(`${model}.anyorder`)})`])];
  lines.push(known.length ? `known = model.given({\n${known.join("\n")}\n})` : "known = model.given()");
  for (const name of asked) {
    const levels = columns.find((column) => column.name === name)?.levels.length;
    lines.push(`print(known[${JSON.stringify(name)}].${levels ? "probs()" : "quantile([0.05, 0.5, 0.95])"})`);
  }
  return lines.join("\n") + "\n";
}

// ---- answers --------------------------------------------------------------------------------------------------------

/** How far two marginals are apart: the total variation distance, 0 to 1. */
export function moved(before, after) {
  if (!before || !after) return 0;
  let sum = Math.abs((before.below ?? 0) - (after.below ?? 0)) + Math.abs((before.above ?? 0) - (after.above ?? 0));
  (before.cells ?? []).forEach((p, k) => { sum += Math.abs(p - (after.cells?.[k] ?? 0)); });
  (before.probs ?? []).forEach((one, k) => { sum += Math.abs(one.prob - (after.probs?.[k]?.prob ?? 0)); });
  return sum / 2;
}

const probOf = (marginal, level) => marginal.probs.find((one) => same(one.level, level))?.prob ?? 0;

/** An axis value as a number to draw by: times are days since 1970, and those without a zone are not taken for local ones. */
export function onAxis(value) {
  if (typeof value === "number") return value;
  const text = String(value).trim().replace(" ", "T");
  return Date.parse(/T/.test(text) && !/(Z|[+-]\d\d:?\d\d)$/.test(text) ? `${text}Z` : text) / 864e5;
}

/** Below this two marginals are called the same: what draws differ by, by chance, is no change. */
const hardly = (after) => Math.max(0.02, after.chance ?? 0);

/** The answer in words: what is most probable or the mean, the interval, and what the conditions changed. */
export function described(column, before, after) {
  const now = after ?? before;
  if (!now) return { answer: "", range: "", change: "" };
  if (now.cells) {
    const answer = now.written.mean ?? now.written.median ?? "";
    const range = `90\u202f% between ${now.written.low} and ${now.written.high}`;
    return { answer, about: now.written.mean ? "on average" : "in the middle", range, change: change_of_number(before, after) };
  }
  const best = now.best ?? now.probs.reduce((a, b) => (b.prob > a.prob ? b : a)).level;
  const doubt = now.standard_error >= 0.005 ? ` ± ${Math.round(100 * now.standard_error)}` : "";
  const share = percent(probOf(now, best)) + doubt;
  return { answer: written(column, best), about: share, range: "most probable", change: change_of_level(column, before, after, best) };
}

function change_of_number(before, after) {
  if (!before || !after) return "";
  if (moved(before, after) < hardly(after)) return "hardly changed";
  const was = before.written.mean ?? before.written.median, a = onAxis(before.mean ?? before.median), b = onAxis(after.mean ?? after.median);
  const wide = (one) => onAxis(one.high) - onAxis(one.low), ratio = wide(after) / wide(before);
  const parts = was === (after.written.mean ?? after.written.median) ? [] : [`${b > a ? "↑" : "↓"} was ${was}`];
  if (ratio < 0.95) parts.push(`${Math.round(100 * (1 - ratio))}\u202f% narrower`);
  else if (ratio > 1.05) parts.push(`${Math.round(100 * (ratio - 1))}\u202f% wider`);
  return parts.join(", ") || "another shape";
}

function change_of_level(column, before, after, best) {
  if (!before || !after) return "";
  const was = probOf(before, best), is = probOf(after, best);
  if (moved(before, after) < hardly(after)) return "hardly changed";
  const arrow = is > was ? "↑" : "↓", changed = `${arrow} was ${percent(was)}`;
  const first = before.best ?? best;
  return same(first, best) ? changed : `${changed}; before: ${written(column, first)}`;
}
