// SPDX-License-Identifier: Apache-2.0
#include "calibrator/report/style.h"

namespace eldr::calibrator {

// The eight colours of each scheme were searched for the largest least distance (OKLab) between any two of
// them as seen with normal, protan, deutan and tritan vision. The ramp h0 … h8 is one hue, from the page's
// ground outwards.
const std::string_view kReportStyle = R"css(
:root {
  --ground: #f6f7f9; --card: #fff; --ink: #1b2230; --soft: #566074; --faint: #e6e9ef; --edge: #dfe3ea;
  --axis: #9aa3b2; --accent: #2f57c4; --second: #b06a00; --third: #7a1620; --fill: #8ea6e3; --warn: #fff6e0;
  --warn-edge: #e6c36a; --badge: #fff;
  --c0: #435ad4; --c1: #b29b07; --c2: #f366a6; --c3: #607423; --c4: #7a1620; --c5: #6d9bf4; --c6: #935389; --c7: #5a0794;
  --rest: #a9b0bb;
  --h0: #f1f4fb; --h1: #dfe7f7; --h2: #c9d7f2; --h3: #afc4ec; --h4: #92aee4; --h5: #6d90d6; --h6: #4a72c4; --h7: #2f56a8; --h8: #1b3b80;
  --in-cell: #1b2230; --in-cell-light: #fff;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --ground: #101318; --card: #181c23; --ink: #e8ebf1; --soft: #a3adbd; --faint: #272d37; --edge: #2a303b;
    --axis: #6b7585; --accent: #8fb0ff; --second: #f0b04c; --third: #f08fa0; --fill: #4a63a8; --warn: #2b2412;
    --warn-edge: #7a6325; --badge: #181c23;
    --c0: #51b7a4; --c1: #d39b0d; --c2: #9c8df5; --c3: #9c4486; --c4: #83f3f5; --c5: #597a0a; --c6: #0c69dc; --c7: #d3ea36;
    --rest: #5d6675;
    --h0: #1f2530; --h1: #243147; --h2: #293e60; --h3: #304e7c; --h4: #3a609b; --h5: #5580c4; --h6: #7ba1e0; --h7: #a7c3f2; --h8: #d6e4ff;
    --in-cell: #e8ebf1; --in-cell-light: #10141b;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "DejaVu Sans", sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 40px 24px 56px; }
header { margin-bottom: 28px; }
h1, h2, p, figure, ul { margin: 0; }
h1 { font-size: 30px; line-height: 1.2; font-weight: 650; letter-spacing: -.015em; overflow-wrap: anywhere; }
h2 { font-size: 17px; line-height: 1.3; font-weight: 620; letter-spacing: -.005em; }
.kicker { color: var(--accent); font-size: 13px; font-weight: 600; letter-spacing: .04em; margin-bottom: 4px; }
.sub { color: var(--soft); margin-top: 6px; }
.headlines { display: flex; flex-wrap: wrap; gap: 1px;
  background: var(--edge); border: 1px solid var(--edge); border-radius: 12px; overflow: hidden; margin-bottom: 20px; }
.headlines div { flex: 1 1 168px; background: var(--card); padding: 16px 18px; display: flex; flex-direction: column; }
.headlines b { font-size: 25px; line-height: 1.25; font-weight: 640; letter-spacing: -.02em; font-variant-numeric: tabular-nums; }
.headlines span { font-weight: 550; font-size: 14px; }
.headlines small { color: var(--soft); font-size: 12.5px; }
.warnings { background: var(--warn); border: 1px solid var(--warn-edge); border-radius: 12px; padding: 14px 18px; margin-bottom: 20px; }
.warnings h2 { font-size: 15px; }
.warnings ul { padding-left: 18px; margin-top: 4px; }
.warnings li { overflow-wrap: anywhere; }
.warnings.none { background: none; border-color: var(--edge); color: var(--soft); }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 430px), 1fr)); gap: 20px; }
.card { background: var(--card); border: 1px solid var(--edge); border-radius: 12px; padding: 20px 22px; min-width: 0; }
.wide { grid-column: 1 / -1; }
.lead { margin-top: 4px; color: var(--soft); overflow-wrap: anywhere; }
.plot { margin-top: 14px; }
.plot svg { display: block; width: 100%; max-width: 640px; margin: 0 auto; height: auto; overflow: visible; }
.wide .plot { overflow-x: auto; }
.wide .plot svg { max-width: none; min-width: 860px; }
.note { margin-top: 10px; color: var(--soft); font-size: 13px; line-height: 1.45; }
.legend { list-style: none; padding: 0; margin-top: 12px; display: flex; flex-wrap: wrap; gap: 4px 18px; font-size: 13px; color: var(--soft); }
.legend li { display: flex; align-items: center; gap: 7px; min-width: 0; }
.legend bdi { overflow-wrap: anywhere; }
.key { flex: none; width: 18px; height: 12px; border-radius: 3px; }
.key.disc { width: 11px; height: 11px; border-radius: 50%; }
.key.line { height: 0; border-top: 2.5px solid var(--accent); border-radius: 0; }
.key.line.s1 { border-color: var(--second); }
.key.line.all-layers { border-top: 2px dotted var(--soft); }
.key.line.held-out { border-top: 2px dashed var(--second); }
.key.line.chosen { border-top: 2px dashed var(--third); }
.key.line.capacity { border-top: 2px dashed var(--third); }
.key.line.nearest { border-top: 3px solid var(--second); }
.key.area.kept { background: var(--accent); opacity: .14; }
.key.area.bar { background: var(--fill); }
.key.area.band { background: var(--accent); opacity: .2; }
.key.c0 { background: var(--c0); } .key.c1 { background: var(--c1); } .key.c2 { background: var(--c2); } .key.c3 { background: var(--c3); }
.key.c4 { background: var(--c4); } .key.c5 { background: var(--c5); } .key.c6 { background: var(--c6); } .key.c7 { background: var(--c7); }
.key.rest { background: var(--rest); }
svg text { font-size: 12px; fill: var(--soft); font-variant-numeric: tabular-nums; unicode-bidi: isolate; }
svg .quantity { font-size: 12px; font-weight: 550; fill: var(--ink); }
svg .row-name { fill: var(--ink); }
svg .saving { fill: var(--accent); font-weight: 600; }
svg .in-cell { font-size: 11px; fill: var(--in-cell); pointer-events: none; }
svg .in-cell.light { fill: var(--in-cell-light); }
svg .in-cell.zero { opacity: .4; }
svg .column-name { font-size: 11px; }
svg .badge-number { font-size: 10px; font-weight: 650; fill: var(--ink); pointer-events: none; }
svg .rule { stroke: var(--faint); stroke-width: 1; }
svg .axis { stroke: var(--axis); stroke-width: 1; }
svg .kept { fill: var(--accent); opacity: .1; }
svg .series { fill: none; stroke-width: 2.2; stroke-linejoin: round; stroke-linecap: round; }
svg .series.s0 { stroke: var(--accent); } svg .series.s1 { stroke: var(--second); }
svg .band { opacity: .17; } svg .band.s0 { fill: var(--accent); } svg .band.s1 { fill: var(--second); }
svg .dot { stroke: var(--card); stroke-width: 1.4; } svg .dot.s0 { fill: var(--accent); } svg .dot.s1 { fill: var(--second); }
svg .dot.best { stroke-width: 2; fill: var(--third); }
svg .chosen { stroke: var(--third); stroke-width: 1.5; stroke-dasharray: 5 4; }
svg .capacity { stroke: var(--third); stroke-width: 1.6; stroke-dasharray: 6 4; }
svg .all-layers { stroke: var(--soft); stroke-width: 1.6; stroke-dasharray: 1.5 4; stroke-linecap: round; }
svg .held-out { stroke: var(--second); stroke-width: 1.8; stroke-dasharray: 7 4; }
svg .nearest { stroke: var(--second); stroke-width: 3; stroke-linecap: round; }
svg .bar { fill: var(--fill); }
svg .frame { fill: none; stroke: var(--faint); }
svg .points circle { fill-opacity: .78; }
svg .c0 { fill: var(--c0); } svg .c1 { fill: var(--c1); } svg .c2 { fill: var(--c2); } svg .c3 { fill: var(--c3); }
svg .c4 { fill: var(--c4); } svg .c5 { fill: var(--c5); } svg .c6 { fill: var(--c6); } svg .c7 { fill: var(--c7); }
svg .rest { fill: var(--rest); }
svg .badge { fill: var(--badge); stroke: var(--ink); stroke-width: 1.6; }
svg .badge.c0 { stroke: var(--c0); } svg .badge.c1 { stroke: var(--c1); } svg .badge.c2 { stroke: var(--c2); } svg .badge.c3 { stroke: var(--c3); }
svg .badge.c4 { stroke: var(--c4); } svg .badge.c5 { stroke: var(--c5); } svg .badge.c6 { stroke: var(--c6); } svg .badge.c7 { stroke: var(--c7); }
svg .mark { stroke: var(--ink); stroke-width: 1; } svg .mark.plain { fill: var(--badge); }
svg .tie { stroke: var(--ink); stroke-width: 1; }
svg .h0 { fill: var(--h0); } svg .h1 { fill: var(--h1); } svg .h2 { fill: var(--h2); } svg .h3 { fill: var(--h3); } svg .h4 { fill: var(--h4); }
svg .h5 { fill: var(--h5); } svg .h6 { fill: var(--h6); } svg .h7 { fill: var(--h7); } svg .h8 { fill: var(--h8); }
svg .cell.none { fill: none; stroke: var(--faint); }
details { margin-top: 12px; font-size: 13px; }
summary { cursor: pointer; color: var(--accent); width: fit-content; }
summary:focus-visible, .table:focus-visible, .plot:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
.table { margin-top: 8px; overflow: auto; max-height: 340px; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding-bottom: 4px; }
th, td { padding: 4px 14px 4px 0; text-align: right; border-bottom: 1px solid var(--faint); white-space: nowrap; font-weight: 400; }
thead th { color: var(--soft); font-weight: 550; }
th:first-child { text-align: left; }
.facts .table { max-height: none; }
.facts table { width: 100%; }
.facts caption, .facts thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.facts th { color: var(--soft); white-space: normal; }
.facts td { text-align: left; white-space: normal; overflow-wrap: anywhere; width: 68%; }
footer { margin-top: 24px; color: var(--soft); font-size: 12.5px; }
footer p { margin-top: 6px; overflow-wrap: anywhere; }
code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 11.5px; }
@media (max-width: 600px) {
  main { padding: 24px 14px 40px; }
  .card { padding: 16px 14px; }
  h1 { font-size: 24px; }
  .headlines div { flex-basis: 40%; padding: 12px 14px; }
  .headlines b { font-size: 21px; }
  .plot svg text, .plot svg .quantity { font-size: 13.5px; }
  .plot svg .in-cell, .plot svg .column-name { font-size: 11px; }
  .plot svg .badge-number { font-size: 10.5px; }
}
@page { margin: 12mm; }
@media print {
  :root { --ground: #fff; }
  body { font-size: 9.5pt; }
  main { max-width: none; padding: 0; }
  header { margin-bottom: 12px; }
  h2 { font-size: 11pt; }
  .card { padding: 12px 14px; }
  .card, .headlines, .warnings { break-inside: avoid; }
  .headlines div { flex-basis: 0; padding: 8px 10px; }
  .headlines b { font-size: 14pt; }
  .headlines span, .headlines small, .legend, .note, table { font-size: 8pt; }
  .grid { gap: 10px; grid-template-columns: 1fr 1fr; }
  .wide .plot svg { min-width: 0; }
  details { display: none; }
}
)css";

}  // namespace eldr::calibrator
