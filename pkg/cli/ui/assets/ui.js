// Makes a page live: it takes the sections that the server sends in place of those that the page has. It also lets the
// arrow keys move in the map, and copies commands. Everything that a page says is there without it.

const live = document.getElementById("live");
const page = live?.dataset.page;

// say shows at the top and in the footer whether the page is live, and why it is not, if that is known.
function say(on, problem) {
  if (!live || !page) return;
  const why = problem ? `: ${problem}` : "";
  live.className = on ? "on" : "off";
  live.textContent = on ? live.dataset.live : live.dataset.still + why;
  const stale = document.getElementById("stale");
  stale.hidden = on;
  stale.textContent = on ? "" : stale.dataset.still + why;
}

// what is in the focus, as it can be found again in a new text.
function focused() {
  const e = document.activeElement;
  if (!e || e === document.body) return null;
  return e.id ? `#${CSS.escape(e.id)}` : e.matches("a[href]") ? `a[href="${CSS.escape(e.getAttribute("href"))}"]` : null;
}

function take(sections) {
  const selector = focused();
  for (const { id, hash, html } of sections) {
    const old = document.getElementById(id);
    if (!old || old.dataset.hash === hash) continue;
    const typing = old.contains(document.activeElement) && document.activeElement.matches("input");
    if (typing) continue; // the next frame brings it
    old.innerHTML = html; // the server has escaped what is not its own
    old.dataset.hash = hash;
    prepare(old);
  }
  if (selector && document.activeElement === document.body) document.querySelector(selector)?.focus({ preventScroll: true });
}

// versions are the hashes of what the page shows.
function versions() {
  return [...document.querySelectorAll("section[data-hash]")].map((s) => s.dataset.hash).join(".");
}

function hear(message) {
  if (message.page !== page) return;
  if (message.sections) take(message.sections);
  say(message.on, message.problem);
}

// One stream serves all tabs, where the browser can share one: it opens only six connections to a server.
function connect() {
  if (!page) return;
  if (!window.SharedWorker) {
    import("./live.js").then(({ Stream }) => {
      const stream = new Stream(hear);
      stream.set(new Map([[page, versions()]]));
    });
    return;
  }
  const worker = new SharedWorker("/static/live.js", { type: "module", name: "bcsnet" });
  worker.onerror = () => say(false);
  worker.port.onmessage = (e) => hear(e.data);
  const tell = (shown) => worker.port.postMessage(shown ? { page, have: versions() } : { bye: true });
  document.addEventListener("visibilitychange", () => tell(!document.hidden));
  addEventListener("pagehide", () => tell(false));
  addEventListener("pageshow", (e) => { if (e.persisted) tell(true); });
  tell(!document.hidden);
}

const keys = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };

// move goes from a cell to the next one in some direction that is an address of the pool.
function move(cell, key) {
  const cells = [...cell.closest(".map").querySelectorAll(".cells > *")];
  const row = Number(cell.closest(".map").dataset.row);
  const step = { ArrowUp: -row, ArrowDown: row, ...keys }[key];
  let at = cells.indexOf(cell);
  if (!Number.isFinite(step)) {
    const links = cells.filter((c) => c.href);
    return links[step < 0 ? 0 : links.length - 1];
  }
  do at += step; while (cells[at] && !cells[at].href);
  return cells[at];
}

function show(cell) {
  const at = document.getElementById("at");
  if (at && cell?.title) at.textContent = cell.title;
}

document.addEventListener("keydown", (e) => {
  if (e.key === "/" && !e.target.matches("input")) {
    e.preventDefault();
    document.getElementById("search")?.focus();
  }
  const cell = e.target.closest?.(".cells > a");
  if (!cell || !(e.key in keys || e.key === "ArrowUp" || e.key === "ArrowDown")) return;
  e.preventDefault();
  const next = move(cell, e.key);
  if (!next) return;
  cell.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
});
for (const kind of ["mouseover", "focusin"]) {
  document.addEventListener(kind, (e) => show(e.target.closest?.(".cells > a")));
}

document.addEventListener("click", (e) => copy(e.target.closest?.("code.copy")));
document.addEventListener("keydown", (e) => { if (e.key === "Enter") copy(e.target.closest?.("code.copy")); });

async function copy(code) {
  if (!code || getSelection().toString()) return;
  await navigator.clipboard.writeText(code.textContent);
  code.classList.add("copied");
  setTimeout(() => code.classList.remove("copied"), 1500);
}

// prepare makes a part of the page that is new what scripts make of it.
function prepare(part) {
  const cell = part.querySelector(".cells > a");
  if (cell) cell.tabIndex = 0;
  for (const code of part.querySelectorAll("code.copy")) {
    code.tabIndex = 0;
    code.setAttribute("role", "button");
  }
}

prepare(document);
connect();
