# Copyright (c) 2026, the longhaul.fleet maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The markup and the style of a page. Nothing in it refers to another file, and it has no script.

A table is a list of cards on a narrow screen. On paper all details are open, in dark ink.
"""

from __future__ import annotations

STYLE = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1b1f23;--dim:#59626c;--line:#d5dae0;--card:#f5f7f9;--accent:#1f5fbf;
--good:#176b2f;--caution:#7d4e00;--bad:#b01c14;--rest:#e4e8ec;--s1:#a3470a;--s2:#6b3fa0;--s3:#0f6f6b}
@media (prefers-color-scheme:dark){:root{--bg:#14181c;--fg:#e6eaee;--dim:#a0aab4;--line:#353d45;--card:#1d2329;
--accent:#74b3ff;--good:#58cf7c;--caution:#eab04a;--bad:#ff8a80;--rest:#323a42;--s1:#ffab70;--s2:#c9a6ff;--s3:#5fd3cd}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--fg);font:15px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
header,main,footer{max-width:1560px;margin:0 auto;padding:0 20px}
header{padding-top:20px}
h1{font-size:1.55rem;line-height:1.2;margin:0 0 4px}
h2{font-size:1.2rem;margin:32px 0 10px;padding-top:14px;border-top:1px solid var(--line)}
h3{font-size:1rem;margin:0;display:inline}
p{margin:6px 0;max-width:80ch}
a{color:var(--accent)}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
.verdict{font-size:1.1rem;font-weight:600;margin:0 0 12px}
.dim,small{color:var(--dim)}
small{display:block;font-size:.82em}
.wrap{overflow-wrap:anywhere;white-space:pre-wrap}
.good{color:var(--good)}.caution{color:var(--caution)}.bad{color:var(--bad)}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,172px),1fr));gap:8px;margin:0 0 12px}
.facts div{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:8px 12px;min-width:0}
dt{color:var(--dim);font-size:.82rem}
dd{margin:0;font-weight:600;overflow-wrap:anywhere}
dd small,th small,figcaption small{font-weight:400}
.notices{list-style:none;margin:0;padding:0;display:grid;gap:6px}
.notices li{border:1px solid var(--line);border-left:4px solid var(--dim);border-radius:4px;padding:6px 12px;
background:var(--card);min-width:0}
.notices li.bad{border-left-color:var(--bad);color:inherit}
.notices li.caution{border-left-color:var(--caution);color:inherit}
.notices b{overflow-wrap:anywhere}
.notices p{margin:2px 0;max-width:none}
table{border-collapse:collapse;width:100%;font-size:.9rem;margin:8px 0}
caption{text-align:left;color:var(--dim);padding:4px 0;overflow-wrap:anywhere}
th,td{text-align:left;vertical-align:top;padding:5px 8px;border-bottom:1px solid var(--line);overflow-wrap:anywhere;
min-width:0}
thead th{color:var(--dim);font-weight:600;font-size:.82rem;overflow-wrap:normal;vertical-align:bottom}
tbody th{font-weight:600;min-width:11em}
tfoot th,tfoot td{font-weight:600;border-top:2px solid var(--line)}
.n{text-align:right;font-variant-numeric:tabular-nums;overflow-wrap:normal}
code{font:.92em ui-monospace,Menlo,Consolas,monospace;overflow-wrap:anywhere;white-space:pre-wrap}
progress{display:block;width:100%;min-width:64px;height:8px;margin-top:3px;accent-color:var(--accent)}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,330px),1fr));gap:12px;margin:10px 0}
figure{margin:0;border:1px solid var(--line);border-radius:6px;padding:8px;background:var(--card);min-width:0;
max-width:640px}
figcaption{font-weight:600;font-size:.92rem;margin:0 4px 4px}
svg{display:block;width:100%;height:auto;overflow:visible}
svg text{font:11px system-ui,sans-serif;fill:var(--fg)}
svg .dim{fill:var(--dim)}
svg .value{font-variant-numeric:tabular-nums;fill:var(--dim)}
svg .grid{stroke:var(--line);stroke-width:1}
svg .axis{stroke:var(--dim);stroke-width:1}
svg .mark{stroke:var(--fg);stroke-width:1;stroke-dasharray:2 3}
svg rect.rest{fill:var(--rest)}
svg rect.plain{fill:var(--accent)}svg rect.good{fill:var(--good)}
svg rect.caution{fill:var(--caution)}svg rect.bad{fill:var(--bad)}
svg polyline{fill:none;stroke-width:2;stroke-linejoin:round}
polyline.s0{stroke:var(--accent)}
polyline.s1{stroke:var(--s1);stroke-dasharray:7 3}
polyline.s2{stroke:var(--s2);stroke-dasharray:2 2}
polyline.s3{stroke:var(--s3);stroke-dasharray:10 3 2 3}
svg polyline.forecast{stroke:var(--dim);stroke-dasharray:4 4}
circle.s0{fill:var(--accent)}circle.s1{fill:var(--s1)}circle.s2{fill:var(--s2)}circle.s3{fill:var(--s3)}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:2px 14px;margin:2px 4px;padding:0;font-size:.82rem}
.legend li{display:flex;align-items:center;gap:6px;overflow-wrap:anywhere}
.legend svg{width:28px;height:8px;flex:none}
details{margin:6px 0}
summary{cursor:pointer;padding:4px 0;overflow-wrap:anywhere}
figure summary{font-size:.82rem;color:var(--dim)}
details.job{border:1px solid var(--line);border-radius:6px;padding:4px 12px}
figure table{font-size:.82rem}
footer{margin-top:40px;padding-bottom:30px;border-top:1px solid var(--line)}
.scroll{overflow-x:auto}
@media screen and (max-width:760px){
header,main,footer{padding-left:12px;padding-right:12px}
.cards thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.cards,.cards tbody,.cards tfoot,.cards tr,.cards caption{display:block}
.cards tr{border:1px solid var(--line);border-radius:6px;margin:0 0 8px;padding:4px 8px;background:var(--card)}
.cards th,.cards td{display:flex;gap:12px;justify-content:space-between;border-bottom:0;padding:3px 0;text-align:right}
.cards tfoot th,.cards tfoot td{border-top:0}
.cards tbody th,.cards tfoot th{display:block;text-align:left;font-size:1rem}
.cards td::before{content:attr(data-l);color:var(--dim);text-align:left;flex:none;max-width:45%}
.cards td.e{display:none}
.cards td>span{min-width:0}
.facts{grid-template-columns:repeat(auto-fit,minmax(min(100%,160px),1fr))}
}
@media print{
:root{color-scheme:light;--bg:#fff;--fg:#000;--dim:#444;--line:#bbb;--card:#fff;--accent:#1f5fbf;--good:#176b2f;
--caution:#7d4e00;--bad:#b01c14;--rest:#ddd;--s1:#a3470a;--s2:#6b3fa0;--s3:#0f6f6b}
@page{size:landscape;margin:10mm}
html{font-size:9pt}
body{font-size:1rem}
tfoot{display:table-row-group}
.facts{grid-template-columns:repeat(auto-fit,minmax(112px,1fr))}
th,td{padding:2px 5px}
header,main,footer{max-width:none;padding:0}
figure,tr,.notices li,.facts div{break-inside:avoid}
h2,h3,figcaption{break-after:avoid}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
figure details{display:none}
details.job::details-content{content-visibility:visible;block-size:auto}
a{color:inherit;text-decoration:none}
.charts{grid-template-columns:repeat(4,minmax(0,1fr))}
}
"""

