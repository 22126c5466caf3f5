/* What changes in the lines that are shown, how often, and in which direction. */
"use strict";

const SHOWN_FEATURES = 12;

function tally(lines) {
  const found = new Map();
  for (const line of lines) {
    for (const change of line.changes) {
      if (!found.has(change.feature)) found.set(change.feature, { feature: change.feature, count: 0, ways: new Map(), sizes: [], values: new Map() });
      const entry = found.get(change.feature);
      entry.count += 1;
      entry.ways.set(change.direction, (entry.ways.get(change.direction) || 0) + 1);
      if (change.size) entry.sizes.push(change.size);
      else entry.values.set(change.before + " → " + change.after, (entry.values.get(change.before + " → " + change.after) || 0) + 1);
    }
  }
  return [...found.values()].sort((a, b) => b.count - a.count);
}

function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b), half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

function most(counts) {
  return [...counts].sort((a, b) => b[1] - a[1]);
}

function typical(entry, deviations) {
  if (entry.sizes.length >= entry.count / 2 && deviations) {
    const size = median(entry.sizes);
    return "median " + (size < 0 ? "−" : "+") + Math.abs(size).toPrecision(2) + " sd";
  }
  const [first] = most(entry.values);
  return first ? "most often " + first[0] + " (" + first[1] + ")" : "";
}

function cohortRow(entry, answers, data, chosen, choose) {
  const share = entry.count / answers;
  const track = el("div", { class: "track", "aria-hidden": "true" }, bar("gain", 0, share));
  const button = el("button", { type: "button", class: "link", "aria-pressed": String(chosen === entry.feature),
    on: { click: () => choose(chosen === entry.feature ? "" : entry.feature) } }, entry.feature);
  const ways = most(entry.ways).map(([way, count]) => count.toLocaleString("en") + " " + way).join(", ");
  return el("tr", {}, el("th", { scope: "row" }, button), el("td", { class: "often" }, track),
    el("td", { class: "count" }, counted(entry.count, "row").replace(/ rows?$/, "") + " (" + percent(share) + ")"), el("td", {}, ways), el("td", { class: "dim" }, typical(entry, data.deviations)));
}

/* Fill `place` for the lines that are shown; choose(feature) shows only the lines that change it. */
function drawCohort(place, lines, data, chosen, choose) {
  const answers = lines.filter((line) => line.changes.length);
  const entries = tally(answers);
  if (!entries.length) {
    place.replaceChildren(el("p", { class: "dim" }, "No line that is shown changes a column."));
    return;
  }
  const open = place.querySelector("details[open]") !== null;
  const rows = entries.map((entry) => cohortRow(entry, answers.length, data, chosen, choose));
  const table = (some) => el("table", { class: "cohort" },
    el("thead", {}, el("tr", {}, ...["feature", "changes in", "", "direction", "typical change"].map((head) => el("th", { scope: "col" }, head)))),
    el("tbody", {}, ...some));
  const parts = [el("p", { class: "dim" }, "Of the " + counted(answers.length, "answer") + " shown below, the share that changes each feature. Press a feature to see only these."), table(rows.slice(0, SHOWN_FEATURES))];
  if (rows.length > SHOWN_FEATURES) {
    const rest = folded(counted(rows.length - SHOWN_FEATURES, "more feature"), () => table(rows.slice(SHOWN_FEATURES)));
    rest.open = open;
    parts.push(rest);
  }
  place.replaceChildren(...parts);
}
