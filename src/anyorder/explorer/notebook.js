// The explorer in a notebook, as anywidget shows it: asks Python over messages, and tells it what was said.

import "./explorer.js";
import { overMessages } from "./messages.js";
import { same } from "./words.js";

/** Whether the page around an element is dark: by the colour of its text, which every notebook sets. */
function isDark(element) {
  const [red, green, blue] = (getComputedStyle(element).color.match(/[\d.]+/g) ?? [0, 0, 0]).map(Number);
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140;
}

function render({ model, el }) {
  const element = document.createElement("any-order-explorer");
  element.setAttribute("in-python", "");
  const height = () => {
    const pixels = model.get("height");
    Object.assign(element.style, { maxHeight: pixels ? `${pixels}px` : "", overflow: pixels ? "auto" : "", borderRadius: "8px" });
  };
  const theme = () => { element.style.colorScheme = isDark(el) ? "dark" : "light"; };
  const said = () => ({ model: model.get("model"), given: model.get("given"), target: model.get("target") });
  const from_python = () => element.say(said());
  const to_python = ({ detail }) => {
    const before = said();
    for (const [name, value] of Object.entries(detail)) if (!same(before[name], value)) model.set(name, value);
    if (!same(before, said())) model.save_changes();
  };

  el.append(element);
  height();
  theme();
  const themes = new MutationObserver(theme);
  for (const one of [document.documentElement, document.body]) themes.observe(one, { attributes: true });
  model.on("change:height", height);
  for (const name of ["model", "given", "target"]) model.on(`change:${name}`, from_python);
  element.addEventListener("said", to_python);
  const ask = overMessages(model, (words) => element.tell(words));
  element.say(said());
  element.ask = ask;
  return () => {
    ask.end();
    themes.disconnect();
    model.off("change:height", height);
    for (const name of ["model", "given", "target"]) model.off(`change:${name}`, from_python);
    element.remove();
  };
}

export default { render };