MARKUP = """
{%- macro sign(tone) -%}
{% if tone.value == "good" %}<span aria-hidden="true">✓ </span>{% endif -%}
{% if tone.value == "caution" %}<span aria-hidden="true">▲ </span>{% endif -%}
{% if tone.value == "bad" %}<span aria-hidden="true">✕ </span>{% endif -%}
{%- endmacro -%}

{%- macro content(cell) -%}
{% if cell.link %}<a href="{{ link_to(cell.link) }}">{% endif -%}
{% if cell.code %}<code>{{ cell.text }}</code>
{%- elif cell.tone.value != "plain" %}<span class="{{ cell.tone.value }}">{{ sign(cell.tone) }}{{ cell.text }}</span>
{%- else %}{{ cell.text }}{% endif -%}
{% if cell.link %}</a>{% endif -%}
{% if cell.share is not none %}<progress max="100" value="{{ percent(cell.share) }}" aria-label="{{ cell.text }}">
</progress>{% endif -%}
{% if cell.note %}<small>{{ cell.note }}</small>{% endif -%}
{%- endmacro -%}

{%- macro row(cells, columns) -%}
<tr>{% for cell in cells %}{% set column = columns[loop.index0] -%}
{% if loop.first %}<th scope="row">{{ content(cell) }}</th>
{%- else %}<td data-l="{{ column.title }}"{% if column.is_number or not cell.text %} class="
{{- "n" if column.is_number }}{{ " e" if not cell.text }}"{% endif %}><span>{{ content(cell) }}</span></td>
{%- endif %}{% endfor %}</tr>
{% endmacro -%}

{%- macro table(block) -%}
<table class="cards"><caption>{{ block.caption }}</caption>
<thead><tr>{% for column in block.columns %}<th scope="col"{% if column.is_number %} class="n"{% endif %}>
{{- column.title }}</th>{% endfor %}</tr></thead>
<tbody>{% for cells in block.rows %}{{ row(cells, block.columns) }}{% endfor %}</tbody>
{% if block.foot %}<tfoot>{{ row(block.foot, block.columns) }}</tfoot>{% endif -%}
</table>
{%- endmacro -%}

{%- macro facts(items) -%}
<dl class="facts">{% for fact in items %}<div><dt>{{ fact.label }}</dt><dd>
{%- if fact.tone.value != "plain" %}<span class="{{ fact.tone.value }}">{{ sign(fact.tone) }}{{ fact.value }}</span>
{%- else %}{{ fact.value }}{% endif -%}
{% if fact.note %}<small>{{ fact.note }}</small>{% endif %}</dd></div>{% endfor %}</dl>
{%- endmacro -%}

{%- macro notices(items) -%}
<ul class="notices">{% for notice in items %}<li class="{{ notice.tone.value }}">
{%- if notice.subject %}<b>{{ sign(notice.tone) }}{{ notice.subject }}</b>{% endif -%}
<p class="wrap">{{ notice.text }}</p>{% if notice.advice %}<p class="wrap dim">{{ notice.advice }}</p>{% endif %}</li>
{% endfor %}</ul>
{%- endmacro -%}

{%- macro chart(block) -%}
{% set drawn = draw(block) -%}
<figure><figcaption>{{ drawn.title }}<small>{{ block.summary }}</small></figcaption>{{ drawn.svg }}
{%- if drawn.legend %}<ul class="legend">{% for curve in block.curves %}<li>
<svg viewBox="0 0 28 8" aria-hidden="true"><polyline class="s{{ loop.index0 % 4 }}
{{- " forecast" if curve.is_forecast }}" points="0,4 28,4"/></svg>{{ curve.name }}</li>{% endfor %}</ul>{% endif -%}
<details><summary>Figures of this chart</summary>{{ table(drawn.figures) }}</details></figure>
{%- endmacro -%}

{%- macro block_of(block) -%}
{% set kind = kind_of(block) -%}
{% if kind == "Table" %}{{ table(block) }}
{%- elif kind == "FactList" %}{{ facts(block.facts) }}
{%- elif kind == "NoticeList" %}{% if block.title %}<p><b>{{ block.title }}</b></p>{% endif -%}
{{ notices(block.notices) }}
{%- elif kind == "ChartRow" %}<div class="charts">{% for one in block.charts %}{{ chart(one) }}{% endfor %}</div>
{%- else %}<details class="job"><summary><h3>{{ block.title }}</h3>
{%- if block.state %} <span class="{{ block.tone.value }}">{{ sign(block.tone) }}{{ block.state }}</span>{% endif -%}
{% if block.note %}<small>{{ block.note }}</small>{% endif %}</summary>
{% for one in block.blocks %}{{ block_of(one) }}
{% endfor %}</details>
{%- endif %}
{%- endmacro -%}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{{ page.title }}</title>
<style>{{ style }}</style>
</head>
<body>
<header>
<h1>{{ page.title }}</h1>
<p class="verdict {{ page.tone.value }}">{{ sign(page.tone) }}{{ page.verdict }}</p>
{{ facts(page.facts) }}
</header>
<main>
{% if page.attention %}<section aria-labelledby="attention"><h2 id="attention">What needs attention</h2>
{{ notices(page.attention) }}
{% if page.attention_left %}<p>And {{ page.attention_left }} more, below and on the pages of the jobs.</p>{% endif -%}
</section>
{% endif %}
{% for section in page.sections %}<section aria-labelledby="part{{ loop.index }}">
<h2 id="part{{ loop.index }}">{{ section.title }}</h2>
{% if section.intro %}<p>{{ section.intro }}</p>{% endif %}
{% for block in section.blocks %}{{ block_of(block) }}
{% endfor %}</section>
{% endfor %}
</main>
<footer>
<p class="dim">Made {{ page.made_at }}{% if page.made_by %} by {{ page.made_by }}{% endif %} with longhaul.fleet.
Times are UTC where nothing else is said. The same figures are in the JSON file beside this one.</p>
{% if page.earlier %}<details><summary>Earlier reports ({{ page.earlier | length }})</summary>
<ul>{% for one in page.earlier %}<li><a href="{{ link_to(one.file) }}">{{ one.when }}</a></li>{% endfor %}</ul>
</details>
{% endif %}
</footer>
</body>
</html>
"""
