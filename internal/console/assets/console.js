// What the console does beyond its HTML: keeps ages true and pages up to date, and lets arrows move in lists. Nothing
// needs it.
"use strict";
(() => {
  const words = document.body.dataset;
  const every = 1500;
  const $ = (id) => document.getElementById(id);

  // Ages and countdowns, by the rules of lang.go.
  const span = (s) => {
    const m = Math.floor(s / 60), h = Math.floor(m / 60);
    if (s < 60) return s + " s";
    if (m < 60) return m + " min";
    if (h < 48) return h + " h" + (m % 60 ? " " + (m % 60) + " min" : "");
    return words.days.replace("%", Math.floor(h / 24));
  };
  const ago = (s) => (s < 60 ? words.justNow : words.ago.replace("%", span(s)));
  const until = (s) => {
    if (s <= 0) return words.now;
    const exact = s >= 60 && s < 600 && s % 60 ? Math.floor(s / 60) + " min " + (s % 60) + " s" : span(s);
    return words.in.replace("%", exact);
  };
  const tick = () => {
    for (const t of document.querySelectorAll("time[data-kind]:not([data-kind=at])")) {
      const s = Math.round((Date.parse(t.dateTime) - Date.now() - skew) / 1000);
      const due = t.dataset.kind === "due", late = due && s <= 0;
      const lasts = t.dataset.kind === "for" && -s >= 60;
      const text = lasts ? words.for.replace("%", span(-s)) : late ? words.overdue.replace("%", span(-s)) : due || t.dataset.kind === "in" ? until(s) : ago(-s);
      if (t.textContent !== text) t.textContent = text;
      if (due) t.classList.toggle("late", late);
    }
  };

  // The server's clock rules; skew is how far it is ahead of the browser's, in ms.
  let skew = 0;
  const learn = (answer) => {
    const at = Date.parse(answer.headers.get("Date"));
    if (at && Math.abs(at - Date.now()) > 2000) skew = at - Date.now();
    else if (at) skew = 0;
  };

  let version = words.version, ends = Date.parse(words.ends), out = false;

  // A form that somebody is filling in is left alone.
  const editing = () => {
    const at = document.activeElement?.matches("textarea, select, input:not([type=radio], [type=checkbox])")
      ? document.activeElement.closest("main form") : null;
    return [...document.querySelectorAll("main form")].filter((form) => form === at
      || [...form.elements].some((e) => ("checked" in e && e.checked !== e.defaultChecked && e.type !== "text")
        || (e.type !== "hidden" && "defaultValue" in e && e.value !== e.defaultValue)));
  };
  const held = () => editing().length > 0;
  const say = (state, text) => {
    $("live").hidden = false;
    if ($("live").dataset.state !== state) $("live").dataset.state = state;
    $("live-text").textContent = text;
  };
  const clock = () => new Intl.DateTimeFormat(document.documentElement.lang,
    { timeStyle: "medium", hourCycle: "h23", timeZone: words.zone }).format(Date.now() + skew); // as the page has its times

  const on = () => (ends - Date.now() - skew < 300000 ? say("held", words.liveEnds) : say("on", words.liveOn + " " + clock()));

  // Regions are exchanged where they differ in more than their ages; focus and what was opened stay.
  const plain = (e) => e.innerHTML.replace(/(<time[^>]*>)[^<]*/g, "$1").replace(/ open=""/g, "");
  const exchange = (now, next) => {
    if (plain(now) === plain(next)) return;
    const focus = now.contains(document.activeElement) ? document.activeElement : null;
    const opened = [...now.querySelectorAll("details[open]")].map((d) => d.closest("[id]").id);
    now.replaceChildren(...next.childNodes);
    for (const id of opened) $(id)?.querySelector("details")?.setAttribute("open", "");
    if (!focus) return;
    const same = focus.id ? $(focus.id) : [...now.querySelectorAll("a")].find((a) => a.getAttribute("href") === focus.getAttribute("href"));
    (same || $("main")).focus({ preventScroll: true });
  };
  const show = (html) => {
    const next = new DOMParser().parseFromString(html, "text/html");
    for (const e of document.querySelectorAll("input[name=form_token]")) // of whoever has logged in anew
      e.value = next.querySelector("input[name=form_token]")?.value ?? e.value;
    const known = new Set([...document.querySelectorAll("[data-live]")].map((e) => e.id));
    const come = [...next.querySelectorAll("[data-live]")];
    // A part that came or went, such as the decision's form, takes the whole page.
    const other = come.length !== known.size || come.some((e) => !known.has(e.id))
      || ["retry", "discard"].some((id) => !$(id) !== !next.getElementById(id));
    if (other && !held()) $("main").replaceChildren(...next.getElementById("main").childNodes);
    else for (const e of come) if ($(e.id) && !editing().some((f) => $(e.id).contains(f))) exchange($(e.id), e);
    if (other && held()) say("held", words.liveDecided); // what somebody writes stays, and he sees what happened
    else on();
    const summary = next.body.dataset.summary;
    if (summary && summary !== words.summary) $("said").textContent = words.summary = summary;
    version = next.body.dataset.version;
    ends = Date.parse(next.body.dataset.ends);
    tick();
    count();
  };

  // How many dead letters are chosen, and all of the page at once.
  const picks = () => [...document.querySelectorAll("input[name=ids][form=chosen]")];
  const count = () => {
    const told = $("chosen-n"), all = picks(), n = all.filter((e) => e.checked).length;
    if (!told) return;
    told.dataset.none ??= told.textContent;
    told.textContent = n === 0 ? told.dataset.none : n === 1 ? told.dataset.single : told.dataset.several.replace("%", n);
    $("all").closest("label").hidden = false;
    if (n) $("chosen").dataset.any = ""; else delete $("chosen").dataset.any;
    $("chosen-go").disabled = n === 0;
    $("all").checked = n > 0 && n === all.length;
  };
  document.addEventListener("change", (e) => {
    if (e.target.id === "all") for (const pick of picks()) pick.checked = e.target.checked;
    count();
  });
  count();

  let wait = every, timer = 0, seen = clock();
  const later = () => { clearTimeout(timer); timer = setTimeout(look, wait); };
  async function look() {
    if (document.hidden) return later();
    try {
      const answer = await fetch(location.pathname + location.search, {
        headers: { Accept: "text/html", "If-None-Match": '"' + version + '"' }, cache: "no-store", redirect: "manual",
      });
      if (answer.type === "opaqueredirect" || answer.status === 401) {
        say("lost", words.liveOut);
        askToLogIn();
        return later();
      }
      learn(answer);
      if (out) loggedIn();
      if (answer.status === 200) show(await answer.text());
      else if (answer.status !== 304) throw new Error(answer.status);
      else if ($("live").dataset.state !== "held" || !held()) on();
      wait = every;
      seen = clock();
    } catch {
      wait = Math.min(2 * wait, 60000);
      say("lost", words.liveLost + " " + seen);
    }
    later();
  }

  // A session that ends is begun anew in the page, so that what was written stays.
  const login = $("login-again");
  const askToLogIn = () => {
    out = true;
    if (login && !login.open) login.showModal();
  };
  const loggedIn = () => {
    out = false;
    version = ""; // whose page it is, and its forms' tokens, may be others now
    login?.close();
  };
  login?.querySelector("form")?.addEventListener("submit", async (e) => {
    e.preventDefault();
    const answer = await fetch("/login", { method: "POST", body: new URLSearchParams(new FormData(e.target)), redirect: "manual" });
    if (answer.type !== "opaqueredirect") return void ($("login-wrong").textContent = words.loginWrong);
    e.target.reset();
    $("login-wrong").textContent = "";
    loggedIn();
    await look();
  });
  if (version) {
    later();
    document.addEventListener("visibilitychange", () => { if (!document.hidden) { wait = every; look(); } });
  }
  setInterval(tick, 1000);

  // In lists the arrows, Home and End move between rows; only there, so that nobody's keys are taken.
  document.addEventListener("keydown", (e) => {
    const at = document.activeElement;
    if (!at?.classList.contains("row-link") || e.altKey || e.ctrlKey || e.metaKey) return;
    const rows = [...document.querySelectorAll(".row-link")], n = rows.indexOf(at);
    if (e.key === "x") at.closest("tr").querySelector("input[name=ids]")?.click();
    const to = { ArrowDown: n + 1, ArrowUp: n - 1, j: n + 1, k: n - 1, Home: 0, End: rows.length - 1 }[e.key];
    if (to === undefined || !rows[to]) return;
    e.preventDefault();
    rows[to].focus();
  });

  // Keys of one letter: ? says which there are, and whoever speaks to his computer turns them off there.
  const help = () => { if (!$("keys").open) $("keys").showModal(); };
  const off = () => { try { return localStorage.getItem("keys") === "off"; } catch { return false; } };
  $("keys-open")?.removeAttribute("hidden");
  $("keys-open")?.addEventListener("click", help);
  $("keys-close")?.addEventListener("click", () => $("keys").close());
  if ($("keys-on")) {
    $("keys-on").checked = !off();
    $("keys-on").addEventListener("change", (e) => { try { localStorage.setItem("keys", e.target.checked ? "on" : "off"); } catch { /* for this page only */ } });
  }
  const reason = (id) => {
    const field = $(id);
    for (let d = field; (d = d?.parentElement?.closest("details"));) d.open = true;
    field?.focus();
    return field;
  };
  document.addEventListener("keydown", (e) => {
    if (e.altKey || e.ctrlKey || e.metaKey || !$("keys") || off() && e.key !== "?"
      || e.target.closest("input:not([type=checkbox], [type=radio]), textarea, select, dialog")) return;
    const chip = /^[1-6]$/.test(e.key) ? document.querySelectorAll("#retry .chip")[e.key - 1] : null;
    const did = e.key === "?" ? (help(), true) : e.key === "/" ? ($("find").focus(), true)
      : e.key === "r" ? reason("retry-reason") : e.key === "d" ? reason("discard-reason")
        : e.key === "n" ? (document.querySelector(".next-letter")?.click(), true) : (chip?.focus(), chip);
    if (did) e.preventDefault();
  });
  document.addEventListener("change", (e) => {
    const says = e.target.dataset?.goes;
    if (says) for (const p of e.target.form.querySelectorAll("p[data-goes]")) p.textContent = says;
  });

  // A decision is sent once, however often the button is pressed.
  document.addEventListener("submit", (e) => {
    const button = e.submitter;
    if (e.target.method !== "post" || !button) return;
    if (out && e.target.closest("main")) {
      e.preventDefault();
      return askToLogIn();
    }
    if (button.getAttribute("aria-disabled")) return e.preventDefault();
    button.setAttribute("aria-disabled", "true");
    button.textContent = words.sending;
  });
  // What was planned is not what is chosen now: it is planned anew first.
  $("settings")?.addEventListener("input", () => {
    $("start-go")?.setAttribute("aria-disabled", "true");
    $("settings-changed")?.removeAttribute("hidden");
  });
  addEventListener("pageshow", (e) => { if (e.persisted) location.reload(); });

  // What a decision came to is where the reader goes on.
  if (location.hash === "#decision" || location.hash === "#result") $(location.hash.slice(1))?.focus();
})();
