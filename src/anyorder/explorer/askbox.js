// Typed questions, with completion of columns and levels; a mistake is marked at its place.

import { h, say } from "./dom.js";
import { sayable } from "./charts.js";
import { fewDigits, moment, percent, title } from "./words.js";

const FORMS = [["P(", "the probability of an event"], ["E[", "the mean"], ["median(", "the median"], ["mode(", "the most probable value"], ["H(", "the entropy"], ["I(", "the mutual information: I(a; b)"]];
const MOST = 40; // suggestions at once
const SOON = 300; // milliseconds after which it is said that an answer is on its way
const bare = /^[\p{L}\p{N}_][\p{L}\p{N}_.\-: ]*$/u;
const quoted = (text) => (bare.test(text) && !/\b(or|between|and)\b|\.\./.test(text) ? text : `"${text}"`);

/** What could stand at the end of `text`: [from, suggestions], where `from` is where the unfinished word begins. */
export function completions(text, columns) {
  const start = Math.max(...["|", ",", "(", "[", ";", "=", "{", "<", ">"].map((mark) => text.lastIndexOf(mark))) + 1;
  const lead = text.slice(start).match(/^\s*"?/)[0].length, from = start + lead, word = text.slice(from).toLowerCase();
  const fits = (name) => name.toLowerCase().includes(word), first = (name) => (name.toLowerCase().startsWith(word) ? 0 : 1);
  // Behind "column =", or inside of "column = {a, ", stand levels.
  const value = text.slice(0, start).match(/([^|,([;{<>=]+?)"?\s*!?=\s*(?:\{[^{}|]*)?$/);
  const column = value && columns.find((one) => one.name === value[1].trim().replace(/^"/, ""));
  const anchor = text.slice(start, from).endsWith('"') ? from - 1 : from;
  const found = column
    ? column.levels.map((level) => [level.written, quoted(level.written), "level"])
    : [...columns.map((one) => [one.name, quoted(one.name), one.kind]), ...(start === 0 ? FORMS.map(([form, words]) => [form, form, words]) : [])];
  return [anchor, found.filter(([name]) => fits(name)).sort((a, b) => first(a[0]) - first(b[0])).slice(0, MOST)];
}

export class AskBox {
  #columns = [];
  #found = [];
  #from = 0;
  #at = -1;
  #asked = "";
  #stale = false;

  /** `ask(body)`; `given()`, what the chips say; `typed(question)`, told every question that was sent. */
  constructor({ ask, given, typed }) {
    Object.assign(this, { ask, given, typed });
    this.input = h("input", {
      type: "text", class: "field", spellcheck: "false", autocomplete: "off", role: "combobox", "aria-expanded": "false", "aria-controls": "suggestions", "aria-autocomplete": "list", "aria-label": "ask a question",
      oninput: () => this.#suggest(), onkeydown: (event) => this.#key(event), onblur: () => this.#close(),
    });
    this.list = h("ul", { class: "suggestions", role: "listbox", id: "suggestions", "aria-label": "suggestions", hidden: true });
    this.out = h("div", { "aria-live": "polite" });
    this.element = h("section", { class: "ask", "aria-label": "typed questions" },
      h("form", { onsubmit: (event) => { event.preventDefault(); this.#send(); } }, this.input, h("button", { class: "quiet-button primary" }, "Ask")), this.list, this.out);
  }

  know(columns) {
    this.#columns = columns;
    const number = columns.find((one) => one.axis && !one.own_form && one.kind !== "datetime"), other = columns.find((one) => one.levels.length) ?? columns.at(-1);
    const half = number && sayable(number, number.axis.edges[Math.round(number.axis.edges.length / 2)]);
    this.input.placeholder = number ? `or ask:  P(${quoted(number.name)} > ${half}${other === number ? "" : ` | ${quoted(other.name)}=${quoted(other.levels[0]?.written ?? "1")}`})` : "or ask a question";
    this.input.value = this.#asked = "";
    this.out.replaceChildren();
  }

  /** The conditions have changed: what stands here does not hold any more. */
  stale() {
    this.#stale = Boolean(this.#asked);
    this.out.classList.toggle("waiting", this.#stale);
  }

  /** Ask the last question once more, under the conditions of now. */
  again() { if (this.#stale) this.#answer(this.#asked); }

  show(question) {
    this.input.value = question;
    this.#send();
  }

  // ---- completion ---------------------------------------------------------------------------------------------------

  #suggest() {
    const text = this.input.value.slice(0, this.input.selectionStart);
    [this.#from, this.#found] = completions(text, this.#columns);
    const word = text.slice(this.#from);
    if (!text.trim() || (this.#found.length === 1 && this.#found[0][1] === word) || (!word && !/[=|,([;{]\s*$/.test(text))) return this.#close();
    this.#at = -1;
    this.list.replaceChildren(...this.#found.map(([name, , what], k) => h("li", { role: "option", id: `suggestion-${k}`, "aria-selected": "false", onpointerdown: (event) => { event.preventDefault(); this.#take(k); } }, name, h("small", {}, what))));
    this.list.hidden = !this.#found.length;
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
    this.input.removeAttribute("aria-activedescendant");
    return null;
  }

  #key(event) {
    if (this.list.hidden) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      this.#at = (this.#at + step + this.#found.length) % this.#found.length;
      [...this.list.children].forEach((item, k) => item.setAttribute("aria-selected", String(k === this.#at)));
      this.input.setAttribute("aria-activedescendant", `suggestion-${this.#at}`);
      this.list.children[this.#at].scrollIntoView({ block: "nearest" });
    } else if ((event.key === "Enter" && this.#at >= 0) || (event.key === "Tab" && !event.shiftKey && this.input.value)) {
      event.preventDefault();
      this.#take(Math.max(this.#at, 0));
    } else if (event.key === "Escape") this.#close();
  }

  #take(k) {
    const { value, selectionStart: cursor } = this.input, taken = this.#found[k][1], rest = value.slice(cursor).replace(/^"/, "");
    this.input.value = value.slice(0, this.#from) + taken + rest;
    this.input.setSelectionRange(this.#from + taken.length, this.#from + taken.length);
    this.#close();
  }

  #close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
  }

  // ---- asking -------------------------------------------------------------------------------------------------------

  #send() {
    const question = this.#asked = this.input.value.trim();
    this.#close();
    this.typed(question);
    if (question) this.#answer(question);
    else this.out.replaceChildren();
  }

  async #answer(question) {
    this.#stale = false;
    const late = setTimeout(() => this.out.replaceChildren(h("p", { class: "hint" }, "Asking … under ranges it may take some seconds.")), SOON);
    try {
      const given = this.given(), answer = await this.ask({ question, given });
      this.#show(this.#reply(answer, Object.keys(given).length), late);
    } catch (error) {
      if (error.name === "AbortError") clearTimeout(late);
      else this.#show(this.#mistake(question, error), late);
    }
  }

  #show(found, late) {
    clearTimeout(late);
    this.out.classList.remove("waiting");
    this.out.replaceChildren(found);
  }

  /** The question once more with the place marked, and under it what is wrong there. */
  #mistake(question, error) {
    const { at } = error, box = h("div", { class: "failure", role: "alert" }, error.message);
    if (at === null) return box;
    const letters = Array.from(question); // the service counts characters, not UTF-16 units
    const named = [...error.message.matchAll(/'([^']+)'/g)].map(([, name]) => name).find((name) => letters.slice(at).join("").startsWith(name));
    const length = named ? Array.from(named).length : 1;
    const part = (from, to) => letters.slice(from, to).join("");
    const shown = h("pre", {}, part(0, at), h("mark", {}, part(at, at + length) || "\u2007"), part(at + length));
    return h("div", {}, shown, box);
  }

  #reply(answer, known) {
    const row = (name, main, more = "") => h("div", { class: "row" }, name, h("strong", {}, main), h("span", {}, more));
    const number = (one, name) => (one.value === null ? "not finite" : this.#short(name, one.value));
    const error = (one) => (one.standard_error > 0 ? `± ${Number(one.standard_error.toPrecision(2))}` : "");
    const rows = [];
    if (answer.probability) rows.push(row("probability", percent(answer.probability.value), answer.probability.standard_error > 0 ? `± ${percent(answer.probability.standard_error)}` : ""));
    if (typeof answer.log_prob === "number") rows.push(row("log p", answer.log_prob.toFixed(3), "nats"));
    for (const [key, words] of [["entropy", "entropy"], ["mutual_information", "mutual information"]]) if (answer[key]) rows.push(row(words, number(answer[key]), `nats ${error(answer[key])}`));
    for (const [key, words] of [["means", "on average"], ["medians", "median"], ["modes", "most probable"]]) for (const [name, one] of Object.entries(answer[key] ?? {})) rows.push(row(title(name), number(one, name), `${words} ${error(one)}`));
    for (const [name, one] of Object.entries(answer.answers ?? {})) rows.push(this.#distribution(row, name, one));
    if (known) rows.push(h("p", { class: "hint" }, "The conditions above hold here too."));
    const box = h("div", { class: "reply" }, ...rows);
    for (const note of answer.notes ?? []) box.append(h("p", { class: "warning" }, note));
    return box;
  }

  #short(name, value) {
    return typeof value === "number" ? fewDigits(value) : moment(this.#columns.find((column) => column.name === name), value);
  }

  #distribution(row, name, one) {
    const short = (value) => this.#short(name, value);
    if (one.probs) {
      const sorted = Object.entries(one.probs).sort((a, b) => b[1] - a[1]);
      const rest = sorted.slice(1, 5).map(([level, p]) => `${level} ${percent(p)}`).join(", ");
      return row(title(name), sorted[0][0], `${percent(sorted[0][1])}${rest && `, then ${rest}`}`);
    }
    const quantiles = one.quantiles ?? {};
    return row(title(name), short(one.mean ?? quantiles["0.5"]), "0.05" in quantiles ? `90\u202f% between ${short(quantiles["0.05"])} and ${short(quantiles["0.95"])}` : "");
  }
}
