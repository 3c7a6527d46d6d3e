// Keeps an open page up to date: on a change it reads itself anew, and replaces only the regions that changed.
const AGES = [[90, "s", 1], [5400, "min", 60], [129600, "h", 3600], [Infinity, "d", 86400]];
const away = document.getElementById("away");
let reading = false, again = false;

function isBusy(region) {
  const selection = getSelection();
  const edited = [...region.querySelectorAll("input:not([type=hidden]), textarea, select")].some((field) =>
    field.tagName === "SELECT" ? field.selectedIndex > 0 : field.type !== "number" && field.value !== field.defaultValue);
  return edited || region.contains(document.activeElement) || (!selection.isCollapsed && selection.containsNode(region, true));
}

function keepOpen(from, to) {
  const open = new Set([...from.querySelectorAll("details[open] > summary")].map((summary) => summary.textContent));
  for (const details of to.querySelectorAll("details")) {
    if (open.has(details.querySelector("summary")?.textContent)) details.open = true;
  }
}

async function refresh() {
  if (reading) { again = true; return; }
  reading = true;
  try {
    const response = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!response.ok) return;
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    document.title = fresh.title;
    for (const region of document.querySelectorAll("[data-live]")) {
      const other = fresh.getElementById(region.id);
      if (!other || region.innerHTML === other.innerHTML || isBusy(region)) continue;
      keepOpen(region, other);
      region.replaceChildren(...other.childNodes);
    }
  } catch { away.hidden = false; } finally {
    reading = false;
    if (again) { again = false; setTimeout(refresh, 1000); }
  }
}

function follow() {
  const events = new EventSource(document.querySelector(".brand").getAttribute("href") + "events");
  events.addEventListener("changed", () => { away.hidden = true; refresh(); });
  events.addEventListener("away", () => { away.hidden = false; });
  events.addEventListener("error", () => { away.hidden = false; });
  events.addEventListener("open", () => { away.hidden = true; });
}

function tick() {
  for (const time of document.querySelectorAll("time")) {
    const seconds = Math.max(0, (Date.now() - Date.parse(time.dateTime)) / 1000);
    const [, unit, size] = AGES.find(([limit]) => seconds < limit);
    time.textContent = `${Math.round(seconds / size)} ${unit}`;
  }
}

function move(step) {
  const items = [...document.querySelectorAll("[data-item]")];
  const at = items.findIndex((item) => item.contains(document.activeElement));
  items[Math.min(items.length - 1, Math.max(0, at + step))]?.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  const item = document.activeElement.closest("[data-item]");
  if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else if (event.key === "a") item?.querySelector("button.primary")?.focus();
  else if (event.key === "d") item?.querySelector("input[name=reason]")?.focus();
  else return;
  event.preventDefault();
});

document.addEventListener("submit", (event) => {
  setTimeout(() => { for (const button of event.target.querySelectorAll("button")) button.disabled = true; });
});

follow();
setInterval(tick, 10000);
