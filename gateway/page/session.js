// A session of this tab: what is known of it, fed by server-sent events, and the sending of its files.

import { dropSession, keepSession } from "./vault.js"
import { Refusal } from "./net.js"
import { say } from "./dom.js"
import { send } from "./send.js"
import { queryTitle } from "./words.js"

const AT_ONCE = 3

export class Session {
  /** `ticket` is what the vault keeps. */
  constructor(gateways, dataset, ticket, onChange) {
    this.gateways = gateways
    this.dataset = dataset
    this.ticket = ticket
    this.onChange = onChange
    this.uploads = new Map() // by name
    this.files = new Map() // by kind
    this.queries = new Map(dataset.queries.map(({ query }) => [query, { query, state: "waiting", reason: "" }]))
    this.troubles = new Map() // by name of a file: what a gateway said to it
    this.sending = new Set()
    this.closed = new Set()
    this.gone = ""
    this.hasState = false
    this.ending = new AbortController()
    this.offsets = { get: (name) => this.uploads.get(name)?.offset }
    this.follow()
  }

  get client_id() {
    return this.ticket.client_id
  }

  get token() {
    return this.ticket.token
  }

  get plan() {
    return this.ticket.plan
  }

  async follow() {
    try {
      await this.gateways.follow(`/sessions/${this.client_id}/events`, this.token, (name, data) => this.take(name, data), this.ending.signal)
    } catch (error) {
      this.gone = error.message
      dropSession(this.client_id)
      this.onChange(this)
    }
  }

  take(name, data) {
    this.hasState = true
    if (name === "upload") this.uploads.set(data.name, { ...data, ...rateOf(this.uploads.get(data.name), data) })
    if (name === "file") this.files.set(data.kind, data)
    if (name === "query") {
      const before = this.queries.get(data.query)?.state
      this.queries.set(data.query, data)
      if (before === "waiting" && data.state === "done") say(`Answered: ${queryTitle(data.query)}`)
      if (before === "waiting" && data.state === "failed") say(`Failed: ${queryTitle(data.query)}. ${data.reason}`)
    }
    this.onChange(this)
    if (name === "upload" && data.state === "complete") this.closeFolders()
  }

  /** Files that still have bytes to be sent, and that nobody sends. After a reload they have to be chosen again. */
  get waiting() {
    if (!this.hasState || this.gone) return []
    return this.plan.filter(({ name }) => {
      const state = this.uploads.get(name)?.state
      return state !== "complete" && state !== "failed" && !this.sending.has(name) && !this.troubles.has(name)
    })
  }

  /** Files that were refused, or not even sent, and of which nothing was taken: put right, they may be sent again. */
  get mendable() {
    if (!this.hasState || this.gone) return []
    return this.plan.filter(({ name }) => {
      const known = this.uploads.get(name)
      return (known?.state === "failed" || this.troubles.has(name)) && !known?.offset && !this.sending.has(name)
    })
  }

  /** Sends files in the place of those that were refused, and others beside them. A mended file has another length. */
  replace(mended, others) {
    for (const { name, file } of mended) {
      this.troubles.delete(name)
      this.uploads.delete(name)
      this.plan.find((planned) => planned.name === name).length = file.size
    }
    this.keep()
    return this.upload([...mended, ...others])
  }

  /** Small ones first; one that needs others when they are there. */
  async upload(sources) {
    const left = [...sources].sort((a, b) => a.file.size - b.file.size)
    for (const source of left) this.sending.add(source.name)
    this.onChange(this)
    const running = new Set()
    while (left.length || running.size) {
      const next = left.findIndex((source) => source.kind.after.every((kind) => this.isComplete(kind)))
      if (next >= 0 && running.size < AT_ONCE) {
        const [source] = left.splice(next, 1)
        const task = this.sendOne(source).finally(() => running.delete(task))
        running.add(task)
      } else if (running.size) await Promise.race(running)
      else break // what it waits for was refused
    }
    for (const { name } of left) {
      this.sending.delete(name)
      this.troubles.set(name, "not sent: a file that has to be there first was refused")
    }
    this.onChange(this)
    await this.closeFolders()
  }

  async sendOne(source) {
    this.troubles.delete(source.name)
    try {
      await send(this.gateways, this, source, () => !this.ending.signal.aborted)
      const known = this.uploads.get(source.name)
      if (known?.state !== "complete") {
        this.uploads.set(source.name, { rows: 0, rejected: {}, unused: 0, ...known, name: source.name, kind: source.kind.kind,
          length: source.file.size, offset: source.file.size, state: "complete" }) // the event is about to come
      }
    } catch (error) {
      if (!this.ending.signal.aborted) {
        this.troubles.set(source.name, error.message)
        say(`${source.name}: ${error.message}`)
      }
    }
    this.sending.delete(source.name)
    this.onChange(this)
  }

  isComplete(kind) {
    const planned = this.plan.filter((file) => file.kind === kind)
    return planned.length > 0 && planned.every(({ name }) => this.uploads.get(name)?.state === "complete")
  }

  /** A folder ends when we say that all of it was sent. Said twice, it does no harm. */
  async closeFolders() {
    for (const { kind, folder } of this.dataset.files) {
      if (!folder || this.closed.has(kind) || !this.isComplete(kind)) continue
      this.closed.add(kind)
      const files = this.plan.filter((file) => file.kind === kind).length
      try {
        await this.gateways.ask(`/sessions/${this.client_id}/folders/${kind}/complete?files=${files}`, { method: "POST", token: this.token })
      } catch (error) {
        this.closed.delete(kind)
        this.troubles.set(kind, error.message)
        this.onChange(this)
      }
    }
  }

  /** All of it is deleted, here and there. */
  async end() {
    this.ending.abort()
    dropSession(this.client_id)
    try {
      await this.gateways.ask(`/sessions/${this.client_id}`, { method: "DELETE", token: this.token })
    } catch (error) {
      if (!(error instanceof Refusal) || error.status !== 404) throw error
    }
  }

  keep() {
    keepSession(this.ticket)
  }
}

/** Bytes a second, smoothed: commits come a few times a second. */
function rateOf(before, now) {
  const at = performance.now()
  if (!before?.at || now.offset <= before.offset) return { at: before?.at ?? at, rate: before?.rate ?? 0 }
  const rate = ((now.offset - before.offset) / Math.max(1, at - before.at)) * 1000
  return { at, rate: before.rate ? before.rate * 0.7 + rate * 0.3 : rate }
}
