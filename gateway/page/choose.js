// Which of the files that somebody dropped or chose are which kind of a dataset's files.

/** All files of a drop, folders walked through: [{ path, file }]. Has to be called within the event. */
export async function dropped(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean)
  if (!entries.length) return listed(transfer.files)
  return (await Promise.all(entries.map((entry) => walked(entry, entry.name)))).flat()
}

/** Those of an input. */
export const listed = (files) => [...files].map((file) => ({ path: file.webkitRelativePath || file.name, file }))

async function walked(entry, path) {
  if (entry.isFile) return [{ path, file: await new Promise((done, fail) => entry.file(done, fail)) }]
  const reader = entry.createReader()
  const found = []
  for (;;) {
    const some = await new Promise((done, fail) => reader.readEntries(done, fail)) // a hundred at most
    if (!some.length) break
    found.push(...some)
  }
  return (await Promise.all(found.map((each) => walked(each, `${path}/${each.name}`)))).flat()
}

/** The kind of file that a path tells: its name, the folder it lies in, or how its name begins. */
export function kindOf(path, kinds) {
  const parts = path.split("/")
  const name = parts.at(-1)
  if (!name.toLowerCase().endsWith(".csv")) return null
  const folders = parts.slice(0, -1).reverse()
  const stem = (kind) => kind.filename.replace(/\.csv$/, "")
  return (
    kinds.find((kind) => kind.filename === name) ??
    folders.map((folder) => kinds.find((kind) => [kind.kind, kind.filename, stem(kind)].includes(folder))).find(Boolean) ??
    [...kinds].sort((a, b) => b.kind.length - a.kind.length).find((kind) => name.startsWith(kind.kind)) ??
    null
  )
}

/** The part of a dataset that these queries are about; `notRead` are the kinds of files that none of them reads. */
export function askedFor(dataset, queries) {
  const asked = dataset.queries.filter(({ query }) => queries.has(query))
  const needed = new Set(asked.flatMap(({ files }) => files))
  const files = dataset.files.filter(({ kind }) => needed.has(kind))
    .map((file) => ({ ...file, after: file.after.filter((kind) => needed.has(kind)) }))
  return { ...dataset, queries: asked, files, notRead: dataset.files.filter(({ kind }) => !needed.has(kind)) }
}

/** { sources: [{ kind, name, file }], notRead: [path], strays: [path], missing: [kind] } */
export function matched(found, dataset) {
  const sources = []
  const strays = []
  const notRead = []
  for (const { path, file } of found) {
    const kind = kindOf(path, [...dataset.files, ...(dataset.notRead ?? [])])
    const taken = kind && !kind.folder && sources.some((source) => source.kind === kind)
    if (dataset.notRead?.includes(kind)) notRead.push(path)
    else if (!kind || taken) strays.push(path)
    else sources.push({ kind, name: kind.folder ? `${kind.kind}/${file.name}` : kind.filename, file })
  }
  const missing = dataset.files.filter((kind) => !sources.some((source) => source.kind === kind))
  return { sources, notRead, strays, missing }
}

/** The dataset that most of the files belong to. */
export function likeliest(found, datasets, chosen) {
  const fits = (dataset) => dataset.files.length - matched(found, dataset).missing.length
  return datasets.reduce((best, each) => (fits(each) > fits(best) ? each : best), chosen)
}
