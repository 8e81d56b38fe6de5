// Small pictures in SVG. Each says in words what it shows; no value is told by colour alone.

import { compact, el, many, svg } from "./dom.js"

const LINE = 28
const SIGN = 7.2 // width of a letter, about

/** A figure that is drawn again when its width changes. */
export function figure(title, draw) {
  const canvas = el("div", { class: "canvas", tabindex: 0, role: "group", "aria-label": `Picture: ${title}` })
  const node = el("figure", { class: "picture" }, el("figcaption", {}, title), canvas)
  let last = 0
  new ResizeObserver(([seen]) => {
    const width = Math.floor(seen.contentRect.width)
    if (width && width !== last) {
      last = width
      canvas.replaceChildren(...[draw(width)].flat())
    }
  }).observe(canvas)
  return node
}

function picture(width, height, label, ...children) {
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, children)
}

const text = (x, y, words, attributes = {}) =>
  svg("text", { x, y, "dominant-baseline": "central", ...attributes }, words)

function fitting(words, room) {
  const most = Math.max(3, Math.floor(room / SIGN))
  return words.length > most ? `${words.slice(0, most - 1)}…` : words
}

/** items: [{ label, value, shown }] */
export function bars(title, items) {
  return figure(title, (width) => {
    const most = Math.max(...items.map((item) => item.value), Number.MIN_VALUE)
    const names = Math.min(width * 0.42, Math.max(...items.map((item) => item.label.length)) * SIGN + 12)
    const values = Math.max(...items.map((item) => item.shown.length)) * SIGN + 12
    const room = Math.max(20, width - names - values)
    const lines = items.map((item, index) => {
      const y = index * LINE
      const long = Math.max(2, (item.value / most) * room)
      return svg("g", {}, svg("title", {}, `${item.label}: ${item.shown}`),
        text(names - 10, y + LINE / 2, fitting(item.label, names - 12), { "text-anchor": "end", class: "name" }),
        svg("rect", { x: names, y: y + 5, width: long, height: LINE - 10, rx: 3, class: "bar" }),
        text(names + long + 8, y + LINE / 2, item.shown, { class: "value" }))
    })
    const label = `${title}. ${items.map((item) => `${item.label} ${item.shown}`).join("; ")}`
    return picture(width, items.length * LINE, label, lines)
  })
}

/** groups: [{ label, items: [{ label, value, shown }] }]; bars of one label look alike, and each says which it is. */
export function groupedBars(title, groups) {
  return figure(title, (width) => {
    const all = groups.flatMap((group) => group.items)
    const kinds = [...new Set(all.map((item) => item.label))]
    const most = Math.max(...all.map((item) => item.value), Number.MIN_VALUE)
    const names = Math.max(...all.map((item) => item.label.length)) * SIGN + 14
    const values = Math.max(...all.map((item) => item.shown.length)) * SIGN + 12
    const room = Math.max(20, width - names - values)
    const thin = 18
    const lines = []
    let y = 0
    for (const group of groups) {
      lines.push(text(0, y + 13, group.label, { class: "group" }))
      y += 26
      for (const item of group.items) {
        const long = Math.max(2, (item.value / most) * room)
        lines.push(svg("g", {}, svg("title", {}, `${group.label}, ${item.label}: ${item.shown}`),
          text(names - 8, y + thin / 2, item.label, { "text-anchor": "end", class: "name small" }),
          svg("rect", { x: names, y: y + 2, width: long, height: thin - 4, rx: 2,
            class: kinds.length > 4 ? "bar" : `bar kind-${kinds.indexOf(item.label)}` }),
          text(names + long + 7, y + thin / 2, item.shown, { class: "value small" })))
        y += thin
      }
      y += 10
    }
    return picture(width, y, `${title}: ${many(groups.length, "group")} of ${kinds.join(", ")}; the table has the values`, lines)
  })
}

