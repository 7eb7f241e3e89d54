// A model of texts: holes filled, each coloured by how sure its character was; and texts continued.

import { h, say } from "./dom.js";
import { percent } from "./words.js";

const MARK = "_";

export class TextPanel {
  constructor(ask, model, fail) {
    Object.assign(this, { ask, model, fail });
    this.field = h("textarea", { "aria-label": "a text with holes", spellcheck: "false", placeholder: `Write a text with ${MARK} for every missing character, such as: the q__ck br_wn f_x` });
    this.seed = 0; // of what is drawn next: the same button twice gives something else
    this.status = h("p", { role: "status" });
    this.out = h("div");
    const button = (label, act, kind = "") => h("button", { type: "button", class: `quiet-button ${kind}`, onclick: act }, label);
    this.element = h("section", { class: "tab", "aria-label": "texts" },
      h("p", {}, `Write a text with ${MARK} for every missing character and let the model fill the holes; each filled character is coloured by how sure it was. Or give a beginning and let it go on.`),
      this.field,
      h("div", { class: "actions" }, button("Fill the holes", () => this.#fill(null), "primary"), button("Four different ways", () => this.#fill(4)), button("Go on from here", () => this.#continue()), button("Take an example", () => this.#example())),
      this.status, this.out);
  }

  async #do(work) {
    this.fail(null);
    say(this.status, "…");
    try { await work(); } catch (error) { say(this.status, ""); this.fail(error); }
  }

  #example() {
    return this.#do(async () => {
      const { texts } = await this.ask("text/sample", { count: 1, length: Math.min(this.model.length ?? 80, 80), seed: this.seed++ });
      this.field.value = [...texts[0]].map((letter, k) => (k % 5 === 3 || (k > 20 && k < 26) ? MARK : letter)).join("");
      say(this.status, "A text that the model made up, with holes.");
    });
  }

  #fill(draws) {
    return this.#do(async () => {
      const { fillings, notes } = await this.ask("text/fill", { text: this.field.value, mark: MARK, draws, seed: draws === null ? 0 : this.seed++ });
      say(this.status, `${fillings[0].holes.length} holes filled. Green is sure, red is a guess. ${notes.join(" ")}`);
      this.out.replaceChildren(...fillings.map((one) => this.#coloured(one)));
    });
  }

  #coloured({ text, holes, confidence }) {
    const sure = new Map(holes.map((at, k) => [at, confidence[k]])), parts = [];
    let run = "";
    [...text].forEach((letter, at) => {
      if (!sure.has(at)) { run += letter; return; }
      if (run) parts.push(run);
      run = "";
      const hole = h("span", { class: "hole", title: `${percent(sure.get(at))} sure` }, letter);
      hole.style.backgroundColor = `hsl(${Math.round(130 * sure.get(at))} 70% 50% / 0.3)`;
      parts.push(hole);
    });
    return h("div", { class: "text-answer" }, ...parts, run);
  }

  #continue() {
    return this.#do(async () => {
      const beginning = this.field.value, { texts } = await this.ask("text/sample", { beginning, count: 3, seed: this.seed++ });
      say(this.status, beginning ? "Three ways to go on." : "Three texts from nothing.");
      this.out.replaceChildren(...texts.map((text) => h("div", { class: "text-answer" }, h("b", {}, text.slice(0, beginning.length)), text.slice(beginning.length))));
    });
  }
}
