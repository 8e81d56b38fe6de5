// One answer: a picture, its rows by the page, and all of it as a file.

import { Answer } from "./csv.js"
import { bytes, el, number, say, setText } from "./dom.js"
import { pictureOf } from "./pictures.js"
import { queryTitle } from "./words.js"

const PAGE = 12
const PICTURED = 20_000 // rows that a picture is made of at most

export class AnswerView {
  constructor(gateways, session, query) {
    this.gateways = gateways
    this.session = session
    this.query = query
    this.answer = new Answer(gateways, session, query)
    this.page = 0
    this.status = el("p", { class: "hint", role: "status" }, "Loading…")
    this.place = el("div", { class: "picture-place" })
    this.body = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Rows of ${query}` })
    this.previous = el("button", { type: "button", class: "quiet", on: { click: () => this.turn(-1) } }, "Previous")
    this.next = el("button", { type: "button", class: "quiet", on: { click: () => this.turn(1) } }, "Next")
    this.where = el("span", { class: "hint", role: "status" })
    this.download = el("a", { class: "button", href: `/sessions/${session.client_id}/answers/${query}`,
      download: `${query}.csv`, on: { click: (event) => this.save(event) } }, `Download ${query}.csv`)
    this.pager = el("div", { class: "row" }, this.previous, this.next, this.where)
    this.node = el("section", { class: "answer", "aria-labelledby": `title-${session.client_id}-${query}` },
      el("div", { class: "row spread" },
        el("h4", { id: `title-${session.client_id}-${query}`, tabindex: -1 }, queryTitle(query)), this.download),
      this.status, this.place, this.body, this.pager)
    this.load()
  }

  async load() {
    try {
      await this.answer.more()
      this.show()
      await this.answer.until(PICTURED)
      const rows = this.answer.rows.slice(0, PICTURED)
      const picture = pictureOf(this.query, this.answer.header, rows)
      if (picture) this.place.append(picture)
      const isPart = !this.answer.isWhole || rows.length < this.answer.rows.length
      setText(this.status, [
        this.answer.isWhole ? `${number(this.answer.rows.length)} ${this.answer.rows.length === 1 ? "row" : "rows"}` : "",
        bytes(this.answer.size),
        isPart && picture ? `the picture shows the first ${number(rows.length)} rows` : "",
      ].filter(Boolean).join(" · "))
      this.show()
    } catch (error) {
      setText(this.status, `The answer could not be loaded: ${error.message}`)
    }
  }

  async turn(by) {
    this.page += by
    await this.answer.until((this.page + 1) * PAGE)
    this.show()
  }

  show() {
    const { header, rows, isWhole } = this.answer
    const first = this.page * PAGE
    const shown = rows.slice(first, first + PAGE)
    const numeric = header.map((_, index) => shown.length > 0 && shown.every((row) => isNumber(row[index])))
    const cells = (row) => row.map((value, index) => el("td", { class: numeric[index] ? "number" : null }, value))
    this.body.replaceChildren(el("table", {},
      el("caption", { class: "unseen" }, `Rows ${first + 1} to ${first + shown.length} of ${this.query}`),
      el("thead", {}, el("tr", {}, header.map((name, index) =>
        el("th", { scope: "col", class: numeric[index] ? "number" : null }, name.replaceAll("_", " "))))),
      el("tbody", {}, shown.map((row) => el("tr", {}, cells(row))))))
    this.previous.disabled = this.page === 0
    this.next.disabled = isWhole && first + PAGE >= rows.length
    this.pager.hidden = isWhole && rows.length <= PAGE
    setText(this.where, shown.length ? `rows ${number(first + 1)} to ${number(first + shown.length)}${isWhole ? ` of ${number(rows.length)}` : ""}` : "no rows")
  }

  /** The browser itself saves the file, of any size: it gets an address that is good for a minute, without the token. */
  async save(event) {
    event.preventDefault()
    try {
      const { client_id: id, token } = this.session
      const { href } = await this.gateways.json(`/sessions/${id}/answers/${this.query}/ticket`, { method: "POST", token })
      const link = el("a", { href: this.gateways.current + href, download: `${this.query}.csv` })
      link.click()
      say(`${this.query}.csv is being downloaded`)
    } catch (error) {
      setText(this.status, `The download did not begin: ${error.message}`)
    }
  }
}

/** To be set to the right; what has this many digits is an id. */
const isNumber = (text) => /^-?[0-9.]{1,20}(e[+-]?[0-9]+)?$/.test(text)
