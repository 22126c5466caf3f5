"""Texts that break out of HTML, JSON, scripts and objects where they are not handled as text."""

HOSTILE = [
    "<script>window.hacked=1</script>",
    "</script><script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    "<!--<script>",
    "-->",
    "\"'><svg onload=window.hacked=1>",
    "javascript:window.hacked=1",
    "${window.hacked=1}",
    "{{constructor.constructor('window.hacked=1')()}}",
    "__proto__",
    "constructor",
    "&lt;b&gt; &amp; \\u003c \\",
    "line\u2028and\u2029separators",
    "\u202egnp.exe\u202c",
    "half \ud800 of a pair",
    "x" * 300,
    "</style></title></noscript><b>",
]