/** cells: [{ row, column, value, shown }] */
export function matrix(title, cells, rowsAre, columnsAre) {
  const rows = [...new Set(cells.map((cell) => cell.row))].sort()
  const columns = [...new Set(cells.map((cell) => cell.column))].sort()
  const values = cells.map((cell) => cell.value)
  const [least, most] = [Math.min(...values), Math.max(...values)]
  return figure(title, (width) => {
    const edge = 44
    const size = Math.min(64, Math.max(38, Math.floor((width - edge) / columns.length)))
    const tall = 30
    const drawn = cells.map((cell) => {
      const x = edge + columns.indexOf(cell.column) * size
      const y = tall + rows.indexOf(cell.row) * tall
      const step = most > least ? Math.round(((cell.value - least) / (most - least)) * 6) : 3
      return svg("g", {}, svg("title", {}, `${cell.row} to ${cell.column}: ${cell.shown}`),
        svg("rect", { x: x + 1, y: y + 1, width: size - 2, height: tall - 2, rx: 3, class: `cell step-${step}` }),
        text(x + size / 2, y + tall / 2, compact(Math.round(cell.value)),
          { "text-anchor": "middle", class: `in-cell on-${step}` }))
    })
    const tops = columns.map((name, index) =>
      text(edge + index * size + size / 2, tall / 2, name, { "text-anchor": "middle", class: "name small" }))
    const sides = rows.map((name, index) =>
      text(edge - 8, tall + index * tall + tall / 2, name, { "text-anchor": "end", class: "name small" }))
    const wide = edge + columns.length * size
    const label = `${title}: ${many(rows.length, rowsAre)} by ${many(columns.length, columnsAre)}; the table has the values`
    return picture(wide, tall * (rows.length + 1), label, tops, sides, drawn)
  })
}

/** How often values fall between round borders. */
export function histogram(title, all, unit) {
  const values = all.filter(Number.isFinite)
  if (!values.length) return null
  const [least, most] = values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity])
  const step = roundStep((most - least) / 16)
  const first = Math.floor(least / step) * step
  const counts = new Array(Math.floor((most - first) / step) + 1).fill(0)
  for (const value of values) counts[Math.floor((value - first) / step)] += 1
  return figure(title, (width) => {
    const [edge, foot, height] = [46, 40, 240]
    const tallest = Math.max(...counts)
    const room = (width - edge - 8) / counts.length
    const up = (count) => (count / tallest) * (height - foot - 16)
    const drawn = counts.map((count, index) => {
      const from = first + index * step
      return svg("g", {}, svg("title", {}, `${compact(from)} to ${compact(from + step)} ${unit}: ${many(count, "row")}`),
        svg("rect", { x: edge + index * room + 1, y: height - foot - up(count), width: Math.max(1, room - 2),
          height: up(count), rx: 2, class: "bar" }))
    })
    const every = Math.ceil(52 / room)
    const below = counts.map((_, index) => (index % every ? null
      : text(edge + index * room, height - foot + 14, compact(first + index * step), { class: "name small", "text-anchor": "middle" })))
    const levels = [0.5, 1].map((part) => [
      svg("line", { x1: edge, x2: width, y1: height - foot - up(tallest * part), y2: height - foot - up(tallest * part), class: "level" }),
      text(edge - 8, height - foot - up(tallest * part), compact(Math.round(tallest * part)), { "text-anchor": "end", class: "name small" }),
    ]).flat()
    const axis = text(edge + (width - edge) / 2, height - 8, unit, { "text-anchor": "middle", class: "name small" })
    const peak = first + counts.indexOf(tallest) * step
    const label = `${title}: from ${compact(least)} to ${compact(most)}, most between ${compact(peak)} and ${compact(peak + step)}`
    return picture(width, height, label, levels, drawn, below, axis)
  })
}

function roundStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough || 1))
  return [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((step) => step >= rough)
}

/** The last minutes of a value, no axes: the number beside it says how much. */
export function sparkline(values, label) {
  const [width, height] = [120, 28]
  const most = Math.max(...values, Number.MIN_VALUE)
  const points = values.map((value, index) =>
    `${((index / Math.max(1, values.length - 1)) * width).toFixed(1)},${(height - 2 - (value / most) * (height - 4)).toFixed(1)}`)
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", class: "spark", role: "img", "aria-label": label },
    svg("polyline", { points: points.join(" ") }))
}
