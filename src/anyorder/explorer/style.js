// How it looks. Adopted as a constructed sheet: a strict Content-Security-Policy allows that, and the page's own styles
// cannot leak in.

export const style = `
:host {
  color-scheme: light dark;
  --ground: light-dark(#f6f6f3, #14171c);
  --surface: light-dark(#ffffff, #1c2128);
  --sunken: light-dark(#f0f1ee, #171b21);
  --line: light-dark(#e2e4df, #2d343e);
  --ink: light-dark(#1b212b, #e8ebf0);
  --muted: light-dark(#59626f, #9ba5b3);
  --before: light-dark(#cdd2d8, #454e5b);
  --after: light-dark(#3a6fd0, #6c9df5);
  --accent: light-dark(#2a5cbb, #8db4fa);
  --given: light-dark(#a4580a, #f2b560);
  --given-soft: light-dark(#fdf1e0, #3a2e1c);
  --warn: light-dark(#9a2f1d, #ffb3a1);
  --warn-soft: light-dark(#fdebe6, #3b211c);
  --radius: 12px;
  display: block;
  background: var(--ground);
  color: var(--ink);
  font: 15px/1.45 system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif;
  font-variant-numeric: tabular-nums;
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
button, input, select, textarea { font: inherit; color: inherit; }
button { cursor: pointer; }
button:disabled { cursor: default; opacity: 0.4; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 6px; }
h1, h2, h3, p, ul { margin: 0; padding: 0; }
.sr { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.icon { width: 18px; height: 18px; fill: none; stroke: currentColor; stroke-width: 1.6; stroke-linecap: round; stroke-linejoin: round; display: block; }

.frame { container-type: inline-size; max-width: 2400px; margin: 0 auto; padding: 0 clamp(12px, 2.5vw, 40px) 48px; }
.top { display: flex; flex-wrap: wrap; align-items: center; gap: 10px 18px; padding: 16px 0 12px; }
.brand { font-size: 19px; font-weight: 650; letter-spacing: -0.01em; }
.brand small { font-weight: 400; color: var(--muted); font-size: 15px; margin-left: 8px; }
.spacer { flex: 1; }
.group { display: flex; align-items: center; gap: 6px; }
.quiet-button, .plain, select, .field {
  border: 1px solid var(--line); background: var(--surface); border-radius: 8px; padding: 6px 11px; min-height: 36px;
}
.quiet-button { display: inline-flex; align-items: center; gap: 6px; }
.quiet-button:hover:not(:disabled), .plain:hover { border-color: var(--muted); }
.primary { background: var(--accent); color: var(--surface); border-color: var(--accent); }
.plain { min-height: 30px; padding: 3px 10px; color: var(--muted); background: transparent; }
select { padding-right: 6px; max-width: 100%; }
.tabs { display: flex; gap: 4px; border-bottom: 1px solid var(--line); margin-bottom: 16px; overflow-x: auto; }
.tabs button { border: 0; background: none; padding: 9px 14px; color: var(--muted); border-bottom: 2px solid transparent; margin-bottom: -1px; white-space: nowrap; }
.tabs button[aria-selected="true"] { color: var(--ink); border-bottom-color: var(--accent); font-weight: 600; }

.known { position: sticky; top: 0; z-index: 3; background: var(--ground); padding: 6px 0 4px; margin-bottom: 6px; }
.known .line { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; }
.hint { color: var(--muted); padding: 5px 0; }
.hint b { color: var(--ink); font-weight: 600; }
.chips { display: flex; flex-wrap: wrap; gap: 8px; list-style: none; }
.chip { display: inline-flex; align-items: center; gap: 4px; background: var(--given-soft); color: var(--given); border-radius: 999px; padding: 3px 4px 3px 14px; min-height: 34px; max-width: 100%; }
.chip span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.chip b { font-weight: 600; }
.chip button { border: 0; background: none; padding: 5px; border-radius: 50%; color: inherit; }
.chip button:hover { background: color-mix(in srgb, currentColor 15%, transparent); }
.chip .icon { width: 16px; height: 16px; }
.likely { color: var(--muted); font-size: 14px; padding-top: 6px; min-height: 27px; }
.likely:empty { display: none; }
.likely.waiting { opacity: 0.45; }
.notice { color: var(--muted); padding-bottom: 8px; }
.warning span { display: block; }
.waiting .reply { opacity: 0.45; }
.warning, .failure { background: var(--warn-soft); color: var(--warn); border-radius: 8px; padding: 8px 12px; margin-top: 8px; }

.tools { display: flex; flex-wrap: wrap; gap: 10px 14px; align-items: center; padding: 4px 0 16px; }
.tools label { display: inline-flex; align-items: center; gap: 8px; color: var(--muted); }
.tools select { color: var(--ink); max-width: 220px; }
.tools .search { flex: 0 1 220px; min-width: 140px; }
.legend { display: flex; gap: 14px; color: var(--muted); font-size: 14px; align-items: center; }
.legend span::before { content: ""; display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 6px; vertical-align: -1px; background: var(--before); }
.legend .now::before { background: var(--after); }
.legend .held::before { background: var(--given); }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 290px), 1fr)); gap: 16px; align-items: stretch; }
.empty { color: var(--muted); padding: 24px 0; }

.card { background: var(--surface); border: 1px solid var(--line); border-radius: var(--radius); padding: 14px 16px 12px; display: flex; flex-direction: column; gap: 10px; min-width: 0; contain: layout paint style; }
.card.given { border-color: var(--given); }
.card.is-target { border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent); }
.card header { display: flex; align-items: center; gap: 8px; }
.card h3 { font-size: 15px; font-weight: 600; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.card .kind { color: var(--muted); font-size: 13px; flex: 1; white-space: nowrap; }
.mini { border: 0; background: none; padding: 5px; border-radius: 6px; color: var(--muted); }
.mini:hover, .mini[aria-pressed="true"] { color: var(--accent); background: var(--sunken); }
.mini[aria-pressed="true"] path { fill: color-mix(in srgb, currentColor 30%, transparent); }
.words { min-height: 65px; }
.answer { display: flex; align-items: baseline; gap: 8px; min-width: 0; }
.answer strong { font-size: 21px; font-weight: 620; letter-spacing: -0.01em; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.answer strong.long { font-size: 16px; line-height: 30px; letter-spacing: 0; }
.answer .about { color: var(--muted); white-space: nowrap; }
.words p + p { font-size: 14px; color: var(--muted); }
.words .change { color: var(--accent); min-height: 20px; }
.words .change:empty { display: none; }
.words .change.still { color: var(--muted); }
.words .condition { color: var(--given); }
.words .gain { font-weight: 600; color: var(--ink); }
.cost { font-size: 14px; color: var(--muted); }
.card .cost input { width: 64px; flex: none; padding: 1px 4px; }
.words p:empty { display: none; }

.axis-chart { flex: 1 0 auto; display: flex; flex-direction: column; }
.plot { flex: 1 0 92px; height: 92px; max-height: 180px; cursor: crosshair; touch-action: pan-y; user-select: none; border-radius: 6px; background: var(--sunken); overflow: hidden; }
.plot svg { width: 100%; height: 100%; display: block; }
.plot .before { fill: var(--before); }
.plot .after { fill: color-mix(in srgb, var(--after) 42%, transparent); stroke: var(--after); stroke-width: 1.6; vector-effect: non-scaling-stroke; }
.plot .interval { fill: var(--after); }
.plot .interval.quiet { fill: var(--muted); opacity: 0.55; }
.plot .chosen { fill: color-mix(in srgb, var(--given) 20%, transparent); stroke: var(--given); stroke-width: 1.2; vector-effect: non-scaling-stroke; }
.ends { display: flex; justify-content: space-between; gap: 8px; font-size: 13px; color: var(--muted); padding-top: 4px; }
.ends span { white-space: nowrap; }
.ends .readout { color: var(--given); font-weight: 600; }

.levels { display: flex; flex-direction: column; gap: 2px; margin: 0 -8px; }
.level { display: grid; grid-template-columns: minmax(64px, 38%) 1fr 58px; gap: 10px; align-items: center; border: 0; background: none; border-radius: 7px; padding: 4px 8px; text-align: left; min-height: 30px; }
.long .level { grid-template: auto 8px / minmax(0, 1fr) auto; gap: 4px 10px; }
.long .level .track { grid-area: 2 / 1 / 3 / 3; height: 8px; }
.long .level .share { grid-area: 1 / 2; }
.long .bar.after { top: 2px !important; bottom: 2px !important; }
.level:hover { background: var(--sunken); }
.level .name { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.level .track { position: relative; height: 16px; border-radius: 4px; background: var(--sunken); overflow: hidden; }
.level:hover .track { background: var(--line); }
.level .bar { position: absolute; left: 0; border-radius: 3px; }
.level .bar.before { top: 0; bottom: 0; background: var(--before); }
.level .bar.after { top: 4px; bottom: 4px; background: var(--after); }
.level .share { text-align: right; color: var(--muted); font-size: 14px; white-space: nowrap; }
.level[aria-pressed="true"] { background: var(--given-soft); color: var(--given); font-weight: 600; }
.level[aria-pressed="true"] .bar.after { background: var(--given); }
.level[aria-pressed="true"] .share { color: inherit; }
.more { border: 0; background: none; color: var(--accent); text-align: left; padding: 4px 8px; }
.card form { margin-top: auto; display: flex; gap: 8px; }
.card input { flex: 1; min-width: 0; border: 0; border-bottom: 1px solid var(--line); background: none; padding: 5px 2px; font-size: 14px; border-radius: 0; }
.card input::placeholder, .field::placeholder, textarea::placeholder { color: var(--muted); opacity: 1; }
@container (max-width: 480px) {
  .legend, .spacer { display: none; }
  .top { gap: 8px 10px; padding-top: 10px; }
  .top select { flex: 1; min-width: 0; }
  .top .group { margin-left: auto; }
  .top .copies { width: 100%; }
  .copies button { flex: 1; justify-content: center; }
  .words { min-height: 0; }
  .known { max-height: 40vh; overflow: auto; }
  .tools .search { flex: 1 1 100%; }
  .tools label { flex: 1 1 40%; min-width: 0; }
  .tools select { flex: 1; min-width: 0; }
}
@media print { .tools, .ask, .tabs, .group, .mini, .more, .hint, .card form { display: none !important; } .known { position: static; } .card { break-inside: avoid; } }
@media (min-width: 2600px) { :host { font-size: 18px; } .frame { max-width: 3600px; } .cards { grid-template-columns: repeat(auto-fill, minmax(380px, 1fr)); } }

.ask { position: relative; padding: 0 0 14px; }
.ask form { display: flex; gap: 8px; }
.ask .field { flex: 1; min-width: 0; font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 14px; }
.suggestions { position: absolute; z-index: 5; list-style: none; background: var(--surface); border: 1px solid var(--line); border-radius: 8px; box-shadow: 0 8px 24px rgb(0 0 0 / 0.15); padding: 4px; margin-top: 4px; min-width: 240px; max-width: 100%; max-height: 260px; overflow: auto; }
.suggestions li { padding: 5px 10px; border-radius: 5px; cursor: pointer; display: flex; gap: 14px; justify-content: space-between; }
.suggestions li small { color: var(--muted); }
.suggestions li[aria-selected="true"] { background: var(--sunken); color: var(--accent); }
.reply { background: var(--surface); border: 1px solid var(--line); border-radius: var(--radius); padding: 12px 16px; margin-top: 10px; }
.reply strong { font-size: 18px; }
.reply .row { display: flex; flex-wrap: wrap; gap: 4px 12px; align-items: baseline; padding: 2px 0; }
.reply .row span { color: var(--muted); }
.ask pre { margin: 8px 0 0; font-size: 14px; white-space: pre-wrap; overflow-wrap: anywhere; font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.ask mark { background: var(--warn); color: var(--surface); border-radius: 3px; padding: 1px 3px; }

.tab > p { max-width: 80ch; color: var(--muted); padding: 2px 0 14px; }
.tab > p:empty { display: none; }
.scroll { overflow: auto; max-height: 75vh; border: 1px solid var(--line); border-radius: var(--radius); background: var(--surface); }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td { padding: 6px 12px; text-align: left; white-space: nowrap; border-bottom: 1px solid var(--line); }
th { position: sticky; top: 0; background: var(--surface); font-weight: 600; z-index: 1; }
td.number, th.number { text-align: right; }
td.held { color: var(--given); }
td.filled { background: color-mix(in srgb, var(--after) var(--tint, 30%), transparent); font-weight: 600; }
td.odd { background: var(--given-soft); color: var(--given); font-weight: 600; }
.drop { border: 1.5px dashed var(--muted); border-radius: var(--radius); padding: 28px 20px; text-align: center; background: var(--surface); margin-bottom: 16px; color: var(--muted); }
.drop.over { border-color: var(--accent); background: var(--sunken); }
.drop button { margin: 0 4px; }
.actions { display: flex; flex-wrap: wrap; gap: 10px; align-items: center; padding-bottom: 14px; }
.actions:empty { display: none; }
textarea + .actions { padding-top: 12px; }
textarea { width: 100%; min-height: 130px; border: 1px solid var(--line); border-radius: var(--radius); background: var(--surface); padding: 12px 14px; font: 15px/1.6 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.text-answer { font: 16px/1.8 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre-wrap; overflow-wrap: anywhere; background: var(--surface); border: 1px solid var(--line); border-radius: var(--radius); padding: 14px 16px; margin-bottom: 12px; }
.hole { border-radius: 3px; padding: 1px 0; font-weight: 600; }
.pictures { display: flex; flex-wrap: wrap; gap: 20px; align-items: flex-start; }
.pictures figure { margin: 0; }
.easel { flex: 0 0 min(280px, 100%); }
.draws { flex: 1 1 300px; min-width: 0; display: grid; grid-template-columns: repeat(auto-fill, minmax(min(150px, 45%), 1fr)); gap: 16px; max-width: 1100px; }
.beside { display: inline-flex; align-items: center; gap: 8px; }
.pictures canvas { width: 100%; height: auto; image-rendering: pixelated; border: 1px solid var(--line); border-radius: 8px; background: var(--surface); display: block; touch-action: none; }
.pictures figcaption { color: var(--muted); font-size: 14px; padding-top: 6px; }
.toast { position: fixed; left: 50%; bottom: 24px; transform: translateX(-50%); background: var(--ink); color: var(--ground); border-radius: 999px; padding: 8px 18px; z-index: 9; }
`;
