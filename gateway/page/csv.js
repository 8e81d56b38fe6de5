// RFC 4180, as the answers are written, in pieces: a row is told once its end has been seen.

export class Rows {
  constructor() {
    this.left = ""
    this.decoder = new TextDecoder()
  }

  /** Rows that end within what has come so far. */
  add(bytes, isLast) {
    this.left += this.decoder.decode(bytes, { stream: !isLast })
    const rows = []
    let row = []
    let field = ""
    let isQuoted = false
    let kept = 0
    for (let at = 0; at < this.left.length; at += 1) {
      const sign = this.left[at]
      if (isQuoted) {
        if (sign !== '"') field += sign
        else if (this.left[at + 1] === '"') field += this.left[++at]
        else isQuoted = false
      } else if (sign === '"') isQuoted = true
      else if (sign === ",") {
        row.push(field)
        field = ""
      } else if (sign === "\n") {
        rows.push([...row, field])
        row = []
        field = ""
        kept = at + 1
      } else field += sign
    }
    this.left = this.left.slice(kept)
    return rows
  }
}

const PART = 256 << 10

/** An answer, read as far as somebody wants to see: memory grows with that, not with the answer. */
export class Answer {
  constructor(gateways, session, query) {
    this.gateways = gateways
    this.session = session
    this.query = query
    this.parser = new Rows()
    this.header = null
    this.rows = []
    this.at = 0
    this.size = null
  }

  get isWhole() {
    return this.at === this.size
  }

  async more() {
    const answer = await this.gateways.ask(`/sessions/${this.session.client_id}/answers/${this.query}`, {
      token: this.session.token,
      headers: { Range: `bytes=${this.at}-${this.at + PART - 1}` },
    })
    const bytes = new Uint8Array(await answer.arrayBuffer())
    const range = answer.headers.get("Content-Range")
    this.at += bytes.length
    this.size = range ? Number(range.split("/")[1]) : bytes.length
    const rows = this.parser.add(bytes, this.isWhole)
    if (this.header === null) this.header = rows.shift() ?? []
    this.rows.push(...rows)
  }

  async until(rows) {
    while (!this.isWhole && this.rows.length < rows) await this.more()
  }
}
