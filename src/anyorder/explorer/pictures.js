// A model of pictures: paint the hole, with a pointer or with the keys, and see several ways to fill it beside each other.

import { h, say } from "./dom.js";

const DRAWS = 5;
const HOLE = [235, 150, 60], BRUSH = [58, 111, 208]; // the brush is only seen where keys move it
const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const nested = (shape, value) => Array.from({ length: shape[0] }, () => Array.from({ length: shape[1] }, () => value));

export class PicturePanel {
  #picture = null;
  #known;
  #brush = null; // where keys have moved it

  constructor(ask, model, fail) {
    Object.assign(this, { ask, model, fail });
    this.#known = nested(model.shape, true);
    this.canvas = h("canvas", { "aria-label": "the picture; paint the hole on it, or move with the arrow keys and paint with the space bar", role: "application", tabindex: "0" });
    this.brush = h("input", { type: "range", min: 1, max: Math.max(2, Math.round(model.shape[1] / 4)), value: Math.max(1, Math.round(model.shape[1] / 9)), "aria-label": "width of the brush" });
    this.status = h("p", { role: "status" });
    this.out = h("div", { class: "draws" });
    const button = (label, act, kind = "") => h("button", { type: "button", class: `quiet-button ${kind}`, onclick: act }, label);
    this.element = h("section", { class: "tab", "aria-label": "pictures" },
      h("p", {}, "Paint over the part that is to be forgotten, then fill it: the model draws it anew, several times, in keeping with what is left."),
      h("div", { class: "actions" }, button("Fill the hole", () => this.#fill(), "primary"), button("Another picture", () => this.#another()), button("Hide the lower half", () => this.#hide()), button("Heal", () => { this.#known = nested(model.shape, true); this.#show(); }), h("label", { class: "beside" }, "brush ", this.brush)),
      this.status, h("div", { class: "pictures" }, h("figure", { class: "easel" }, this.canvas, h("figcaption", {}, "paint here")), this.out));
    this.seed = this.drawn = 0; // of pictures, and of what fills their holes: the same button twice gives something else
    this.#listen();
    this.#another();
  }

  async #do(work) {
    this.fail(null);
    say(this.status, "…");
    try { await work(); say(this.status, ""); } catch (error) { say(this.status, ""); this.fail(error); }
  }

  #another() {
    return this.#do(async () => {
      this.seed += 1;
      this.#picture = (await this.ask("pictures/sample", { count: 1, seed: this.seed, steps: 16 })).pictures[0];
      this.#known = nested(this.model.shape, true);
      this.out.replaceChildren();
      this.#show();
    });
  }

  #hide() {
    const [height] = this.model.shape;
    this.#known = this.#known.map((row, y) => row.map((known) => known && y < height / 2));
    this.#show();
  }

  #fill() {
    return this.#do(async () => {
      if (!this.#picture) return;
      const { pictures } = await this.ask("pictures/fill", { picture: this.#picture, known: this.#known, draws: DRAWS, seed: this.drawn++, steps: 16 });
      this.out.replaceChildren(...pictures.map((one, k) => {
        const canvas = h("canvas", { role: "img", "aria-label": `draw ${k + 1}` });
        this.#paint(canvas, one, null);
        return h("figure", {}, canvas, h("figcaption", {}, `draw ${k + 1}`));
      }));
    });
  }

  #show() { if (this.#picture) this.#paint(this.canvas, this.#picture, this.#known); }

  #paint(canvas, picture, known) {
    const [height, width] = this.model.shape, image = new ImageData(width, height), most = this.model.levels - 1 || 1;
    picture.forEach((row, y) => row.forEach((pixel, x) => {
      const colour = Array.isArray(pixel) ? pixel : [pixel, pixel, pixel], at = 4 * (y * width + x);
      const hidden = known && !known[y][x];
      const marked = known && this.#brush?.[0] === x && this.#brush[1] === y ? BRUSH : hidden ? HOLE : null;
      for (let c = 0; c < 3; c += 1) image.data[at + c] = marked ? marked[c] : (255 * (colour[c] ?? colour[0])) / most;
      image.data[at + 3] = 255;
    }));
    Object.assign(canvas, { width, height });
    canvas.getContext("2d").putImageData(image, 0, 0);
  }

  #listen() {
    let painting = false;
    const [height, width] = this.model.shape;
    const forget = (x, y) => {
      const reach = Number(this.brush.value) / 2;
      this.#known.forEach((row, j) => row.forEach((_, i) => { if (Math.hypot(i + 0.5 - x, j + 0.5 - y) <= reach + 0.3) row[i] = false; }));
      this.#show();
    };
    const paint = (event) => {
      if (!painting || !this.#picture) return;
      const box = this.canvas.getBoundingClientRect();
      forget(((event.clientX - box.left) / box.width) * width, ((event.clientY - box.top) / box.height) * height);
    };
    this.canvas.addEventListener("keydown", (event) => {
      const step = KEYS[event.key];
      if (!this.#picture || !(step || event.key === " ")) return;
      event.preventDefault();
      const [x, y] = this.#brush ?? [Math.floor(width / 2), Math.floor(height / 2)], [right, down] = (this.#brush && step) || [0, 0];
      this.#brush = [Math.min(width - 1, Math.max(0, x + right)), Math.min(height - 1, Math.max(0, y + down))];
      if (step) this.#show();
      else forget(this.#brush[0] + 0.5, this.#brush[1] + 0.5);
      say(this.status, `column ${this.#brush[0] + 1}, row ${this.#brush[1] + 1}${step ? "" : ": to be filled"}`);
    });
    this.canvas.addEventListener("blur", () => { this.#brush = null; this.#show(); });
    this.canvas.addEventListener("pointerdown", (event) => { painting = true; this.canvas.setPointerCapture(event.pointerId); paint(event); });
    this.canvas.addEventListener("pointermove", paint);
    this.canvas.addEventListener("pointerup", () => { painting = false; });
    this.canvas.addEventListener("pointercancel", () => { painting = false; });
  }
}
