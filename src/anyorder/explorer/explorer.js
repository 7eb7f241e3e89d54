// <any-order-explorer>: every column is a card; what is said of one moves all others.
//
// The element is told how to ask (`element.ask = ask`, see api.js) and does not know who answers: a service, a notebook, or
// rows that a report brings along. With the attribute `linked` the page is its own, and its address holds what was said;
// without it `element.say({given, target})` and the event "said" are how others tell and hear what is known.

import { Failure, onlyLatest } from "./api.js";
import { AskBox } from "./askbox.js";
import { Card, gainWords } from "./cards.js";
import { Chips } from "./chips.js";
import { h, icon, ICONS, say } from "./dom.js";
import { PicturePanel } from "./pictures.js";
import { State } from "./state.js";
import { style } from "./style.js";
import { AnomaliesPanel, FillPanel, RowsPanel } from "./tables.js";
import { TextPanel } from "./texts.js";
import { asCommand, asPython, heard, moved, same, sent, title } from "./words.js";

const A_PAUSE = 350; // milliseconds without a click before the slower questions are asked
const TABS = { explore: "Explore", rows: "Rows", fill: "Fill", anomalies: "Anomalies" };
const sheet = new CSSStyleSheet();
sheet.replaceSync(style);

export class AnyOrderExplorer extends HTMLElement {
  #ask = null;
  #state = new State();
  #latest = onlyLatest();
  #models = [];
  #columns = [];
  #cards = new Map();
  #after = {};
  #gains = new Map();
  #aimed = null; // the target that the cards show
  #most = Infinity; // draws that one question may ask for
  #beginning = {};

  constructor() {
    super();
    this.attachShadow({ mode: "open" }).adoptedStyleSheets = [sheet];
    this.#state.addEventListener("change", ({ detail }) => this.#changed(detail.before, detail.now));
  }

