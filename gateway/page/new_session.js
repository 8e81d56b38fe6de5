// The form that opens a session: a dataset, its files by dropping or choosing, and go.

import { askedFor, dropped, likeliest, listed, matched } from "./choose.js"
import { $, bytes, el, keyed, many, say, setText } from "./dom.js"
import { DATASETS, datasetTitle, queryNumber, queryTitle } from "./words.js"

const OTHER_KINDS = /\.(gz|zst|zip|bz2|xz|7z|xlsx?|ods|parquet|feather|arrow)$/i

export class NewSession {
  /** `onStart(dataset, options, sources)` may raise what is then shown. */
  constructor(datasets, onStart) {
    this.datasets = datasets
    this.onStart = onStart
    this.found = []
    this.chosen = datasets[0]
    // By dataset: the queries whose boxes are ticked.
    this.ticked = new Map(datasets.map(({ name, queries }) => [name, new Set(queries.map(({ query }) => query))]))
    $("datasets").append(...datasets.map((dataset) => this.radio(dataset)))
    const drop = $("drop")
    drop.addEventListener("dragover", (event) => {
      event.preventDefault()
      drop.classList.add("over")
    })
    drop.addEventListener("dragleave", () => drop.classList.remove("over"))
    drop.addEventListener("drop", async (event) => {
      event.preventDefault()
      drop.classList.remove("over")
      this.add(await dropped(event.dataTransfer))
    })
    for (const kind of ["files", "folder"]) {
      $(`choose-${kind}`).addEventListener("click", () => $(kind).click())
      $(kind).addEventListener("change", () => {
        this.add(listed($(kind).files))
        $(kind).value = "" // the same choice again is a change
      })
    }
    $("new").addEventListener("submit", (event) => this.start(event))
    this.show()
  }

  radio(dataset) {
    const input = el("input", { type: "radio", name: "dataset", value: dataset.name, on: { change: () => this.choose(dataset) } })
    return el("label", { class: "dataset" }, input, el("span", {}, el("b", {}, datasetTitle(dataset.name)),
      el("small", {}, DATASETS[dataset.name]?.about ?? many(dataset.queries.length, "query", "queries"))))
  }

  box({ query }) {
    const tick = (event) => {
      const ticked = this.ticked.get(this.chosen.name)
      if (event.target.checked) ticked.add(query)
      else ticked.delete(query)
      this.show()
    }
    const input = el("input", { type: "checkbox", name: "query", value: query, on: { change: tick } })
    return { node: el("label", { class: "query-box" }, input, el("span", {}, el("b", {}, queryNumber(query)), " ", queryTitle(query))), input }
  }

  /** What of the chosen dataset is asked for. */
  get asked() {
    return askedFor(this.chosen, this.ticked.get(this.chosen.name))
  }

  choose(dataset) {
    this.chosen = dataset
    this.show()
  }

  /** Files come in any number of steps; one with the same path replaces the former. */
  add(found) {
    const paths = new Set(found.map(({ path }) => path))
    this.found = [...this.found.filter(({ path }) => !paths.has(path)), ...found]
    this.chosen = likeliest(this.found, this.datasets, this.chosen)
    this.show()
    const { sources, missing } = matched(this.found, this.asked)
    say(`${many(sources.length, "file")} of ${datasetTitle(this.chosen.name)}${missing.length ? `, ${many(missing.length, "kind")} missing` : ", complete"}`)
  }

  show() {
    const dataset = this.asked
    for (const input of $("datasets").querySelectorAll("input")) input.checked = input.value === dataset.name
    const asked = new Set(dataset.queries.map(({ query }) => query))
    keyed($("queries"), this.chosen.queries, ({ query }) => query, (query) => this.box(query),
      ({ input }, { query }) => { input.checked = asked.has(query) })
    $("options").hidden = !asked.has("movies-q5")
    setText($("wanted"), dataset.files.map((file) => (file.folder ? `${file.kind}/*.csv` : file.filename)).join(" · "))
    const { sources, notRead, strays, missing } = matched(this.found, dataset)
    const rows = this.found.length ? [
      ...sources.map(({ name, file }) => this.row("✓", name, bytes(file.size), "fits")),
      ...missing.map((kind) => this.row("○", kind.filename, "missing: its queries would wait for it", "missing")),
      ...notRead.map((path) => this.row("–", path, "stays here: no ticked query reads it", "stray")),
      ...strays.map((path) => this.row("–", path, OTHER_KINDS.test(path)
        ? "left out: a page sends plain CSV files; unpack it or save it as CSV (`cauce upload` takes .csv.gz and .csv.zst as they are)"
        : `left out: no file of ${datasetTitle(dataset.name)}, or one of its kind is there`, "stray")),
    ] : []
    $("chosen").replaceChildren(...rows)
    $("start").disabled = !sources.length || missing.length > 0
    setText($("new-note"), !asked.size ? "tick at least one query" : !this.found.length ? "" : missing.length ? `still missing: ${missing.map((kind) => kind.filename).join(", ")}`
      : `${many(sources.length, "file")}, ${bytes(sources.reduce((sum, source) => sum + source.file.size, 0))}`)
  }

  row(mark, name, about, state) {
    return el("li", { "data-state": state }, el("span", { class: "mark", "aria-hidden": "true" }, mark), el("span", { class: "file-name" }, name), el("span", { class: "hint" }, about))
  }

  async start(event) {
    event.preventDefault()
    const dataset = this.asked
    const { sources } = matched(this.found, dataset)
    $("start").disabled = true
    $("new-trouble").hidden = true
    try {
      const queries = dataset.queries.map(({ query }) => query)
      const options = {
        ...(queries.includes("movies-q5") ? { scope: $("scope").value } : {}),
        ...(queries.length < this.chosen.queries.length ? { queries } : {}),
      }
      await this.onStart(dataset, options, sources)
      this.found = []
    } catch (error) {
      setText($("new-trouble"), error.message)
      $("new-trouble").hidden = false
    }
    this.show()
  }
}
