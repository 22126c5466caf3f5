"""The style sheet of the HTML."""

# Greys are translucent and text inherits its colour, so that it reads on light and dark pages alike.
CSS = """
.cfp{font:14px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;max-width:880px}
.cfp *{box-sizing:border-box}
.cfp h1{font-size:26px;line-height:1.2;letter-spacing:-.01em;margin:0 0 4px}
.cfp .dim{opacity:.66}.cfp p{margin:0}
.cfp .tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(112px,1fr));gap:10px;margin:20px 0}
.cfp .tile{padding:10px 12px;white-space:nowrap;font-size:13px;
  border:1px solid #80808040;border-radius:10px;background:#8080800d}
.cfp .tile b{display:block;font-size:22px;font-weight:600;font-variant-numeric:tabular-nums}
.cfp .card{margin:14px 0;padding:14px 18px;border:1px solid #80808040;border-radius:12px;background:#8080800d}
.cfp .head{display:flex;flex-wrap:wrap;align-items:baseline;gap:4px 12px}
.cfp .head .row{opacity:.66;min-width:58px}.cfp .head .class{font-size:17px;font-weight:600}
.cfp .badge{margin-left:auto;padding:1px 10px;border-radius:99px;font-size:12px;background:#2a9d6f2e}
.cfp .badge.fallback{background:#d9962a38}
.cfp .badge.not_found,.cfp .badge.infeasible,.cfp .badge.error{background:#d2495538}
.cfp .proba{display:grid;grid-template-columns:auto 1fr auto;gap:10px;align-items:center;margin:8px 0 2px}
.cfp .track{position:relative;height:8px;border-radius:4px;background:#80808030;overflow:hidden}
.cfp .track i{position:absolute;top:0;bottom:0;background:#2a9d6f}.cfp .track i.was{background:#8c8c8c}
.cfp .changes{width:100%;table-layout:fixed;border-collapse:collapse;margin:8px 0 4px;font-variant-numeric:tabular-nums}
.cfp .changes td,.cfp .changes th{padding:4px 8px;border:0;background:none;
  border-top:1px solid #80808030;text-align:right}
.cfp .changes th{font-weight:400;font-size:12px;opacity:.66;border-top:0}
.cfp .changes :first-child{text-align:left;padding-left:0}.cfp .changes td.after{font-weight:600}
.cfp .changes th{width:19%}.cfp .changes th:first-child{width:27%}.cfp .changes th:nth-child(4){width:12%}
.cfp .changes .bar{width:23%;padding-right:0}.cfp .changes td{overflow-wrap:anywhere}
.cfp .said{margin:8px 0 2px}
.cfp .note{opacity:.66;margin-top:8px;font-size:13px}.cfp .note:empty{display:none}
.cfp .swing{display:block;position:relative;height:12px;
  background:linear-gradient(#80808070,#80808070) 50%/1px 100% no-repeat}
.cfp .swing i{position:absolute;top:2px;bottom:2px;border-radius:2px;background:#3f7fd0}
.cfp .swing i.less{background:#dd7a3b}
.cfp details{margin-top:6px}.cfp summary{cursor:pointer;opacity:.66;font-size:13px}
.cfp dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(250px,1fr));
  gap:2px 24px;margin:8px 0 2px;font-size:13px}
.cfp dl div{display:flex;justify-content:space-between;gap:12px;min-width:0}.cfp dt{opacity:.66;font-weight:400}
.cfp dd{margin:0;text-align:right;overflow-wrap:anywhere;font-variant-numeric:tabular-nums}
.cfp .pictures{display:flex;flex-wrap:wrap;gap:18px;margin:12px 0 4px}.cfp figure{margin:0;text-align:center}
.cfp img{display:block;width:128px;image-rendering:pixelated;border-radius:4px;background:#80808020}
.cfp figcaption{font-size:12px;opacity:.66;margin-top:4px}
"""
