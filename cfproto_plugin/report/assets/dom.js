/* Elements are made here and nowhere else: text becomes a text node and is never read as HTML. */
"use strict";

function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    } else if (value === true) {
      made.setAttribute(name, "");
    } else if (value !== false && value !== null && value !== undefined) {
      made.setAttribute(name, value);
    }
  }
  made.append(...children.filter((child) => child !== null && child !== ""));
  return made;
}

function percent(share) {
  const whole = Math.round(100 * share);
  if (whole === 0 && share > 0) return "<1 %";
  if (whole === 100 && share < 1) return ">99 %";
  return whole + " %";
}

function counted(number, noun) {
  return number.toLocaleString("en") + " " + noun + (number === 1 ? "" : "s");
}

/* A bar from `from` to `to`, shares of the width of what holds it. */
function bar(kind, from, to) {
  const made = el("i", { class: kind });
  made.style.left = 100 * from + "%";
  made.style.width = 100 * Math.max(to - from, 0) + "%";
  return made;
}

function folded(title, fill) {
  const made = el("details", {}, el("summary", {}, title));
  made.addEventListener("toggle", () => { if (made.open && made.children.length === 1) made.append(fill()); });
  return made;
}
