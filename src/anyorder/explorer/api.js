// How the explorer asks: a function ask(path, body, options). Here over HTTP; messages.js and drawn.js have two others.
//
// `ask.able` lists what can be asked of it (the last part of a path) where that is not everything; the rest is not offered.

/** What the service says went wrong: its message, and `at`, the character of a typed text. */
export class Failure extends Error {
  constructor(facts, status) {
    super(facts.message);
    Object.assign(this, { name: "Failure", at: facts.at ?? null, where: facts.where ?? null, kind: facts.kind ?? null, status });
  }
}

/**
 * An `ask` over HTTP. `path` is relative to v1/; without a body it is a GET, a string or the bytes of a file go as they are, the rest as JSON.
 * `tokens.read()` gives the token of a guarded service; `tokens.wanted()` is awaited once one is missing or wrong.
 */
export function overHttp(base = new URL("v1/", location.href), tokens = null) {
  return async function ask(path, body = null, { signal, type = "application/json", method, accept } = {}) {
    for (;;) {
      const headers = { Accept: accept ?? "application/json" };
      const token = tokens?.read();
      if (token) headers.Authorization = `Bearer ${token}`;
      if (body !== null) headers["Content-Type"] = type;
      const content = body === null || typeof body === "string" || body instanceof ArrayBuffer ? body : JSON.stringify(body);
      let response;
      try {
        response = await fetch(new URL(path, base), {
          method: method ?? (body === null ? "GET" : "POST"), headers, body: content, signal, cache: "no-store",
        });
      } catch (error) {
        if (error.name === "AbortError") throw error;
        throw new Failure({ message: "The service does not answer. Is `anyorder serve` still running?" }, 0);
      }
      if (response.status === 401 && tokens) {
        await tokens.wanted();
        continue;
      }
      if (response.ok) return accept && accept !== "application/json" ? response.blob() : response.json();
      const said = await response.json().catch(() => null);
      throw new Failure(said?.error ?? { message: `the service answered ${response.status}` }, response.status);
    }
  };
}

/** Only the latest question counts: `latest(kind)` gives a signal and aborts the one that was given before it. */
export function onlyLatest() {
  const under_way = new Map();
  return (kind) => {
    under_way.get(kind)?.abort();
    const controller = new AbortController();
    under_way.set(kind, controller);
    return controller.signal;
  };
}
