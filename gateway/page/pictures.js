// Which picture tells an answer best. A query that is not named here gets bars of its first number, if that says something.

import { bars, groupedBars, histogram, matrix } from "./charts.js"
import { el, number } from "./dom.js"

const FEW = 40
const money = (text) => number(Number(text))
const rounded = (text) => (Number.isInteger(Number(text)) ? number(Number(text)) : Number(text).toFixed(2))

const bar = (title, label, value, shown = rounded) => (rows) =>
  bars(title, rows.map((row) => ({ label: row[label], value: Number(row[value]), shown: shown(row[value]) })))

/** A store that the list of stores does not know has an id and no name. */
function byStore(title, label, value) {
  const items = (rows) => rows.map((row) => ({ label: label(row), value: Number(row[value]), shown: rounded(row[value]) }))
  return (rows) => groupedBars(title, [...Map.groupBy(rows, (row) => row.store_id)].map(([id, some]) =>
    ({ label: some[0].store_name || `store ${id}`, items: items(some) })))
}

const spread = (title, value, unit) => (rows) => histogram(title, rows.map((row) => Number(row[value])), unit)

function routes(title) {
  return (rows) => matrix(title, rows.map((row) => {
    const [from, to] = row.route.split("-")
    return { row: from, column: to, value: Number(row.mean_fare), shown: `mean ${rounded(row.mean_fare)}, highest ${row.max_fare}` }
  }), "origin", "destination")
}

const monthly = (rows, best, title) => bars(title, rows.filter((row) => row.best === best).map((row) =>
  ({ label: `${row.month} ${row.item_name || `item ${row.item_id}`}`, value: Number(row.value), shown: rounded(row.value) })))

const hours = (duration) => {
  const [, days = 0, hour = 0, minutes = 0] = duration.match(/^P(?:(\d+)D)?T(?:(\d+)H)?(?:(\d+)M)?$/) ?? []
  return Number(days) * 24 + Number(hour) + Number(minutes) / 60
}

const PICTURES = {
  "movies-q2": bar("Budget of films that a country made alone", "country", "budget", money),
  "movies-q3": (rows) => bars("Mean rating, of 5", rows.map((row) =>
    ({ label: `${row.extreme}: ${row.title}`, value: Number(row.mean_rating), shown: rounded(row.mean_rating) }))),
  "movies-q4": bar("Appearances", "actor", "appearances"),
  "movies-q5": (rows) => bars("Mean of revenue divided by budget", rows.map((row) =>
    ({ label: `${row.label} (${number(Number(row.films))} films)`, value: Number(row.mean_rate), shown: rounded(row.mean_rate) }))),
  "flights-q1": spread("Total fares of these flights", "total_fare", "fare in dollars"),
  "flights-q2": spread("Distances of these flights", "travel_distance", "miles"),
  "flights-q3": (rows) => histogram("Durations of these flights", rows.map((row) => hours(row.duration)), "hours"),
  "flights-q4": routes("Mean fare in dollars, from the row's airport to the column's"),
  "flights-q5": (rows) => bars("Most frequent base fare, and how many flights have it", rows.map((row) =>
    ({ label: `${row.airport} · ${row.base_fare}`, value: Number(row.flights), shown: number(Number(row.flights)) }))),
  "coffee-q1": spread("Amounts of these purchases", "final_amount", "amount"),
  "coffee-q2": (rows) => el("div", { class: "pictures" }, monthly(rows, "quantity", "Most sold, pieces"),
    monthly(rows, "revenue", "Most earned")),
  "coffee-q3": byStore("Revenue by half-year", (row) => row.half, "revenue"),
  "coffee-q4": byStore("Purchases of the most frequent customers", (row) => `user ${row.user_id}`, "purchases"),
}

/** A figure, or null where rows say more than a picture would. */
export function pictureOf(query, header, rows) {
  if (!rows.length) return null
  const named = rows.map((row) => Object.fromEntries(header.map((name, index) => [name, row[index]])))
  if (PICTURES[query]) return PICTURES[query](named)
  const value = header.findIndex((_, index) => index > 0 && rows.every((row) => row[index] !== "" && !Number.isNaN(Number(row[index]))))
  return value > 0 && rows.length <= FEW ? bar(header[value], header[0], header[value])(named) : null
}
