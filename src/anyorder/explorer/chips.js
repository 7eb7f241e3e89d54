// What is known, as chips that can be taken away, and what the model says of it.

import { h, icon, ICONS, say } from "./dom.js";
import { said, title } from "./words.js";

const RARE = 0.01; // the share of the model's own rows that are less likely

export class Chips {
  constructor(actions) {
    this.actions = actions;
    this.list = h("ul", { class: "chips", "aria-label": "what is known" });
    this.hint = h("p", { class: "hint" }, "Say what you know: ", h("b", {}, "click a level"), ", ", h("b", {}, "click or drag across a curve"), ", or type a value. Every other card then shows what follows.");
    this.likely = h("p", { class: "likely" });
    this.warning = h("p", { class: "warning", role: "status" });
    this.clear = h("button", { type: "button", class: "plain", onclick: () => actions.clear() }, "clear all");
    this.element = h("section", { class: "known", "aria-label": "conditions" }, this.hint, h("div", { class: "line" }, this.list, this.clear), this.likely, this.warning);
  }

  show(columns, given) {
    const entries = Object.entries(given);
    this.list.replaceChildren(...entries.map(([name, statement]) => {
      const column = columns.find((one) => one.name === name), words = said(column, statement);
      return h("li", { class: "chip" }, h("span", {}, h("b", {}, title(name)), ` ${words}`),
        h("button", { type: "button", "aria-label": `take back: ${name} ${words}`, onclick: () => this.actions.say(name, null) }, icon(ICONS.close)));
    }));
    this.hint.hidden = entries.length > 0;
    this.list.hidden = !entries.length;
    this.clear.hidden = entries.length < 2;
    if (!entries.length) this.judge(null, []);
    else this.likely.classList.add("waiting");
  }

  /** The evidence's own probability; a warning where the training rows never came near. */
  judge(evidence, notes) {
    let words = "";
    if (evidence?.log_prob && evidence.log_prob.value === null) words = "The model holds these conditions to be impossible together.";
    else if (evidence?.log_prob) {
      const { value, standard_error: error } = evidence.log_prob;
      const nats = `log-probability ${value.toFixed(2)}${error > 0.005 ? ` ± ${error.toFixed(2)}` : ""}`;
      words = `These conditions: ${nats}`;
      if (evidence.density === false) words += value > -0.01 ? ", all but certain" : `, about 1 row in ${oneIn(Math.exp(-value))}`;
      else if (typeof evidence.rarity === "number") words += evidence.rarity < RARE ? ", less likely than nearly all rows" : `, likelier than ${Math.round(100 * evidence.rarity)}\u202f% of the rows that the model draws`;
    }
    const far = evidence && evidence.rarity !== null && evidence.rarity < RARE && !notes.length;
    const all = far ? ["The rows that the model learned from never came near this combination: what follows from it is extrapolated."] : [...new Set(notes)];
    this.tell(words, all);
  }

  /** A sentence on the conditions, and warnings. */
  tell(words, warnings) {
    this.likely.classList.remove("waiting");
    say(this.likely, words);
    // Written only where it differs: a screen reader announces it then.
    if (this.warning.innerText !== warnings.join("\n")) this.warning.replaceChildren(...warnings.map((one) => h("span", {}, one)));
    this.warning.hidden = !warnings.length;
  }
}

function oneIn(count) {
  if (count > 1e6) return "more than a million";
  return count < 10 ? Number(count.toPrecision(2)).toString() : Number(count.toPrecision(2)).toLocaleString("en");
}
