// Requests that survive the loss of a gateway: whoever asks goes on at the next one that is known.

const GIVE_UP_MS = 120_000 // without an answer; a cluster that restarts whole takes half a minute
const LONGEST_WAIT_MS = 3000
const SILENT_MS = 25_000 // two of the comment lines that come every 10 s are missing

/** A gateway's no: what happened, where, what to do. */
export class Refusal extends Error {
  constructor(status, problem) {
    super(problem.detail ?? problem.title ?? `status ${status}`)
    this.status = status
    this.problem = problem
  }
}

export const wait = (ms) => new Promise((done) => setTimeout(done, ms))

/** Whether the same request may work later, or elsewhere. */
export const isPassing = (status) => status === 0 || status >= 500 || status === 408 || status === 423 || status === 429

export class Gateways {
  constructor() {
    this.urls = [location.origin]
    this.at = 0
    this.listeners = new Set()
  }

  know(urls) {
    this.urls = [location.origin, ...urls.filter((url) => url !== location.origin)]
  }

  get current() {
    return this.urls[this.at]
  }

  /** Away from a gateway that failed, unless somebody went before us. */
  leave(url) {
    if (url !== this.current) return
    this.at = (this.at + 1) % this.urls.length
    for (const listener of this.listeners) listener(this.current)
  }

  /** The answer, whoever gives it. Raises a Refusal, or the last trouble once it has lasted too long. */
  async ask(path, { token, ...options } = {}) {
    const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) }
    const since = Date.now()
    for (let failures = 0; ; failures += 1) {
      const gateway = this.current
      const refusal = await attempt(gateway + path, { ...options, headers })
      if (!(refusal instanceof Refusal)) return refusal
      if (!isPassing(refusal.status) || Date.now() - since > GIVE_UP_MS || options.signal?.aborted) throw refusal
      this.leave(gateway)
      await wait(backoff(failures, this.urls.length))
    }
  }

  async json(path, options) {
    return (await this.ask(path, options)).json()
  }

  /** Server-sent events, for ever: `onEvent(name, data)`. Ends when `signal` says so, or with a Refusal that lasts. */
  async follow(path, token, onEvent, signal) {
    for (let failures = 0; !signal.aborted; failures += 1) {
      const gateway = this.current
      const ending = new AbortController()
      const end = () => ending.abort()
      signal.addEventListener("abort", end)
      try {
        const headers = { Authorization: `Bearer ${token}` }
        const answer = await attempt(gateway + path, { headers, signal: ending.signal })
        if (answer instanceof Refusal) throw answer
        await readEvents(answer, end, (name, data) => {
          failures = 0
          onEvent(name, data)
        })
      } catch (error) {
        if (error instanceof Refusal && !isPassing(error.status)) throw error
      } finally {
        signal.removeEventListener("abort", end)
      }
      if (signal.aborted) return
      this.leave(gateway)
      await wait(backoff(failures, this.urls.length))
    }
  }
}

const backoff = (failures, gateways) => Math.min(LONGEST_WAIT_MS, 150 * 2 ** Math.floor(failures / gateways))

async function attempt(url, options) {
  try {
    const answer = await fetch(url, { cache: "no-store", ...options })
    if (answer.ok) return answer
    const problem = await answer.json().catch(() => ({}))
    return new Refusal(answer.status, problem)
  } catch (error) {
    return new Refusal(0, { detail: `${new URL(url).host} does not answer (${error.message})` })
  }
}

async function readEvents(answer, end, onEvent) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ""
  for (;;) {
    const watchdog = setTimeout(end, SILENT_MS)
    const { done, value } = await reader.read().finally(() => clearTimeout(watchdog))
    if (done) return
    text += value
    const blocks = text.split("\n\n")
    text = blocks.pop()
    for (const block of blocks) {
      const fields = Object.fromEntries(block.split("\n").map((line) => line.split(/: (.*)/s, 2)))
      if (fields.event) onEvent(fields.event, JSON.parse(fields.data))
    }
  }
}
