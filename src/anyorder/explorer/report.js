// The explorer inside of a report: every element on the page answers from the rows that stand beside it.

import { fromDraws, unpacked } from "./drawn.js";
import "./explorer.js";

for (const element of document.querySelectorAll("any-order-explorer")) {
  const packed = element.querySelector("script").textContent;
  unpacked(packed).then((drawn) => { element.ask = fromDraws(drawn); });
}
