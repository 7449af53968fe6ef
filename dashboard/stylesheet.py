"""The report's one stylesheet: light by default, dark where the reader's system asks for it."""

STYLESHEET = """
:root {
  --page: #f5f6f8; --surface: #ffffff; --ink: #1f2630; --quiet: #5c6672; --line: #dfe3e8;
  --accent: #0072b2; --ok: #00795a; --bad: #b34700; --warn-bg: #fdf1e3; --warn-line: #e69f00;
  --note-bg: #eaf3f9; --note-line: #56a5d0; color-scheme: light dark;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14181d; --surface: #1c2229; --ink: #e3e7ec; --quiet: #9aa5b1; --line: #323a44;
    --accent: #56b4e9; --ok: #3dc39b; --bad: #f0894d; --warn-bg: #33291a; --warn-line: #b98516;
    --note-bg: #1a2a36; --note-line: #3b7ca3;
  }
  .plot .infolayer text, .plot .xaxislayer-above text, .plot .yaxislayer-above text, .plot .textpoint text,
  .plot .legendtext { fill: var(--ink) !important; }
  .plot .hoverlayer text { fill: #1f2630 !important; }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink); line-height: 1.5;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
}
main { max-width: 1240px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 27px; line-height: 1.25; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 40px 0 12px; }
h3 { font-size: 14.5px; margin: 0 0 2px; }
p { margin: 0 0 10px; }
.quiet, figcaption, small { color: var(--quiet); }
figcaption, small { font-size: 12.5px; }
.panel, figure { background: var(--surface); border: 1px solid var(--line); border-radius: 10px; }
.panel + p, .cards + p { margin-top: 8px; }
.panel { padding: 14px 18px; overflow-x: auto; }
figure { margin: 0; padding: 14px 16px 10px; min-width: 0; }
.plot { width: 100%; }
.empty { padding: 50px 0; text-align: center; color: var(--quiet); }
.grid { display: grid; gap: 16px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 430px), 1fr)); }
.stack { display: grid; gap: 16px; grid-template-columns: minmax(0, 1fr); }
.cards { display: grid; gap: 12px; grid-template-columns: repeat(auto-fill, minmax(min(100%, 182px), 1fr)); }
.card { background: var(--surface); border: 1px solid var(--line); border-radius: 10px; padding: 12px 16px; }
.card b { display: block; font-size: 23px; font-weight: 620; line-height: 1.3; }
.card .label { color: var(--quiet); font-size: 13px; }
.card b span { font-size: 13px; font-weight: 500; color: var(--quiet); }
.verdict { list-style: none; margin: 0; padding: 0; }
.card small { display: block; line-height: 1.4; }
.box { border-left: 4px solid; border-radius: 6px; padding: 10px 16px; margin: 14px 0; overflow-wrap: anywhere; }
.box ul { margin: 2px 0 0; padding-left: 20px; }
.warning { background: var(--warn-bg); border-color: var(--warn-line); }
.notice { background: var(--note-bg); border-color: var(--note-line); }
.bar { display: flex; height: 10px; border-radius: 5px; overflow: hidden; background: var(--line); margin: 4px 0 14px; }
.finished { background: #0072b2; } .rejected { background: #d55e00; } .unfinished { background: #e69f00; }
.counts { display: grid; gap: 4px 20px; grid-template-columns: repeat(auto-fit, minmax(130px, 1fr)); margin: 0 0 12px; }
.counts dt { color: var(--quiet); font-size: 13px; } .counts dd { margin: 0; font-size: 21px; font-weight: 620; }
.dot { display: inline-block; width: 9px; height: 9px; border-radius: 50%; margin-right: 6px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 7px 8px; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top; }
tr:last-child > * { border-bottom: 0; }
thead th { color: var(--quiet); font-weight: 500; font-size: 13px; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
td { white-space: nowrap; } td small { display: block; }
tbody th { font-weight: 600; min-width: 130px; } tbody th small { display: block; font-weight: 400; line-height: 1.35; }
.facts td { white-space: normal; overflow-wrap: anywhere; } .facts th { font-weight: 400; color: var(--quiet); }
.none { color: var(--quiet); font-weight: 400; }
.met { color: var(--ok); font-weight: 600; } .missed { color: var(--bad); font-weight: 600; }
details summary { cursor: pointer; font-weight: 600; }
pre { overflow-x: auto; margin: 12px 0 0; font-size: 12.5px; line-height: 1.45; }
@media (max-width: 900px) {
  .wide th, .wide td { padding: 6px 4px; font-size: 12px; } .wide td small { white-space: normal; font-size: 10.5px; }
  .wide tbody th { min-width: 0; } .wide tbody th small { display: none; }
}
@media (max-width: 620px) {
  main { padding: 18px 12px 40px; } h1 { font-size: 22px; } figure { padding: 12px 8px 8px; }
  .cards { grid-template-columns: 1fr 1fr; } .card { padding: 10px 12px; } .card b { font-size: 19px; }
}
@media (hover: none) { .plot .modebar { display: none; } }
@media print { figure, .card, .panel { break-inside: avoid; } body { background: none; } }
"""
