// Keeps an open page up to date: on a change it reads itself anew, and replaces only the regions that changed.
const AGES = [[90, "s", 1], [5400, "min", 60], [129600, "h", 3600], [Infinity, "d", 86400]];
const GUARD_MS = 700, RETRY_MS = 5000;
const STORE = "The store cannot be reached. This page goes on by itself when it is back.";
const away = document.getElementById("away");
const moved = new WeakMap();
let reading = false, again = false;

function say(text) {
  away.textContent = text;
  away.hidden = !text;
}

function isEdited(field) {
  if (field.tagName === "SELECT") return [...field.options].some((option, at) => option.selected !== (option.defaultSelected || (at === 0 && !field.querySelector("[selected]"))));
  return field.type === "checkbox" ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;
}

// A region is left alone while a person types, has focus or selects in it, or while the pointer is over its buttons.
function isBusy(region) {
  const selection = getSelection();
  return [...region.querySelectorAll("input:not([type=hidden]), textarea, select")].some(isEdited)
    || region.contains(document.activeElement)
    || (region.matches(":hover") && region.querySelector("form") !== null)
    || (!selection.isCollapsed && selection.containsNode(region, true));
}

function bare(region) {
  const copy = region.cloneNode(true);
  for (const time of copy.querySelectorAll("time")) time.textContent = "";
  for (const details of copy.querySelectorAll("details")) details.removeAttribute("open");
  return copy.innerHTML;
}

// On a narrow screen a row is a card: each cell says the name of its column.
function label(root) {
  for (const table of root.querySelectorAll("main .wide table")) {
    const names = [...table.querySelectorAll("thead th")].map((each) => each.textContent.trim());
    for (const row of table.querySelectorAll("tbody tr")) {
      [...row.cells].forEach((cell, at) => { if (names[at] && cell.colSpan === 1) cell.dataset.label = names[at]; });
    }
    table.dataset.cards = "";
  }
}

const nameOf = (details) => details.id || details.querySelector("summary")?.textContent;

function keep(from, to) {
  const states = new Map([...from.querySelectorAll("details")].map((each) => [nameOf(each), each.open]));
  for (const details of to.querySelectorAll("details")) {
    const open = states.get(nameOf(details));
    if (open !== undefined) details.open = open;
  }
  return [...from.querySelectorAll("pre, .wide")].map((each) => [each.scrollTop, each.scrollLeft]);
}

function replace(region, other) {
  const scrolled = keep(region, other);
  const places = new Map([...document.querySelectorAll("button")].map((button) => [button, button.getBoundingClientRect().top]));
  region.replaceChildren(...other.childNodes);
  region.querySelectorAll("pre, .wide").forEach((each, at) => { [each.scrollTop, each.scrollLeft] = scrolled[at] ?? [0, 0]; });
  for (const button of document.querySelectorAll("button")) {
    if (Math.abs(button.getBoundingClientRect().top - places.get(button)) <= 1) continue;
    moved.set(button, performance.now());  // it is new, or another place has it now
  }
}

async function refresh() {
  const rings = localStorage.getItem("fireswarm-bell");  // then a tab in the background hears too
  if ((document.visibilityState !== "visible" && !rings) || "sent" in document.body.dataset) return;  // the answer to a form
  if (reading) { again = true; return; }
  reading = true;
  try {
    const response = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (response.status === 401) { say("The console was started again: open its new link."); return; }
    if (response.status === 503) { say(STORE); return; }
    if (!response.ok) return;
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    label(fresh);
    say(fresh.getElementById("away")?.hidden === false ? STORE : "");
    document.title = fresh.title;
    ring();
    for (const region of document.querySelectorAll("[data-live]")) {
      const other = fresh.getElementById(region.id);
      if (!other || bare(region) === bare(other)) continue;
      if (isBusy(region)) again = true;
      else replace(region, other);
    }
  } catch { say("The console does not answer."); } finally {
    reading = false;
    if (again) { again = false; setTimeout(refresh, RETRY_MS); }
  }
}

// A browser opens six connections to a host: of all pages, one holds a stream and tells the others.
function follow() {
  const channel = new BroadcastChannel("fireswarm-changes");
  channel.addEventListener("message", refresh);
  const open = () => new Promise(() => {
    const events = new EventSource(document.querySelector(".brand").getAttribute("href") + "events");
    for (const kind of ["changed", "away", "error"]) {
      events.addEventListener(kind, () => { channel.postMessage(kind); refresh(); });
    }
  });
  if (navigator.locks) navigator.locks.request("fireswarm-events", open); else open();
}

// A person asked to be told of what waits, in any tab; the browser shows it once, whichever tab hears of it first.
const bell = document.getElementById("bell"), TOLD = "fireswarm-told";
const waitingNow = () => Number(/^\((\d+)/.exec(document.title)?.[1] ?? 0);

function ring() {
  if (!("Notification" in window) || Notification.permission !== "granted" || !localStorage.getItem("fireswarm-bell")) return;
  const count = waitingNow(), told = Number(localStorage.getItem(TOLD) ?? 0);
  localStorage.setItem(TOLD, count);
  if (count > told) new Notification("fireswarm", { body: `${count} waiting for you`, tag: "fireswarm" });
}

function drawBell() {
  if (!bell || !("Notification" in window)) return;
  const on = Notification.permission === "granted" && localStorage.getItem("fireswarm-bell");
  bell.textContent = on ? "Notify me no more" : "Notify me of new items";
  bell.hidden = false;
}

bell?.addEventListener("click", async () => {
  if (localStorage.getItem("fireswarm-bell")) localStorage.removeItem("fireswarm-bell");
  else if (await Notification.requestPermission() === "granted") localStorage.setItem("fireswarm-bell", "on");
  localStorage.setItem(TOLD, waitingNow());
  drawBell();
});

function tick() {
  for (const time of document.querySelectorAll("time")) {
    const seconds = Math.max(0, (Date.now() - Date.parse(time.dateTime)) / 1000);
    const [, unit, size] = AGES.find(([limit]) => seconds < limit);
    time.textContent = `${Math.round(seconds / size)} ${unit}`;
  }
  if (!away.hidden) refresh();
}

function move(step) {
  const items = [...document.querySelectorAll("[data-item]")];
  const at = items.findIndex((item) => item.contains(document.activeElement));
  items[Math.min(items.length - 1, Math.max(0, at + step))]?.focus();
}

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k" && !event.altKey && !event.shiftKey) {
    document.getElementById("find")?.select();
    event.preventDefault();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  const item = document.activeElement.closest("[data-item]");
  if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else if (event.key === "a") item?.querySelector(".questions select, .questions textarea, .questions input:not([type=hidden]), .primary, form button")?.focus();
  else if (event.key === "d") item?.querySelector("input[name=reason]")?.focus();
  else return;
  event.preventDefault();
});

// A button that came under the pointer a moment ago is not what a person meant to press. A key presses what has focus.
document.addEventListener("click", (event) => {
  const since = moved.get(event.target.closest("button"));
  if (event.detail && performance.now() - since < GUARD_MS) event.preventDefault();
}, true);

document.addEventListener("submit", (event) => {
  setTimeout(() => { for (const button of event.target.querySelectorAll("button")) button.disabled = true; });
});

document.addEventListener("visibilitychange", refresh);
if (location.search.includes("done=")) history.replaceState(null, "", location.pathname);
label(document);
drawBell();
follow();
refresh();  // what changed before the stream began may be in no list yet,
setTimeout(refresh, 1000 * document.body.dataset.settles);  // and what the server had kept is older
setInterval(tick, RETRY_MS);
