/* Search, filters, sorting and pages of the report. */
"use strict";

const PAGE = 20, PRINTED = 1000;
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const controls = { search: byId("search"), from: byId("from"), to: byId("to"), status: byId("status"), feature: byId("feature"), sort: byId("sort"), order: byId("order") };
let page = 0, shown = data.lines;

data.lines.forEach((line, at) => { line.at = at; });

function textOf(line) {
  if (line.text === undefined) {
    const changes = line.changes.flatMap((change) => [change.feature, change.before, change.after]);
    line.text = [line.name, line.classes, line.said, ...line.notes, ...changes, ...line.cells].join("\n").toLowerCase();
  }
  return line.text;
}

function matches(line) {
  const words = controls.search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const is = (control, value) => control.value === "" || control.value === "=" + value;
  return is(controls.from, line.from) && is(controls.to, line.to) && is(controls.status, line.status) &&
    (controls.feature.value === "" || line.changes.some((change) => "=" + change.feature === controls.feature.value)) &&
    words.every((word) => textOf(line).includes(word));
}

const KEYS = { row: (line) => line.row, distance: (line) => line.distance, changes: (line) => line.to === null ? null : line.n_changes, probability: (line) => line.after };

/* In the chosen order; lines without the value come last either way, equals in the order of the rows. */
function sorted(lines) {
  const key = KEYS[controls.sort.value], sign = controls.order.dataset.order === "down" ? -1 : 1;
  return [...lines].sort((a, b) => {
    const x = key(a), y = key(b);
    if (x === null || y === null) return (x === null) - (y === null) || a.at - b.at;
    return sign * (x - y) || a.at - b.at;
  });
}

/* Set filters by their values, as the cohort's buttons do, and keep the focus on what was pressed. */
function choose(values) {
  for (const [name, value] of Object.entries(values)) controls[name].value = value === "" ? "" : "=" + value;
  const pressed = document.activeElement.textContent;
  update();
  const again = [...byId("cohort").querySelectorAll("button")].find((button) => button.textContent === pressed);
  (again || byId("count")).focus();
}

function update() {
  const matching = data.lines.filter(matches);
  shown = sorted(matching);
  page = 0;
  drawCohort(byId("cohort"), matching, data, {
    chosen: controls.feature.value.slice(1),
    narrowed: controls.from.value !== "" || controls.to.value !== "",
    choose: (feature) => choose({ feature }),
    chooseClasses: (from, to) => choose({ from, to }),
  });
  draw();
}

function draw() {
  const pages = Math.max(1, Math.ceil(shown.length / PAGE));
  byId("cards").replaceChildren(...shown.slice(page * PAGE, (page + 1) * PAGE).map((line) => card(line, data)));
  byId("count").textContent = shown.length === data.lines.length ? counted(shown.length, data.noun) + "."
    : shown.length.toLocaleString("en") + " of " + counted(data.lines.length, data.noun) + ".";
  byId("page").textContent = "Page " + (page + 1) + " of " + pages;
  byId("pages").hidden = pages === 1;
  byId("previous").disabled = page === 0;
  byId("next").disabled = page === pages - 1;
  byId("none").hidden = shown.length > 0;
}

function turn(by) {
  page += by;
  draw();
  byId("lines").focus();
}

function options(select, values) {
  for (const value of new Set(values)) if (value !== null) select.append(el("option", { value: "=" + value }, value));
}

function reset() {
  for (const name of ["search", "from", "to", "status", "feature"]) controls[name].value = "";
  update();
}

options(controls.from, data.lines.map((line) => line.from));
options(controls.to, data.lines.map((line) => line.to));
for (const status of new Set(data.lines.map((line) => line.status))) controls.status.append(el("option", { value: "=" + status }, status.replace("_", " ")));
options(controls.feature, tally(data.lines, data.columns).map((entry) => entry.feature));
controls.feature.parentElement.hidden = controls.feature.options.length === 1;
byId("changes").hidden = controls.feature.options.length === 1;
for (const name of ["from", "to", "status", "feature", "sort"]) controls[name].addEventListener("change", update);
controls.search.addEventListener("input", update);
controls.order.addEventListener("click", () => {
  const down = controls.order.dataset.order !== "down";
  controls.order.dataset.order = down ? "down" : "up";
  controls.order.textContent = down ? "largest first" : "smallest first";
  update();
});
byId("previous").addEventListener("click", () => turn(-1));
byId("next").addEventListener("click", () => turn(1));
byId("reset").addEventListener("click", reset);
byId("filters").addEventListener("submit", (event) => event.preventDefault());
window.addEventListener("beforeprint", () => byId("cards").replaceChildren(...shown.slice(0, PRINTED).map((line) => card(line, data))));
window.addEventListener("afterprint", draw);
byId("live").hidden = false;
update();
