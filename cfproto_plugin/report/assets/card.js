/* One card: a line of the explanation, with switches for its changes where the model's answers are stored. */
"use strict";

const SHOWN_CHANGES = 20;

function card(line, data) {
  const title = el("h3", { class: "class" }, line.classes);
  const badge = el("span", { class: "badge " + line.status }, line.status.replace("_", " "));
  const made = el("li", { class: "card", "data-row": line.row },
    el("div", { class: "head" }, el("span", { class: "row" }, line.name), title, badge));
  const live = line.to === null ? null : probability(line);
  if (live) made.append(live.element);
  made.append(el("p", { class: "said" }, line.said));
  if (line.figures.length) made.append(pictures(line));
  if (line.changes.length) made.append(...changed(line, data, live));
  if (line.cells.length) made.append(unchanged(line, data));
  made.append(...line.notes.map((note) => el("p", { class: "note" }, note)));
  return made;
}

/* The bar of the new class's probability: grey before, green with the changes that are on. */
function probability(line) {
  const track = el("div", { class: "track", "aria-hidden": "true" });
  const text = el("span", { class: "figures" });
  const label = el("span", { class: "dim" }, "probability of " + line.to);
  const show = (now) => {
    const least = Math.min(line.before, now), most = Math.max(line.before, now);
    track.replaceChildren(bar("was", 0, least), bar(now >= line.before ? "gain" : "loss", least, most));
    text.replaceChildren(percent(line.before) + " → ", el("b", {}, percent(now)));
  };
  show(line.after);
  return { element: el("div", { class: "proba" }, label, track, text), show };
}

function pictures(line) {
  const figures = line.figures.map(([caption, url]) => el("figure", {},
    el("img", { alt: caption.split(":")[0], src: url }), el("figcaption", {}, caption)));
  return el("div", { class: "pictures" }, ...figures);
}

/* The table of changes and, where predictions are stored, what the model says about the changes that are on. */
function changed(line, data, live) {
  const full = data.deviations ? Math.max(1, ...line.changes.map((change) => Math.abs(change.size))) : 1;
  const switches = line.what_if && line.what_if.kind !== "none" ? new Switches(line, data, live) : null;
  const rows = line.changes.map((change, at) => changeRow(change, full, switches ? switches.cell(at) : null));
  const heads = [...(switches ? [[switches.head]] : []), ["feature"], ["before"], ["after"], ["change", "how"], ["", "bar"]];
  const table = (some) => el("table", { class: "changes" + (switches ? " switched" : "") },
    el("thead", {}, el("tr", {}, ...heads.map(([head, kind]) => el("th", { scope: "col", class: kind }, head)))),
    el("tbody", {}, ...some));
  const parts = [table(rows.slice(0, SHOWN_CHANGES))];
  if (switches) parts.unshift(switches.said);
  if (switches) parts.push(switches.buttons);
  if (rows.length > SHOWN_CHANGES) {
    const rest = rows.slice(SHOWN_CHANGES);
    parts.push(folded(counted(rest.length, "more change"), () => table(rest)));
  }
  if (line.what_if && line.what_if.kind === "none") parts.push(el("p", { class: "note" }, line.what_if.why));
  return parts;
}

function changeRow(change, full, first) {
  const swing = el("span", { class: "swing", "aria-hidden": "true" });
  const width = Math.abs(change.size) / full / 2;
  if (change.size) swing.append(change.size > 0 ? bar("more", 0.5, 0.5 + width) : bar("less", 0.5 - width, 0.5));
  const much = change.much ? el("span", { class: "dim" }, " " + change.much) : null;
  const only = change.only ? el("span", { class: "only" }, change.only) : null;
  return el("tr", {}, ...(first ? [first] : []),
    el("th", { scope: "row" }, change.feature), el("td", { class: "before" }, change.before),
    el("td", { class: "after" }, change.after), el("td", { class: "how" }, change.direction, much, only && el("br"), only),
    el("td", { class: "bar" }, swing));
}

function unchanged(line, data) {
  const names = new Set(line.changes.map((change) => change.feature));
  const same = data.columns.map((name, at) => [name, line.cells[at]]).filter(([name]) => !names.has(name));
  if (!same.length) return "";
  const noun = line.to === null ? "feature" : "unchanged feature";
  return folded(counted(same.length, noun), () => el("dl", {}, ...same.map(([name, value]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value)))));
}
