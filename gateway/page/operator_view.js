// The cluster as its operator sees it: about once a second, from any gateway, behind the operator's token.

import { Trends } from "./trends.js"
import { sparkline } from "./charts.js"
import { bytes, compact, el, keyed, many, number, say, setAttribute, setText } from "./dom.js"
import { keepOperatorToken, operatorToken } from "./vault.js"

const MARKS = { ready: "●", starting: "◐", paused: "❚❚", dead: "✕" }
const EVENTS = { started: "→", ready: "✓", ended: "✕", killed: "✕", "given up": "✕", leads: "★", stopping: "■" }

export class OperatorView {
  constructor(gateways, root) {
    this.gateways = gateways
    this.root = root
    this.trends = new Trends()
    this.states = new Map()
    this.ending = null
  }

  show() {
    if (this.ending) return
    if (!operatorToken()) this.ask("")
    else this.follow()
  }

  hide() {
    this.ending?.abort()
    this.ending = null
  }

  ask(why) {
    const token = el("input", { id: "operator-token", type: "password", autocomplete: "off", required: true, spellcheck: "false" })
    const enter = (event) => {
      event.preventDefault()
      keepOperatorToken(token.value.trim())
      this.follow()
    }
    this.root.replaceChildren(el("section", { class: "card narrow", "aria-labelledby": "door" },
      el("h2", { id: "door" }, "For the operator"),
      el("p", {}, "On the machine of the cluster, ", el("code", {}, "cauce page"), " prints a link that opens this view. Or give the operator's token:"),
      el("form", { on: { submit: enter } },
        el("label", { for: "operator-token" }, "Operator's token"), el("div", { class: "row" }, token,
          el("button", { class: "main" }, "Open"))),
      el("p", { class: "trouble", role: "alert", hidden: !why }, why)))
  }

  async follow() {
    this.build()
    const ending = (this.ending = new AbortController())
    try {
      await this.gateways.follow("/operator/events", operatorToken(), (_, now) => this.update(now), ending.signal)
    } catch (error) {
      keepOperatorToken(null)
      this.ending = null
      this.ask(error.message)
    }
  }

  build() {
    this.troubles = el("ul", { class: "troubles", "aria-label": "Troubles" })
    this.tiles = el("ul", { class: "tiles", "aria-label": "In short" })
    this.processes = el("ul", { class: "processes", "aria-labelledby": "processes-title" })
    this.kafka = el("dl", { class: "facts" })
    this.stalls = el("ul", { class: "plain" })
    this.events = el("ol", { class: "events", tabindex: 0, "aria-label": "What happened, newest first" })
    this.sessions = el("ul", { class: "plain", tabindex: 0, "aria-label": "Open sessions" })
    this.noSessions = el("p", { class: "hint" }, "None is open.")
    const part = (id, title, ...content) => el("section", { class: "card", "aria-labelledby": id }, el("h2", { id }, title), ...content)
    this.root.replaceChildren(el("h2", { class: "unseen" }, "The cluster in short"), this.troubles, this.tiles,
      el("h2", { class: "section", id: "processes-title" }, "Processes"), this.processes,
      el("div", { class: "columns" },
        part("events-title", "Kills and revivals", this.events),
        part("kafka-title", "Kafka", this.kafka, el("h3", {}, "Transactions that hang"), this.stalls)),
      part("open-title", "Open sessions", this.noSessions, this.sessions))
  }

  update(now) {
    const processes = now.cluster?.processes ?? []
    this.trends.add(now, processes)
    this.announce(processes)
    const troubles = [...(now.cluster?.troubles ?? []), ...(now.why_no_cluster ? [now.why_no_cluster] : []), ...(now.kafka.trouble ? [now.kafka.trouble] : [])]
    keyed(this.troubles, troubles, (text) => text, (text) => ({ node: el("li", { class: "trouble" }, `! ${text}`) }), () => {})
    keyed(this.tiles, this.tilesOf(now, processes), (tile) => tile.name, makeTile, updateTile)
    keyed(this.processes, processes, (process) => `${process.role}-${process.index}`, makeProcess,
      (parts, process) => this.updateProcess(parts, process))
    this.updateKafka(now.kafka)
    const events = [...(now.cluster?.events ?? [])].reverse()
    keyed(this.events, events, (event) => `${event.at} ${event.role} ${event.index} ${event.what}`, makeEvent, () => {})
    this.noSessions.hidden = now.sessions.length > 0
    keyed(this.sessions, now.sessions, (session) => session.client_id, makeSession, updateSession)
  }

