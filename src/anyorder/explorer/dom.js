// Elements made by hand: everything that comes from a model or a file becomes a text node, never markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An HTML element: `h("button", {class: "chip", onclick: f}, "text", child)`. */
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** The same for SVG. */
export function s(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

/** Set the text only where it differs: a screen reader announces a live region when it is written to. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A line icon: one path on a grid of 20. */
export function icon(path) {
  return s("svg", { viewBox: "0 0 20 20", class: "icon", "aria-hidden": "true" }, s("path", { d: path }));
}

export const ICONS = {
  undo: "M7 5 3 9l4 4M3.5 9H12a4.5 4.5 0 0 1 0 9h-2",
  redo: "M13 5l4 4-4 4M16.500 9H8a4.500 4.500 0 0 0 0 9h2",
  pin: "M8 3h4l-.6 5 3.100 3v1.500h-9V11l3.100-3zM10 12.500V18",
  target: "M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM10 7.500a2.500 2.500 0 1 0 0 5 2.500 2.500 0 0 0 0-5z",
  close: "M6 6l8 8M14 6l-8 8",
};
