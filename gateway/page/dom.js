// The doorway to the document. Text is only ever set as text: nothing that came from a file or a gateway is markup.

const SVG = "http://www.w3.org/2000/svg"
const rows = new WeakMap() // parent → key → { node, parts }

/** An element. `on` holds listeners; what is null or false is left out; what is true is an attribute without a value. */
export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children)
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children)
}

function filled(node, { on = {}, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue
    node.setAttribute(name, value === true ? "" : String(value))
  }
  for (const [event, listener] of Object.entries(on)) node.addEventListener(event, listener)
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined))
  return node
}

export const $ = (id) => document.getElementById(id)

/** Only what changed is touched: selections and screen readers are left in peace. */
export function setText(node, text) {
  if (node.textContent !== String(text)) node.textContent = String(text)
}

export function setAttribute(node, name, value) {
  if (value === null || value === false) node.removeAttribute(name)
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, String(value))
}

/** One child for each item, made once and then kept up to date; `make` gives { node, ... }, which `update` gets. */
export function keyed(parent, items, key, make, update) {
  const known = rows.get(parent) ?? new Map()
  const wanted = new Map(items.map((item) => [key(item), item]))
  for (const [name, parts] of known) {
    if (!wanted.has(name)) {
      parts.node.remove()
      known.delete(name)
    }
  }
  let before = null
  for (const [name, item] of wanted) {
    if (!known.has(name)) known.set(name, make(item))
    const parts = known.get(name)
    const next = before ? before.nextSibling : parent.firstChild
    if (parts.node !== next) parent.insertBefore(parts.node, next)
    before = parts.node
    update(parts, item)
  }
  rows.set(parent, known)
}

/** For screen readers: what changed and is worth a word. */
export function say(text) {
  $("say").textContent = text
}

const whole = new Intl.NumberFormat("en")
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 })

export const number = (value) => whole.format(value)
export const compact = (value) => short.format(value)

export function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"]
  let unit = 0
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000
    unit += 1
  }
  return `${unit && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`
}

export function many(count, one, more = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : more}`
}
