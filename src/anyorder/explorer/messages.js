// How the explorer asks in a notebook: over the messages of a widget (anywidget), to the Python that made it.
//
// A question goes as {id, path, method, type, accept, body}, the bytes of a file as {..., file} in base64; {id, drop: true} says that nobody waits for it any more. An
// answer comes as {id, status} with one buffer, the bytes that HTTP would have sent.

import { Failure } from "./api.js";

const PATIENCE = 4000; // milliseconds after which it is said that Python is busy

const bytesOf = (buffer) => (buffer instanceof ArrayBuffer ? new Uint8Array(buffer) : new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength));

const base64 = (buffer) => btoa(Array.from(new Uint8Array(buffer), (byte) => String.fromCharCode(byte)).join(""));

/**
 * An `ask` over the messages of `model`; `busy(words)` is told while Python lets one wait, and "" once it answers.
 * `ask.end()` stops listening.
 */
export function overMessages(model, busy = () => {}) {
  const waiting = new Map(), own = Math.random().toString(36).slice(2); // a widget may be shown twice: both hear all answers
  let count = 0;

  const settle = (id) => {
    const one = waiting.get(id);
    waiting.delete(id);
    clearTimeout(one?.timer);
    if (one && !waiting.size) busy("");
    return one;
  };

  const heard = ({ id, status } = {}, buffers = []) => {
    const one = settle(id);
    if (!one) return;
    const bytes = buffers.length ? bytesOf(buffers[0]) : new Uint8Array();
    const read = () => JSON.parse(new TextDecoder().decode(bytes));
    if (status < 400) one.resolve(one.accept === "application/json" ? read() : new Blob([bytes], { type: one.accept }));
    else {
      let said = null;
      try { said = read().error; } catch { /* not one of ours */ }
      one.reject(new Failure(said ?? { message: `Python answered ${status}` }, status));
    }
  };
  model.on("msg:custom", heard);

  const ask = (path, body = null, { signal, type = "application/json", method, accept = "application/json" } = {}) => new Promise((resolve, reject) => {
    const id = `${own}-${count += 1}`;
    if (signal?.aborted) throw new DOMException("dropped", "AbortError");
    signal?.addEventListener("abort", () => {
      if (!settle(id)) return;
      model.send({ id, drop: true });
      reject(new DOMException("dropped", "AbortError"));
    });
    const timer = setTimeout(() => busy("Python is busy or gone: the answer comes once its cell has run."), PATIENCE);
    waiting.set(id, { resolve, reject, accept, timer });
    const content = body instanceof ArrayBuffer ? { file: base64(body) } : { body: body === null || typeof body === "string" ? body : JSON.stringify(body) };
    model.send({ id, path, method: method ?? (body === null ? "GET" : "POST"), type, accept, ...content });
  });
  ask.end = () => { model.off("msg:custom", heard); for (const { timer } of waiting.values()) clearTimeout(timer); waiting.clear(); };
  return ask;
}