  announce(processes) {
    for (const { role, index, state } of processes) {
      const name = `${role} ${index}`
      const before = this.states.get(name)
      if (before && before !== state) say(`${name} is ${state}`)
      this.states.set(name, state)
    }
  }

  tilesOf(now, processes) {
    const ready = processes.filter((process) => process.state === "ready").length
    const rejected = now.sessions.flatMap((session) => session.files).reduce((sum, file) => sum + sum_(file.rejected), 0)
    const unused = now.sessions.flatMap((session) => session.files).reduce((sum, file) => sum + file.unused, 0)
    const { trends } = this
    const stalls = now.kafka.stalls
    return [
      { name: "Processes ready", value: `${ready} of ${processes.length}`, isBad: ready < processes.length },
      { name: "Lag", value: `${compact(trends.last("lag"))} records`, trend: trends.of("lag") },
      { name: "Commits", value: `${trends.last("commits").toFixed(1)}/s`, trend: trends.of("commits") },
      { name: "Commit latency", value: `${Math.round(trends.last("latency"))} ms`, trend: trends.of("latency") },
      { name: "Rows in", value: `${compact(trends.last("rows"))}/s`, trend: trends.of("rows") },
      { name: "Rejected rows", value: number(rejected) },
      { name: "Rows that no query uses", value: number(unused) },
      { name: "Open sessions", value: number(now.sessions_open) },
      { name: "Hanging transactions", value: stalls.length ? `${many(stalls.length, "partition")}` : "none", isBad: stalls.length > 0 },
    ]
  }

  updateProcess(parts, process) {
    setAttribute(parts.node, "data-state", process.state)
    setText(parts.state, `${MARKS[process.state] ?? ""} ${process.state}`)
    setText(parts.leads, process.leads ? "★ leads" : "")
    keyed(parts.facts, this.factsOf(process), ([name]) => name, makeFact, ({ value }, [, text]) => setText(value, text))
    const isRestoring = process.restore_wanted > 0 && process.restore_seconds_left > 0
    parts.restore.hidden = !isRestoring
    if (isRestoring) {
      parts.bar.max = process.restore_wanted
      parts.bar.value = process.restored
      setText(parts.restoreText, `restoring ${number(process.restored)} of ${number(process.restore_wanted)} · ${Math.ceil(process.restore_seconds_left)} s left`)
    }
    parts.note.hidden = !process.note
    setText(parts.note, process.note ?? "")
  }

  factsOf(process) {
    const facts = [["Address", process.address], ["Process", process.pid ?? "none"], ["Restarts", number(process.restarts)]]
    const rate = this.trends.rateOf(process)
    if (process.role === "worker") {
      facts.push(["Partitions", shown(process.partitions)], ["Lag", shown(process.lag)],
        ["Commits", rate ? `${rate.commits.toFixed(1)}/s` : "—"], ["Latency", rate?.latency ? `${Math.round(rate.latency)} ms` : "—"])
      if (process.restored) facts.push(["Restored", `${compact(process.restored)} records`])
      if (process.set_aside) facts.push(["Set aside", number(process.set_aside)])
    }
    if (process.role === "gateway") {
      facts.push(["Uploads", shown(process.live_uploads)], ["Rows in", rate ? `${compact(rate.rows)}/s` : "—"],
        ["Taken", process.bytes === null ? "—" : bytes(process.bytes)], ["Rejected", shown(process.rejected)], ["Used by no query", shown(process.unused)])
    }
    return facts
  }

