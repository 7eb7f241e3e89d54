// The page of `anyorder serve`: the element, asking over HTTP; a token is asked for where the service wants one.

import { overHttp } from "./api.js";
import { h } from "./dom.js";
import "./explorer.js";

const KEY = "anyorder-token"; // kept until the tab is closed

function askForToken() {
  return new Promise((resolve) => {
    const field = h("input", { type: "password", name: "token", autocomplete: "current-password", required: true, autofocus: true });
    const form = h("form", { method: "dialog" }, h("p", {}, "This service needs a token: the one it was started with."), h("label", {}, "Token ", field), " ", h("button", {}, "Go on"));
    const dialog = h("dialog", { onclose: () => { sessionStorage.setItem(KEY, field.value); dialog.remove(); resolve(); } }, form);
    document.body.append(dialog);
    dialog.showModal();
  });
}

let asking = null;
const tokens = {
  read: () => sessionStorage.getItem(KEY),
  wanted: () => (asking ??= askForToken().finally(() => { asking = null; })),
};

document.querySelector("any-order-explorer").ask = overHttp(new URL("v1/", location.href), tokens);
