// A session as a card: files with their progress, queries that light up, the answer that was opened.

import { AnswerView } from "./answer_view.js"
import { listed, matched } from "./choose.js"
import { bytes, el, keyed, many, number, setAttribute, setText } from "./dom.js"
import { datasetTitle, queryNumber, queryTitle } from "./words.js"

const STATES = {
  sending: "Sending", paused: "Waiting for files", working: "Answering", done: "All answered",
  failed: "Failed", gone: "Ended", unknown: "Connecting",
}

export class SessionView {
  constructor(session, onEnd) {
    this.session = session
    this.open = null
    this.wasOpened = false
    const id = session.client_id
    this.badge = el("span", { class: "badge" })
    this.note = el("p", { class: "hint", hidden: true })
    this.files = el("ul", { class: "files", "aria-label": "Files" })
    this.queries = el("ul", { class: "queries", "aria-label": "Queries" })
    this.answer = el("div", { id: `answer-${id}` })
    this.again = this.chooser()
    this.end = el("button", { type: "button", class: "quiet", "aria-label": `End session ${id.slice(0, 8)} and delete all of it`,
      on: { click: () => onEnd(this) } }, "End")
    this.node = el("article", { class: "card session", "aria-labelledby": `session-${id}` },
      el("div", { class: "row spread" },
        el("h3", { id: `session-${id}` }, datasetTitle(session.ticket.dataset), " ",
          el("span", { class: "id" }, id.slice(0, 8))),
        el("div", { class: "row" }, this.badge, this.end)),
      this.note, this.again, this.files, this.queries, this.answer)
    this.update()
  }

  chooser() {
    const input = el("input", { type: "file", multiple: true, accept: ".csv", hidden: true, "aria-label": "The same files again",
      on: { change: () => {
        const found = listed(input.files)
        input.value = "" // the same choice again is a change: the file may have been mended in its place
        this.goOn(found)
      } } })
    const button = el("button", { type: "button", on: { click: () => input.click() } }, "Choose the same files again…")
    this.againNote = el("p", {})
    return el("div", { class: "again", hidden: true }, this.againNote, button, input)
  }

  goOn(found) {
    const { session } = this
    const wanted = new Map(session.waiting.map((file) => [file.name, file.length]))
    const mendable = new Set(session.mendable.map((file) => file.name))
    const { sources } = matched(found, session.dataset)
    const same = sources.filter((source) => wanted.get(source.name) === source.file.size)
    const mended = sources.filter((source) => mendable.has(source.name))
    if (same.length || mended.length) session.replace(mended, same)
    else setText(this.againNote, `None of these is one of ${[...mendable, ...[...wanted.keys()].map((name) => `${name} with the same length`)].join(", ")}.`)
  }

  /** What is said beside the chooser; nothing where no file is to be chosen. */
  get request() {
    const { session, state } = this
    const names = (files) => files.map((file) => file.name).join(", ")
    const said = []
    if (state === "paused") said.push(`The page was loaded again, and a page may not keep files. Choose ${names(session.waiting)} again: the upload goes on where it was.`)
    if (session.mendable.length) said.push(`Nothing was taken of ${names(session.mendable)}. Put right what was refused, and choose it again.`)
    return said.join(" ")
  }

  get state() {
    const { session } = this
    const queries = [...session.queries.values()]
    if (session.gone) return "gone"
    if (!session.hasState) return "unknown"
    if (queries.every((query) => query.state !== "waiting")) return queries.some((query) => query.state === "failed") ? "failed" : "done"
    if (session.troubles.size) return "failed"
    if (session.sending.size) return "sending"
    return session.waiting.length ? "paused" : "working"
  }

  update() {
    const { session, state } = this
    setAttribute(this.badge, "data-state", state)
    setText(this.badge, STATES[state])
    this.note.hidden = !session.gone
    setText(this.note, session.gone)
    const request = this.request
    this.again.hidden = !request
    if (request) setText(this.againNote, request)
    keyed(this.files, this.rows(), (row) => row.name, makeFile, updateFile)
    keyed(this.queries, [...session.queries.values()], (query) => query.query, (query) => this.makeQuery(query), (parts, query) => this.updateQuery(parts, query))
    const first = [...session.queries.values()].find((query) => query.state === "done")
    if (first && !this.wasOpened) this.show(first.query)
  }