  updateKafka(kafka) {
    const facts = [
      ...kafka.brokers.map((broker) => [`Broker ${broker.id}`, `${broker.address}, leads ${broker.leads} of ${kafka.partitions} partitions`]),
      ["Short of copies", kafka.short_of_copies ? many(kafka.short_of_copies, "partition") : "none"],
    ]
    keyed(this.kafka, facts, ([name]) => name, makeFact, ({ value }, [, text]) => setText(value, text))
    const stalls = kafka.stalls.map((stall) => ({ key: `${stall.topic}-${stall.partition}`, isBad: true,
      text: `! ${stall.topic}-${stall.partition}: stable up to ${number(stall.last_stable_offset)} of ${number(stall.high_watermark)} for ${Math.round(stall.seconds)} s` }))
    const none = { key: "none", text: "None: every partition is stable to its end, or moves." }
    keyed(this.stalls, stalls.length ? stalls : [none], (stall) => stall.key, () => ({ node: el("li") }), ({ node }, stall) => {
      setText(node, stall.text)
      setAttribute(node, "class", stall.isBad ? "trouble" : "hint")
    })
  }
}

const sum_ = (counts) => Object.values(counts).reduce((sum, count) => sum + count, 0)
const shown = (value) => (value === null || value === undefined ? "—" : number(Math.round(value)))

function makeTile({ name }) {
  const parts = { value: el("strong", {}), trend: el("div", { class: "trend" }), node: null }
  parts.node = el("li", { class: "tile" }, el("span", { class: "hint" }, name), parts.value, parts.trend)
  return parts
}

function updateTile({ node, value, trend }, tile) {
  setAttribute(node, "data-bad", tile.isBad ? "yes" : null)
  setText(value, `${tile.isBad ? "! " : ""}${tile.value}`)
  if (tile.trend) trend.replaceChildren(sparkline(tile.trend, `${tile.name} over the last ${tile.trend.length} seconds`))
}

function makeProcess({ role, index }) {
  const parts = {
    state: el("span", { class: "state" }), leads: el("span", { class: "hint" }), facts: el("dl", { class: "facts" }),
    bar: el("progress", { "aria-label": `Restoring of ${role} ${index}` }), restoreText: el("span", { class: "hint" }),
    note: el("p", { class: "trouble", hidden: true }),
  }
  parts.restore = el("div", { hidden: true }, parts.bar, parts.restoreText)
  parts.node = el("li", { class: "process", "data-process": `${role}-${index}` },
    el("div", { class: "row spread" }, el("h3", {}, `${role} ${index}`), el("span", {}, parts.leads, " ", parts.state)),
    parts.facts, parts.restore, parts.note)
  return parts
}

function makeFact([name]) {
  const value = el("dd", {})
  return { node: el("div", {}, el("dt", {}, name), value), value }
}

function makeEvent(event) {
  const seconds = event.seconds === null ? "" : ` after ${event.seconds.toFixed(1)} s`
  return { node: el("li", { "data-what": event.what }, el("time", { datetime: event.at }, new Date(event.at).toLocaleTimeString()),
    el("span", { class: "mark", "aria-hidden": "true" }, EVENTS[event.what] ?? "·"),
    el("span", {}, el("b", {}, `${event.role} ${event.index}`), ` ${event.what}${seconds}${event.detail ? `: ${event.detail}` : ""}`)) }
}

function makeSession({ client_id, dataset }) {
  const parts = { state: el("span", { class: "badge" }), rows: el("span", { class: "hint" }) }
  parts.node = el("li", { class: "open-session" }, el("span", {}, el("b", {}, dataset), " ", el("span", { class: "id" }, client_id.slice(0, 8))), parts.rows, parts.state)
  return parts
}

function updateSession({ state, rows }, session) {
  const total = session.files.reduce((sum, file) => sum + file.rows, 0)
  const rejected = session.files.reduce((sum, file) => sum + sum_(file.rejected), 0)
  const unused = session.files.reduce((sum, file) => sum + file.unused, 0)
  const reasons = session.files.flatMap((file) => Object.entries(file.rejected).map(([reason, count]) => `${file.kind}: ${reason} ${number(count)}`))
  setText(rows, `${many(total, "row")}, ${number(rejected)} rejected, ${number(unused)} that no query uses`)
  setAttribute(rows, "title", reasons.join("\n") || null)
  setAttribute(state, "data-state", { uploading: "sending", answering: "working" }[session.state] ?? session.state)
  setText(state, session.state)
}
