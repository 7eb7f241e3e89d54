// What the visitor has said: one plain object, its past and future, and the link that holds it.
//
// given: {column: statement}, in the words of the service: a value, {value}, {low, high}, {one_of}, {missing: true}, or a
// text that is read as in a typed question.

const EMPTY = { model: null, given: {}, target: null, sort: "table", pins: [], costs: {}, search: "", tab: "explore", question: "" };
const LINKED = ["model", "given", "target", "sort", "pins", "costs", "search", "tab", "question"];
const KEPT = 200; // steps back

export class State extends EventTarget {
  #past = [];
  #future = [];

  constructor() {
    super();
    this.now = structuredClone(EMPTY);
  }

  /** Change something. What is known and the target can be undone; where one looks (tab, search, order) cannot. */
  set(change) {
    const before = this.now;
    this.now = { ...before, ...change };
    if (before.model !== null && this.#differs(before)) {
      this.#past.push(before);
      if (this.#past.length > KEPT) this.#past.shift();
      this.#future = [];
    }
    this.#tell(before);
  }

  /** Say or take back (null) what is known of one column. */
  say(column, statement) {
    const given = { ...this.now.given };
    if (statement === null) delete given[column];
    else given[column] = statement;
    this.set({ given });
  }

  get canUndo() { return this.#past.length > 0; }
  get canRedo() { return this.#future.length > 0; }

  undo() { this.#step(this.#past, this.#future); }
  redo() { this.#step(this.#future, this.#past); }

  #step(from, to) {
    if (!from.length) return;
    const before = this.now, { model, given, target } = from.pop();
    to.push(before);
    this.now = { ...before, model, given, target };
    this.#tell(before);
  }

  #differs(before) {
    return ["model", "given", "target"].some((name) => JSON.stringify(before[name]) !== JSON.stringify(this.now[name]));
  }

  #tell(before) {
    this.dispatchEvent(new CustomEvent("change", { detail: { before, now: this.now } }));
  }

  /** The whole state as the part of a link behind #; what is as at the beginning is left out. */
  get hash() {
    const said = new URLSearchParams();
    for (const name of LINKED) {
      const value = this.now[name];
      if (JSON.stringify(value) === JSON.stringify(EMPTY[name])) continue;
      said.set(name, typeof value === "string" ? value : JSON.stringify(value));
    }
    return said.toString();
  }

  /** What a link says; whatever cannot be read in it is as at the beginning. */
  static read(hash) {
    const said = new URLSearchParams(hash.replace(/^#/, "")), found = structuredClone(EMPTY);
    for (const name of LINKED) {
      const text = said.get(name);
      if (text === null) continue;
      if (typeof EMPTY[name] === "string" || EMPTY[name] === null) found[name] = text;
      else {
        try {
          const value = JSON.parse(text);
          if (value && typeof value === "object" && Array.isArray(value) === Array.isArray(EMPTY[name])) found[name] = value;
        } catch { /* a link that was cut off */ }
      }
    }
    return found;
  }
}
