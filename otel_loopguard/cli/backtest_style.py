"""The style of the backtest's page, and what it says about its own figures."""

from __future__ import annotations

STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#59636e;--paper:#fff;--line:#d1d9e0;
--bad:#c2410c;--other:#2a6fbb;--series-0:#2a6fbb;--series-1:#c2410c;--series-2:#1a7f4b;
--series-3:#8a3ffc;--series-4:#9f6b00;--series-5:#0f7b8a}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa6b2;--paper:#10151b;
--line:#323b45;--bad:#ff9457;--other:#6cb0ff;--series-0:#6cb0ff;--series-1:#ff9457;
--series-2:#5bd08f;--series-3:#c4a1ff;--series-4:#e3b341;--series-5:#56d4dd}}
body{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,sans-serif;font-variant-numeric:tabular-nums}
main{max-width:1100px;margin:0 auto;padding:24px 16px 64px}
h1{font-size:1.6rem}h2{font-size:1.2rem;margin:2rem 0 .5rem}
figure{margin:0 0 1rem;max-width:720px}svg{width:100%;height:auto}
svg text{fill:var(--ink);font-size:12px}
.grid{stroke:var(--line)}.axis{stroke:var(--soft)}
figcaption,.note{color:var(--soft);font-size:.9rem}
.key{margin-right:1em;white-space:nowrap}
.key::before{content:"";display:inline-block;width:.8em;height:.8em;margin-right:.35em;
background:var(--c);border-radius:2px}
.key.hollow::before{background:none;border:2px dashed var(--c);box-sizing:border-box}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.87rem}
th,td{padding:3px 16px 3px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
th{vertical-align:bottom}.n{text-align:right}
td,.path span{white-space:nowrap}td.n,td.path{white-space:normal}
summary{cursor:pointer}
"""

EXPLANATION = (
    '<p class="note">A run has <em>tripped</em> when a rule says abort for the first time: it '
    "would have been stopped there, and everything that started after that is <em>saved</em>. A "
    "<em>false trip</em> is a successful run that tripped. <em>Loops caught</em> are the tripped "
    "ones of the runs labelled <em>loop</em>. <em>Precision</em> is their share of the tripped "
    "runs of which it is known whether they should: labelled <em>loop</em> or <em>no</em>, or "
    "successful without a label. Behind a share stands its 95 % interval (Wilson). "
    "<em>-</em> is not known.</p>"
)