  /** How to ask: `async (path, body, options) => answer`. Setting it begins; the element must be on a page by then. */
  set ask(ask) {
    this.#ask = ask;
    this.#begin();
  }
  get ask() { return this.#ask; }

  /** What is known, said from outside: any of `model`, `given`, `target`. */
  say(said) {
    if (!this.#columns.length) Object.assign(this.#beginning, said);
    else {
      const now = { ...this.#now, given: sent(this.#now.given) };
      const change = Object.fromEntries(Object.entries(said).filter(([name, value]) => !same(now[name], value)));
      if (!Object.keys(change).length) return;
      if (change.given) change.given = this.#read(change.given);
      if ("target" in change) change.sort = this.#order(change.target);
      this.#state.set(change);
    }
  }

  /** A sentence for the visitor that is no failure; "" takes it away. */
  tell(words) {
    this.notice.hidden = !words;
    say(this.notice, words);
  }

  #able(what) { return this.#ask.able?.includes(what) ?? true; }

  get #linked() { return this.hasAttribute("linked"); }

  // ---- the page -----------------------------------------------------------------------------------------------------

  #build() {
    const button = (label, path, act) => h("button", { type: "button", class: "quiet-button", title: label, "aria-label": label, onclick: act }, icon(path));
    this.picker = h("select", { "aria-label": "model", onchange: () => this.#state.set({ model: this.picker.value, given: {}, target: null, pins: [], costs: {}, search: "", question: "", tab: "explore" }) });
    this.name = h("small");
    this.undo = button("undo (Ctrl Z)", ICONS.undo, () => this.#state.undo());
    this.redo = button("redo (Ctrl Shift Z)", ICONS.redo, () => this.#state.redo());
    const copy = (label, text) => h("button", { type: "button", class: "quiet-button", onclick: () => this.#copy(text()) }, label);
    this.copies = h("div", { class: "group copies" },
      copy("copy as Python", () => asPython(this.hasAttribute("in-python") ? null : this.#now.model, this.#now.given, this.#interesting(), this.#columns)),
      this.command = copy("copy as command", () => asCommand(this.#now.model, this.#now.given, this.#interesting())));
    this.tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "views" }, ...Object.entries(TABS).map(([tab, label]) =>
      h("button", { type: "button", role: "tab", id: `tab-${tab}`, "data-tab": tab, "aria-controls": "panel", onclick: () => this.#state.set({ tab }) }, label)));
    this.tabs.addEventListener("keydown", (event) => this.#walkTabs(event));
    this.live = h("p", { class: "sr", "aria-live": "polite" });
    this.notice = h("p", { class: "notice", role: "status", hidden: true });
    this.failure = h("p", { class: "failure", role: "alert", hidden: true });
    this.panel = h(this.#linked ? "main" : "div", { class: "panel", id: "panel" }); // a page has one main part
    this.shadowRoot.append(h("div", { class: "frame" },
      h("header", { class: "top" }, h(this.#linked ? "h1" : "p", { class: "brand" }, "anyorder", this.name), this.picker, h("span", { class: "spacer" }),
        this.history = h("div", { class: "group" }, this.undo, this.redo), this.copies),
      this.tabs, this.notice, this.failure, this.live, this.panel));
    this.#buildExplore();
  }

  /** Ctrl Z works on the whole page where the page is ours; in a notebook only inside of the element. */
  connectedCallback() {
    if (!this.panel) this.#build();
    this.listening = new AbortController();
    const { signal } = this.listening;
    (this.#linked ? document : this).addEventListener("keydown", (event) => this.#shortcut(event), { signal });
    addEventListener("beforeprint", () => { for (const card of this.#cards.values()) card.see(true); }, { signal });
  }

  disconnectedCallback() { this.listening.abort(); }

  #buildExplore() {
    const actions = {
      say: (name, statement) => this.#state.say(name, statement),
      clear: () => this.#state.set({ given: {} }),
      pin: (name) => this.#state.set({ pins: this.#now.pins.includes(name) ? this.#now.pins.filter((one) => one !== name) : [...this.#now.pins, name] }),
      cost: (name, cost) => { const { [name]: _, ...rest } = this.#now.costs; this.#state.set({ costs: cost ? { ...rest, [name]: cost } : rest }); },
      target: (name) => this.#aim(this.#now.target === name ? null : name),
      aims: () => this.#able("next"),
    };
    this.actions = actions;
    this.chips = new Chips(actions);
    this.askBox = new AskBox({ ask: (body) => this.#ask(this.#path("ask"), body, { signal: this.#latest("ask") }), given: () => sent(this.#now.given), typed: (question) => this.#state.set({ question }) });
    this.search = h("input", { type: "search", class: "field search", placeholder: "search columns", "aria-label": "search columns", oninput: () => this.#state.set({ search: this.search.value }) });
    this.sort = h("select", { onchange: () => this.#state.set({ sort: this.sort.value }) },
      h("option", { value: "table" }, "of the table"), h("option", { value: "changed" }, "most changed"), h("option", { value: "tells" }, "tells most of target"));
    this.target = h("select", { onchange: () => this.#aim(this.target.value || null) });
    this.aim = h("label", {}, "target", this.target);
    this.grid = h("div", { class: "cards" });
    this.empty = h("p", { class: "empty", hidden: true }, "No column has this in its name.");
    this.explore = h("div", {}, this.chips.element, this.askBox.element,
      h("div", { class: "tools" }, this.search, h("label", {}, "order", this.sort), this.aim,
        h("div", { class: "legend", "aria-hidden": "true" }, h("span", {}, "before"), h("span", { class: "now" }, "given the conditions"), h("span", { class: "held" }, "said"))),
      h("h2", { class: "sr" }, "columns"), this.grid, this.empty);
    // Cards far below are drawn once they come near: a hundred columns cost no more than a screenful.
    this.seen = new IntersectionObserver((entries) => entries.forEach((entry) => this.#cards.get(entry.target.dataset.column)?.see(entry.isIntersecting)), { rootMargin: "300px" });
  }

  get #now() { return this.#state.now; }
  #path(what) { return `models/${encodeURIComponent(this.#now.model)}/${what}`; }

  #walkTabs(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const tabs = [...this.tabs.children].filter((tab) => !tab.hidden), at = tabs.findIndex((tab) => tab.dataset.tab === this.#now.tab);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    this.#state.set({ tab: next.dataset.tab });
    next.focus();
  }

  #shortcut(event) {
    const typing = event.composedPath()[0].matches?.("input[type=text], input[type=search], textarea");
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z" || typing) return;
    event.preventDefault();
    if (event.shiftKey) this.#state.redo();
    else this.#state.undo();
  }

  // ---- beginning ----------------------------------------------------------------------------------------------------

  async #begin() {
    try {
      const { models, limits } = await this.#ask("models");
      this.#models = models;
      this.#most = limits?.draws ?? Infinity;
    } catch (error) {
      return this.#fail(error);
    }
    const said = this.#linked ? State.read(location.hash) : { ...this.#beginning, sort: this.#order(this.#beginning.target) };
    const ready = this.#models.filter((one) => one.status === "ready");
    this.picker.replaceChildren(...this.#models.map((one) => h("option", { value: one.name, disabled: one.status !== "ready" }, one.status === "ready" ? one.name : `${one.name} (cannot be loaded)`)));
    this.picker.hidden = this.#models.length < 2;
    if (!ready.length) return this.#fail(new Failure({ message: "No model could be loaded." }));
    const known = ready.some((one) => one.name === said.model), wanted = this.#models.find((one) => one.name === said.model);
    if (said.model && !known) this.tell(wanted ? `The model “${said.model}” cannot be loaded: ${wanted.error}` : `The model “${said.model}” is not here.`);
    if (this.#linked) addEventListener("hashchange", () => { if (location.hash.slice(1) !== this.#state.hash) this.#state.set(State.read(location.hash)); });
    this.#state.set({ ...said, model: known ? said.model : ready[0].name, ...(known || !said.model ? {} : { given: {}, target: null }) });
    return null;
  }

  async #changed(before, now) {
    if (this.#linked) history.replaceState(null, "", `#${this.#state.hash}`);
    if (this.#columns.length) this.#publish();
    this.undo.disabled = !this.#state.canUndo;
    this.redo.disabled = !this.#state.canRedo;
    if (before.model !== null && before.model !== now.model) this.tell("");
    if (before.model !== now.model || (now.model && this.loaded !== now.model)) return this.#load();
    if (!this.#columns.length) return this.#showTab();
    if (before.tab !== now.tab) this.#showTab();
    if (before.given !== now.given) this.#update();
    else if (before.target !== now.target || before.costs !== now.costs) this.#tells();
    return this.#arrange();
  }

  async #load() {
    const model = this.#models.find((one) => one.name === this.#now.model);
    if (!model) return;
    this.loaded = model.name;
    this.picker.value = model.name;
    say(this.name, this.#models.length < 2 ? model.name : "");
    this.#columns = [];
    const table = model.modality === "table";
    for (const part of [this.copies, this.history]) part.hidden = !table;
    for (const [tab, what] of [["rows", "sample"], ["fill", "fill"], ["anomalies", "anomalies"]]) this.tabs.querySelector(`#tab-${tab}`).hidden = !this.#able(what);
    this.tabs.hidden = !table;
    this.askBox.element.hidden = !this.#able("ask");
    this.aim.hidden = this.sort.options[2].hidden = !this.#able("next");
    this.command.hidden = this.hasAttribute("in-python");
    if (table) {
      try {
        const schema = await this.#ask(this.#path("schema"), null, { signal: this.#latest("schema") });
        if (this.loaded === model.name) this.#take(schema);
      } catch (error) { this.#fail(error); }
      return;
    }
    const Panel = model.modality === "text" ? TextPanel : PicturePanel;
    this.panel.replaceChildren(new Panel((what, body) => this.#ask(this.#path(what), body), model, (error) => this.#fail(error)).element);
  }

  #take(schema) {
    this.#columns = schema.columns;
    this.seen.disconnect();
    this.#cards = new Map(schema.columns.map((column) => [column.name, new Card(column, this.actions)]));
    for (const card of this.#cards.values()) this.seen.observe(card.element);
    this.target.replaceChildren(h("option", { value: "" }, "none"), ...schema.columns.filter((one) => !one.context).map((one) => h("option", { value: one.name }, title(one.name))));
    this.askBox.know(schema.columns);
    const tables = (what, body, options) => this.#ask(this.#path(what), body, options);
    const fail = (error) => this.#fail(error);
    this.panels = { explore: this, rows: new RowsPanel(tables, schema.columns, () => sent(this.#now.given), fail, this.#most), fill: new FillPanel(tables, this.#ask, schema.columns, fail), anomalies: new AnomaliesPanel(tables, schema.columns, fail) };
    // A link may be older than the model: what is said of columns that are gone is dropped.
    const there = (name) => this.#cards.has(name), { given, target, pins } = this.#now;
    this.#now.given = this.#read(given);
    this.#now.target = there(target) && this.#able("next") ? target : null;
    this.#now.pins = pins.filter(there);
    this.#now.tab = this.#now.tab in TABS ? this.#now.tab : "explore";
    this.#after = {};
    this.#gains = new Map();
    this.#showTab();
    this.#arrange();
    this.#draw();
    this.#update();
    if (this.#now.question) this.askBox.show(this.#now.question);
    this.#publish();
  }

  /** What is known, as others said it, in the words of this page; what is said of columns that are not there is left out. */
  #read(given) {
    return Object.fromEntries(Object.entries(given).filter(([name]) => this.#cards.has(name)).map(([name, statement]) => [name, heard(this.#cards.get(name).column, statement)]).filter(([, statement]) => statement !== null));
  }

  /** Tell whoever listens what is known now. */
  #publish() {
    const { model, given, target } = this.#now;
    this.dispatchEvent(new CustomEvent("said", { detail: { model, given: sent(given), target } }));
  }

  #showTab() {
    const { tab } = this.#now;
    for (const one of this.tabs.children) {
      const chosen = one.dataset.tab === tab;
      one.setAttribute("aria-selected", String(chosen));
      one.tabIndex = chosen ? 0 : -1;
    }
    if (!this.panels) return;
    this.panel.replaceChildren(tab === "explore" ? this.explore : this.panels[tab].element);
    this.panels[tab].open?.();
  }

  // ---- answers ------------------------------------------------------------------------------------------------------

  /** All columns given what is known, in one question; the old drawing stays until the new one is there. */
  async #update() {
    const { given } = this.#now, began = performance.now();
    this.#fail(null);
    this.chips.show(this.#columns, given);
    this.askBox.stale();
    this.panels?.rows.stale();
    if (!Object.keys(given).length && this.#columns.every((column) => column.marginal)) {
      this.#latest("marginals");
      this.#latest("evidence");
      this.#after = {};
      this.#draw(began);
      this.#summary("");
      return this.#later();
    }
    try {
      const answer = await this.#ask(this.#path("marginals"), { given: sent(given) }, { signal: this.#latest("marginals") });
      this.#after = answer.columns;
      this.#draw(began);
      this.#summary(answer.given);
      if (answer.basis) this.chips.tell(answer.basis, answer.notes);
      this.#later();
    } catch (error) {
      if (error.name === "AbortError") return null;
      this.chips.tell("", []);
      this.#fail(error);
    }
    return null;
  }

  /** The slower questions wait until nothing was clicked for a moment: they would be in the way of the next cards. */
  #later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => { this.#judge(); this.#tells(); this.askBox.again(); }, A_PAUSE);
  }

  async #judge() {
    const { given } = this.#now;
    if (!Object.keys(given).length || !this.#able("evidence")) return;
    try {
      const found = await this.#ask(this.#path("evidence"), { given: sent(given), rarity: true }, { signal: this.#latest("evidence") });
      const exact = Object.entries(given).some(([name, statement]) => {
        const column = this.#columns.find((one) => one.name === name);
        return !column.levels.length && !column.discrete && !(statement !== null && typeof statement === "object" && !("value" in statement));
      });
      this.chips.judge({ ...found, density: exact }, found.notes);
    } catch (error) {
      if (error.name !== "AbortError") this.chips.judge(null, [error.message]);
    }
  }

  #aim(target) {
    this.#state.set({ target, sort: this.#order(target) });
  }

  /** With a target the cards stand by what they tell about it. */
  #order(target) {
    if (target) return "tells";
    return this.#now.sort === "tells" ? "table" : this.#now.sort;
  }

  /** What each column would tell about the target. */
  async #tells() {
    const { given, target, costs } = this.#now, signal = this.#latest("next");
    const exact = target && Object.hasOwn(given, target) && !this.#after[target];
    if (!target || exact) {
      this.#gains = new Map();
      if (this.#aimed) this.#draw();
      this.#aimed = target;
      this.#arrange();
      return;
    }
    this.#aimed = target;
    // Where one column has a cost, all need one.
    const open = this.#columns.filter((one) => one.name !== target && !one.context && (!Object.hasOwn(given, one.name) || this.#after[one.name])).map((one) => one.name);
    const priced = open.some((name) => costs[name]) ? { costs: Object.fromEntries(open.map((name) => [name, costs[name] ?? 1])) } : {};
    try {
      const answer = await this.#ask(this.#path("next"), { given: sent(given), about: [target], draws: Math.min(64, this.#most), ...priced }, { signal });
      const now = answer.now?.value ?? 0;
      const entropy = this.#columns.find((one) => one.name === target).levels.length > 0; // of a density it is no amount
      this.#gains = new Map(answer.candidates.map((one) => [one.name, { value: one.value, words: entropy ? gainWords(one.gain.value, now) : `${one.gain.value.toFixed(2)} ${answer.unit}` }]));
    } catch (error) {
      if (error.name === "AbortError") return;
      this.#gains = new Map();
      this.#fail(error);
    }
    this.#draw();
    this.#arrange();
  }

  #draw(began = null) {
    const { given, target, pins, costs } = this.#now;
    for (const [name, card] of this.#cards) {
      card.show({ before: card.column.marginal, after: this.#after[name], statement: Object.hasOwn(given, name) ? given[name] : undefined, gain: this.#gains.get(name), cost: costs[name], pinned: pins.includes(name), target: target === name });
    }
    if (this.#now.sort === "changed") this.#arrange();
    if (began !== null) requestAnimationFrame(() => {
      // Behind the frame that paints the cards: for whoever measures (benchmarks/serve/explorer.py).
      setTimeout(() => performance.measure("anyorder:cards", { start: began, end: performance.now() }));
    });
  }

  /** The order of the cards: pinned first; those not searched for are left out. */
  #arrange() {
    const { search, sort, pins, target } = this.#now, wanted = search.trim().toLowerCase();
    this.search.value = search;
    this.sort.value = sort;
    this.target.value = target ?? "";
    this.sort.options[2].disabled = !target;
    const rank = { changed: (name) => -moved(this.#cards.get(name).column.marginal, this.#after[name]), tells: (name) => (name === target ? -Infinity : -(this.#gains.get(name)?.value ?? -1)), table: () => 0 }[sort] ?? (() => 0);
    const names = [...this.#cards.keys()].filter((name) => name.toLowerCase().includes(wanted) || title(name).toLowerCase().includes(wanted));
    const order = names.map((name, at) => [pins.includes(name) ? 0 : 1, rank(name), at, name]).sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]);
    const elements = order.map((one) => this.#cards.get(one[3]).element);
    if (elements.length !== this.grid.children.length || elements.some((element, k) => this.grid.children[k] !== element)) this.#reorder(elements);
    this.empty.hidden = elements.length > 0 || !this.#cards.size;
    for (const [name, card] of this.#cards) card.pin.setAttribute("aria-pressed", String(pins.includes(name)));
  }

  /** Moving an element takes the focus from it: give it back. */
  #reorder(elements) {
    const focused = this.shadowRoot.activeElement;
    this.grid.replaceChildren(...elements);
    if (focused && focused.isConnected && this.shadowRoot.activeElement !== focused) focused.focus({ preventScroll: true });
  }

  #summary(given) {
    if (!given) return say(this.live, "Nothing is known: every card shows its column as it is in the data.");
    const best = Object.keys(this.#after).map((name) => [moved(this.#cards.get(name)?.column.marginal, this.#after[name]), name]).sort((a, b) => b[0] - a[0]).slice(0, 3);
    const words = best.filter(([far]) => far > 0.02).map(([, name]) => {
      const one = this.#after[name];
      return one.cells ? `${title(name)} is ${one.written.mean ?? one.written.median} on average` : `${title(name)} is most probably ${one.written.best}`;
    });
    return say(this.live, `Given ${given}: ${words.length ? words.join("; ") : "nothing changes much"}.`);
  }

  // ---- copying, failing ---------------------------------------------------------------------------------------------

  /** The columns worth asking for in copied code: the target, or what is pinned, or what changed most. */
  #interesting() {
    const { target, pins, given } = this.#now, open = (name) => !Object.hasOwn(given, name) && !this.#cards.get(name).column.context;
    if (target && open(target)) return [target];
    if (pins.some(open)) return pins.filter(open);
    return [...this.#cards.keys()].filter(open).map((name) => [-moved(this.#cards.get(name).column.marginal, this.#after[name]), name]).sort((a, b) => a[0] - b[0]).slice(0, 3).map((one) => one[1]);
  }

  async #copy(text) {
    let words = "Copied";
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Not allowed here (no secure context): show it, to be copied by hand.
      const field = h("textarea", { readonly: true, "aria-label": "text to copy", value: text });
      const dialog = h("dialog", { onclose: () => dialog.remove() }, field, h("form", { method: "dialog" }, h("button", { class: "quiet-button" }, "close")));
      this.shadowRoot.append(dialog);
      dialog.showModal();
      field.select();
      words = "Copy it from here";
    }
    this.lastCopied = text;
    const toast = h("div", { class: "toast", role: "status" }, words);
    this.shadowRoot.append(toast);
    setTimeout(() => toast.remove(), 1600);
  }

  #fail(error) {
    if (error?.name === "AbortError") return;
    this.failure.hidden = !error;
    say(this.failure, error ? error.message : "");
    // By its name: on a page with several of these elements each may have come with a class of its own.
    if (error && error.name !== "Failure") throw error;
  }
}

if (!customElements.get("any-order-explorer")) customElements.define("any-order-explorer", AnyOrderExplorer);
