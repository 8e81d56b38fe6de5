// Where everything comes together: two views, the theme, the sessions of this tab.

import { askedFor } from "./choose.js"
import { $, say, setText } from "./dom.js"
import { Gateways } from "./net.js"
import { NewSession } from "./new_session.js"
import { OperatorView } from "./operator_view.js"
import { Session } from "./session.js"
import { SessionView } from "./session_view.js"
import { keepOperatorToken, sessions } from "./vault.js"

const gateways = new Gateways()
const operator = new OperatorView(gateways, $("operator"))
const views = new Map() // by client id

takeOperatorToken()
setUpTabs()
setUpTheme()
await setUpSessions()

/** `cauce page` puts it behind the #, which no request carries; it does not stay in the address. */
function takeOperatorToken() {
  const token = new URLSearchParams(location.hash.slice(1)).get("operator")
  if (!token) return
  keepOperatorToken(token)
  history.replaceState(null, "", "#operator")
}

function setUpTabs() {
  const tabs = [$("tab-clients"), $("tab-operator")]
  const select = (chosen) => {
    for (const tab of tabs) {
      const isChosen = tab === chosen
      tab.setAttribute("aria-selected", String(isChosen))
      tab.tabIndex = isChosen ? 0 : -1
      $(tab.getAttribute("aria-controls")).hidden = !isChosen
    }
    history.replaceState(null, "", chosen === tabs[1] ? "#operator" : location.pathname)
    if (chosen === tabs[1]) operator.show()
    else operator.hide()
  }
  for (const [index, tab] of tabs.entries()) {
    tab.addEventListener("click", () => select(tab))
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
      if (!step) return
      const next = tabs[(index + step + tabs.length) % tabs.length]
      next.focus()
      select(next)
    })
  }
  select(location.hash === "#operator" ? tabs[1] : tabs[0])
}

function setUpTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)")
  const current = () => document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")
  const show = () => setText($("theme"), current() === "dark" ? "☀ Light" : "☾ Dark")
  $("theme").addEventListener("click", () => {
    const next = current() === "dark" ? "light" : "dark"
    document.documentElement.dataset.theme = next
    try {
      localStorage.setItem("cauce.theme", next)
    } catch {
      // no storage: until the page is left
    }
    show()
  })
  system.addEventListener("change", show)
  show()
}

async function setUpSessions() {
  const { datasets, gateways: known } = await gateways.json("/datasets")
  gateways.know(known)
  const where = (url) => setText($("where"), `connected to ${new URL(url).host}${gateways.urls.length > 1 ? `, ${gateways.urls.length} gateways known` : ""}`)
  where(gateways.current)
  gateways.listeners.add((url) => {
    where(url)
    say(`Going on at ${new URL(url).host}`)
  })
  const byName = new Map(datasets.map((dataset) => [dataset.name, dataset]))
  for (const ticket of sessions().reverse()) {
    const dataset = byName.get(ticket.dataset)
    if (dataset) show(askedFor(dataset, new Set(ticket.queries ?? dataset.queries.map(({ query }) => query))), ticket)
  }

  new NewSession(datasets, async (dataset, options, sources) => {
    const opened = await gateways.json("/sessions", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ dataset: dataset.name, ...options }),
    })
    const plan = sources.map(({ kind, name, file }) => ({ kind: kind.kind, name, length: file.size }))
    const ticket = { client_id: opened.client_id, token: opened.token, dataset: dataset.name, queries: opened.queries, plan }
    const session = show(dataset, ticket)
    session.keep()
    session.upload(sources)
  })
}

function show(dataset, ticket) {
  const session = new Session(gateways, dataset, ticket, ({ client_id: id }) => views.get(id)?.update())
  const view = new SessionView(session, end)
  views.set(session.client_id, view)
  $("sessions").prepend(view.node)
  $("no-sessions").hidden = true
  return session
}

async function end(view) {
  try {
    await view.session.end()
  } catch (error) {
    say(`The session was not deleted: ${error.message}. It expires by itself.`)
  }
  view.node.remove()
  views.delete(view.session.client_id)
  $("no-sessions").hidden = views.size > 0
  $("sessions-title").tabIndex = -1
  $("sessions-title").focus()
}
