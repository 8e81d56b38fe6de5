// The form that opens a session: a dataset, its files by dropping or choosing, and go.

import { dropped, likeliest, listed, matched } from "./choose.js"
import { $, bytes, el, many, say, setText } from "./dom.js"
import { DATASETS, datasetTitle } from "./words.js"

export class NewSession {
  /** `onStart(dataset, options, sources)` may raise what is then shown. */
  constructor(datasets, onStart) {
    this.datasets = datasets
    this.onStart = onStart
    this.found = []
    this.chosen = datasets[0]
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
    const { sources, missing } = matched(this.found, this.chosen)
    say(`${many(sources.length, "file")} of ${datasetTitle(this.chosen.name)}${missing.length ? `, ${many(missing.length, "kind")} missing` : ", complete"}`)
  }

  show() {
    const dataset = this.chosen
    for (const input of $("datasets").querySelectorAll("input")) input.checked = input.value === dataset.name
    $("options").hidden = dataset.name !== "movies"
    setText($("wanted"), dataset.files.map((file) => (file.folder ? `${file.kind}/*.csv` : file.filename)).join(" · "))
    const { sources, strays, missing } = matched(this.found, dataset)
    const rows = this.found.length ? [
      ...sources.map(({ name, file }) => this.row("✓", name, bytes(file.size), "fits")),
      ...missing.map((kind) => this.row("○", kind.filename, "missing: its queries would wait for it", "missing")),
      ...strays.map((path) => this.row("–", path, `left out: no file of ${datasetTitle(dataset.name)}, or one of its kind is there`, "stray")),
    ] : []
    $("chosen").replaceChildren(...rows)
    $("start").disabled = !sources.length || missing.length > 0
    setText($("new-note"), !this.found.length ? "" : missing.length ? `still missing: ${missing.map((kind) => kind.filename).join(", ")}`
      : `${many(sources.length, "file")}, ${bytes(sources.reduce((sum, source) => sum + source.file.size, 0))}`)
  }

  row(mark, name, about, state) {
    return el("li", { "data-state": state }, el("span", { class: "mark", "aria-hidden": "true" }, mark), el("span", { class: "file-name" }, name), el("span", { class: "hint" }, about))
  }

  async start(event) {
    event.preventDefault()
    const { sources } = matched(this.found, this.chosen)
    $("start").disabled = true
    $("new-trouble").hidden = true
    try {
      const options = this.chosen.name === "movies" ? { scope: $("scope").value } : {}
      await this.onStart(this.chosen, options, sources)
      this.found = []
    } catch (error) {
      setText($("new-trouble"), error.message)
      $("new-trouble").hidden = false
    }
    this.show()
  }
}