  /** One a kind: the files of a folder are one input. */
  rows() {
    return [...Map.groupBy(this.session.plan, (file) => file.kind)].map(([kind, files]) => {
      const members = files.map((file) => this.member(file))
      const total = (name) => members.reduce((sum, member) => sum + (member[name] ?? 0), 0)
      const isOne = members.length === 1
      return {
        name: isOne ? files[0].name : `${kind}/ · ${many(files.length, "file")}`,
        members: isOne ? [] : members,
        length: total("length"), offset: total("offset"), rows: total("rows"), unused: total("unused"), rate: total("rate"),
        rejected: summed(members.map((member) => member.rejected)),
        isComplete: members.every((member) => member.state === "complete"),
        isSending: members.some((member) => member.isSending),
        trouble: [...members.map((member) => member.trouble && (isOne ? member.trouble : `${member.name}: ${member.trouble}`)),
          this.session.troubles.get(kind)].filter(Boolean).join("; "),
      }
    })
  }

  member({ name, length }) {
    const { session } = this
    const known = session.uploads.get(name) ?? { offset: 0, rows: 0, rejected: {}, unused: 0, state: "open" }
    const isSending = session.sending.has(name)
    const rate = isSending && known.state === "open" ? known.rate : 0
    return { ...known, name, length, rate, isSending, trouble: known.reason || session.troubles.get(name) || "" }
  }

  makeQuery({ query }) {
    const lamp = el("span", { class: "lamp", "aria-hidden": "true" })
    const state = el("span", { class: "query-state" })
    const button = el("button", { type: "button", class: "query", "aria-controls": this.answer.id, "aria-expanded": "false",
      on: { click: () => this.show(this.open === query ? null : query) } },
    lamp, el("span", { class: "query-title" }, el("b", {}, queryNumber(query)), " ", queryTitle(query)), state)
    return { node: el("li", { "data-query": query }, button), button, state, lamp }
  }

  updateQuery({ button, state, lamp }, query) {
    setAttribute(button, "data-state", query.state)
    button.disabled = query.state !== "done"
    setText(lamp, { done: "✓", failed: "✕", waiting: "" }[query.state])
    setText(state, { done: "answered", failed: `failed: ${query.reason}`, waiting: "waiting" }[query.state])
    setAttribute(button, "aria-expanded", String(this.open === query.query))
  }

  show(query) {
    this.wasOpened = true
    this.open = query
    this.answer.replaceChildren(...(query ? [new AnswerView(this.session.gateways, this.session, query).node] : []))
    this.update()
  }
}

function summed(counts) {
  const total = {}
  for (const [reason, count] of counts.flatMap((some) => Object.entries(some))) total[reason] = (total[reason] ?? 0) + count
  return total
}

function makeFile({ name }) {
  const parts = {
    bar: el("progress", { "aria-label": `Progress of ${name}` }),
    amount: el("span", { class: "amount" }),
    rows: el("span", { class: "hint" }),
    unused: el("span", { class: "hint unused" }),
    trouble: el("p", { class: "trouble" }),
    reasons: el("details", { class: "rejected" }, el("summary", {}), el("ul", {})),
    members: el("details", {}, el("summary", {}, "each file"), el("ul", {})),
  }
  parts.node = el("li", {}, el("div", { class: "row spread" }, el("span", { class: "file-name" }, name), parts.amount),
    parts.bar, el("div", { class: "row top-row" }, parts.rows, parts.unused, parts.reasons, parts.members), parts.trouble)
  return parts
}

function updateFile(parts, row) {
  parts.bar.max = row.length || 1
  parts.bar.value = row.isComplete ? row.length || 1 : row.offset
  setAttribute(parts.bar, "data-state", row.trouble ? "failed" : row.isComplete ? "complete" : "open")
  setText(parts.amount, row.trouble ? "✕ refused" : row.isComplete ? `✓ ${bytes(row.length)}`
    : `${percent(row)} of ${bytes(row.length)}${row.rate ? ` · ${bytes(row.rate)}/s` : ""}`)
  setText(parts.rows, row.rows ? many(row.rows, "row") : row.isSending ? "sending" : "")
  parts.unused.hidden = !row.unused
  setText(parts.unused, `${many(row.unused, "row")} that no query uses`)
  const reasons = Object.entries(row.rejected).sort(([, a], [, b]) => b - a)
  parts.reasons.hidden = !reasons.length
  setText(parts.reasons.firstChild, `${number(reasons.reduce((sum, [, count]) => sum + count, 0))} rejected`)
  showLines(parts.reasons.lastChild, reasons.map(([reason, count]) => [reason, `${reason}: ${number(count)}`]))
  parts.members.hidden = !row.members.length
  showLines(parts.members.lastChild, row.members.map((member) => [member.name,
    `${member.name}: ${member.state === "complete" ? "✓" : percent(member)}`]))
  parts.trouble.hidden = !row.trouble
  setText(parts.trouble, row.trouble)
}

const percent = ({ offset, length }) => `${length ? Math.floor((offset / length) * 100) : 0} %`

function showLines(list, lines) {
  keyed(list, lines, ([key]) => key, () => ({ node: el("li") }), ({ node }, [, text]) => setText(node, text))
}
