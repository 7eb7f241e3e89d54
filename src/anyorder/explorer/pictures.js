// A model of pictures: paint the hole, see several ways to fill it beside each other.

import { h, say } from "./dom.js";

const SIDE = 280; // pixels of the screen
const DRAWS = 5;

const nested = (shape, value) => Array.from({ length: shape[0] }, () => Array.from({ length: shape[1] }, () => value));

export class PicturePanel {
  #picture = null;
  #known;

  constructor(ask, model, fail) {
    Object.assign(this, { ask, model, fail });
    this.#known = nested(model.shape, true);
    this.canvas = h("canvas", { "aria-label": "the picture; paint the hole on it", role: "img", tabindex: "0" });
    this.brush = h("input", { type: "range", min: 1, max: Math.max(2, Math.round(model.shape[1] / 4)), value: Math.max(1, Math.round(model.shape[1] / 9)), "aria-label": "width of the brush" });
    this.status = h("p", { role: "status" });
    this.out = h("div", { class: "pictures" });
    const button = (label, act, kind = "") => h("button", { type: "button", class: `quiet-button ${kind}`, onclick: act }, label);
    this.element = h("section", { class: "tab", "aria-label": "pictures" },
      h("p", {}, "Paint over the part that is to be forgotten, then fill it: the model draws it anew, several times, in keeping with what is left."),
      h("div", { class: "actions" }, button("Fill the hole", () => this.#fill(), "primary"), button("Another picture", () => this.#another()), button("Hide the lower half", () => this.#hide()), button("Heal", () => { this.#known = nested(model.shape, true); this.#show(); }), h("label", {}, "brush ", this.brush)),
      this.status, h("div", { class: "pictures" }, h("figure", {}, this.canvas, h("figcaption", {}, "paint here")), this.out));
    this.seed = 0;
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
      const { pictures } = await this.ask("pictures/fill", { picture: this.#picture, known: this.#known, draws: DRAWS, steps: 16 });
      this.out.replaceChildren(...pictures.map((one, k) => {
        const canvas = h("canvas", { role: "img", "aria-label": `draw ${k + 1}` });
        this.#paint(canvas, one, null, SIDE / 1.6);
        return h("figure", {}, canvas, h("figcaption", {}, `draw ${k + 1}`));
      }));
    });
  }

  #show() { if (this.#picture) this.#paint(this.canvas, this.#picture, this.#known, SIDE); }

  #paint(canvas, picture, known, side) {
    const [height, width] = this.model.shape, image = new ImageData(width, height), most = this.model.levels - 1 || 1;
    picture.forEach((row, y) => row.forEach((pixel, x) => {
      const colour = Array.isArray(pixel) ? pixel : [pixel, pixel, pixel], at = 4 * (y * width + x);
      const hidden = known && !known[y][x];
      for (let c = 0; c < 3; c += 1) image.data[at + c] = hidden ? [235, 150, 60][c] : (255 * (colour[c] ?? colour[0])) / most;
      image.data[at + 3] = 255;
    }));
    Object.assign(canvas, { width, height });
    canvas.style.width = `${side}px`;
    canvas.style.height = `${(side * height) / width}px`;
    canvas.getContext("2d").putImageData(image, 0, 0);
  }

  #listen() {
    let painting = false;
    const paint = (event) => {
      if (!painting || !this.#picture) return;
      const [height, width] = this.model.shape, box = this.canvas.getBoundingClientRect(), reach = Number(this.brush.value) / 2;
      const x = ((event.clientX - box.left) / box.width) * width, y = ((event.clientY - box.top) / box.height) * height;
      this.#known.forEach((row, j) => row.forEach((_, i) => { if (Math.hypot(i + 0.5 - x, j + 0.5 - y) <= reach + 0.3) row[i] = false; }));
      this.#show();
    };
    this.canvas.addEventListener("pointerdown", (event) => { painting = true; this.canvas.setPointerCapture(event.pointerId); paint(event); });
    this.canvas.addEventListener("pointermove", paint);
    this.canvas.addEventListener("pointerup", () => { painting = false; });
    this.canvas.addEventListener("pointercancel", () => { painting = false; });
  }
}
