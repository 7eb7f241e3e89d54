// One card a column: its drawing, its answer in words, a field to type into, pin and target.

import { AxisChart, LevelBars, sayable } from "./charts.js";
import { h, icon, ICONS, say } from "./dom.js";
import { described, percent, said, title, typed } from "./words.js";

const KINDS = { continuous: "number", integer: "whole number", spiked: "number", atoms: "number", boolean: "yes or no", categorical: "category", ordinal: "ordered", datetime: "time" };

export class Card {
  /** `actions`: say(name, statement or null), pin(name), target(name), cost(name, number or null); aims(), whether there are targets. */
  constructor(column, actions) {
    this.column = column;
    const { name } = column, tell = (statement) => actions.say(name, statement);
    this.charts = [];
    if (column.axis) this.charts.push(new AxisChart(column, tell));
    const atoms = (column.atoms ?? []).map((level) => ({ level, written: `exactly ${level}` }));
    const levels = column.levels.length ? this.#sorted(column) : atoms;
    if (levels.length) this.charts.push(new LevelBars(column, levels, tell));
    const button = (what, path, label) => h("button", { type: "button", class: `mini ${what}`, "aria-pressed": "false", title: label, "aria-label": `${label}: ${name}`, onclick: () => actions[what](name) }, icon(path));
    this.pin = button("pin", ICONS.pin, "pin to the front");
    this.target = button("target", ICONS.target, "make it the target");
    if (column.context || !actions.aims()) this.target.hidden = true;
    this.condition = h("p", { class: "condition" });
    this.answer = h("strong");
    this.about = h("span", { class: "about" });
    this.range = h("p", { class: "range" });
    this.change = h("p", { class: "change" });
    this.gain = h("p", { class: "gain" });
    this.cost = h("input", { type: "number", min: "0", step: "any", placeholder: "1", "aria-label": `cost of ${name}`, onchange: () => actions.cost(name, Number(this.cost.value) || null) });
    this.price = h("label", { class: "cost", hidden: true }, "at a cost of ", this.cost);
    this.input = h("input", { type: "text", spellcheck: "false", autocomplete: "off", "aria-label": `what is known of ${name}`, placeholder: this.#hint() });
    const form = h("form", { onsubmit: (event) => { event.preventDefault(); const text = this.input.value; this.input.value = ""; if (text.trim()) tell(typed(column, text)); } },
      this.input,
      column.missing_can_be_given ? h("button", { type: "button", class: "plain", onclick: () => tell({ missing: true }) }, "missing") : null);
    this.element = h("article", { class: "card", "data-column": name, "aria-label": name },
      h("header", {}, h("h3", { title: name }, title(name)), h("span", { class: "kind" }, KINDS[column.kind] ?? column.kind), this.target, this.pin),
      h("div", { class: "words" }, h("p", { class: "answer" }, this.answer, " ", this.about), this.range, this.change, this.condition, this.gain, this.price),
      ...this.charts.map((chart) => chart.element), form);
  }

  /** Levels with an order keep it; others stand by how frequent they are with nothing known, and stay there. */
  #sorted(column) {
    if (column.ordered || column.kind === "boolean") return column.levels;
    return [...column.levels].sort((a, b) => (b.share ?? 0) - (a.share ?? 0));
  }

  #hint() {
    const { axis, levels, kind } = this.column;
    if (kind === "datetime") return `type: ${axis.written[Math.floor(axis.written.length / 2)]}`;
    if (axis) {
      const near = (share) => Math.round(share * (axis.edges.length - 1)), at = (share) => sayable(this.column, axis.edges[near(share)]);
      return this.column.own_form ? `type: ${axis.written[near(0.5)]}` : `type: ${at(0.5)} or ${at(0.3)}..${at(0.6)}`;
    }
    return levels.length ? `type: ${levels[0].written}` : "type a value";
  }

  /** Take over what is to be shown; it is drawn now if the card can be seen, else once it can. */
  show(facts) {
    this.facts = facts;
    this.stale = true;
    if (this.visible) this.draw();
  }

  see(visible) {
    this.visible = visible;
    if (visible && this.stale) this.draw();
  }

  draw() {
    this.stale = false;
    const { before, after, statement, gain, cost, pinned, target } = this.facts, given = statement !== undefined;
    // What a target tells or a pin changes is no reason to draw the same curves again.
    const { drawn } = this;
    if (!drawn || drawn.before !== before || drawn.after !== after || drawn.statement !== statement) for (const chart of this.charts) chart.draw(before, after, statement);
    this.drawn = this.facts;
    const words = given && !after ? { answer: said(this.column, statement).replace(/^= /, ""), about: "", range: "", change: "" } : described(this.column, before, after);
    say(this.answer, words.answer ?? "");
    this.answer.classList.toggle("long", (words.answer ?? "").length > 14);
    say(this.about, words.about ?? "");
    say(this.range, words.range ?? "");
    say(this.change, words.change ?? "");
    this.change.classList.toggle("still", words.change === "hardly changed");
    say(this.condition, given ? (after ? `given: ${said(this.column, statement).replace(/^= /, "")}` : "given") : "");
    this.price.hidden = !gain;
    this.cost.value = cost ?? "";
    say(this.gain, gain ? `tells ${gain.words}` : target ? "the target" : "");
    this.element.classList.toggle("given", given);
    this.element.classList.toggle("is-target", Boolean(target));
    this.pin.setAttribute("aria-pressed", String(Boolean(pinned)));
    this.target.setAttribute("aria-pressed", String(Boolean(target)));
  }
}

/** What a gain of information means: its share of what is open about the target. */
export function gainWords(gain, now) {
  const share = now > 0 ? gain / now : 0;
  return share > 0 && share <= 1.5 ? `${percent(Math.min(share, 1))} of what is open` : `${gain.toFixed(2)} nats`;
}
