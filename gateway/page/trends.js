// Rates from counters: what grew between two looks. A process that was started again counts from nothing, not backwards.

const WINDOW = 5 // looks that a rate spans
const KEPT = 120

export class Trends {
  constructor() {
    this.counters = new Map() // process → [{ at, commits, commit_seconds, rows }]
    this.totals = [] // { lag, commits, latency, rows }
  }

  add(now, processes) {
    const names = new Set()
    for (const process of processes) {
      const name = `${process.role}-${process.index}`
      names.add(name)
      const looks = this.counters.get(name) ?? []
      if (process.commits !== null && process.commits !== undefined) {
        if (looks.length && process.commits < looks.at(-1).commits) looks.length = 0
        looks.push({ at: now.at, commits: process.commits, commit_seconds: process.commit_seconds ?? 0, rows: process.rows ?? 0 })
      }
      this.counters.set(name, looks.slice(-WINDOW - 1))
    }
    for (const name of this.counters.keys()) if (!names.has(name)) this.counters.delete(name)
    this.totals.push(this.total(processes))
    this.totals = this.totals.slice(-KEPT)
  }

  rateOf({ role, index }) {
    const looks = this.counters.get(`${role}-${index}`) ?? []
    const [first, last] = [looks[0], looks.at(-1)]
    if (looks.length < 2 || last.at <= first.at) return null
    const [seconds, commits] = [last.at - first.at, last.commits - first.commits]
    return {
      commits: commits / seconds,
      latency: commits ? ((last.commit_seconds - first.commit_seconds) / commits) * 1000 : 0,
      rows: (last.rows - first.rows) / seconds,
    }
  }

  total(processes) {
    const workers = processes.filter((process) => process.role === "worker")
    const rates = workers.map((process) => this.rateOf(process)).filter(Boolean)
    const commits = rates.reduce((sum, rate) => sum + rate.commits, 0)
    const gateways = processes.filter((process) => process.role === "gateway").map((process) => this.rateOf(process)).filter(Boolean)
    return {
      lag: workers.reduce((sum, process) => sum + (process.lag ?? 0), 0),
      commits,
      latency: commits ? rates.reduce((sum, rate) => sum + rate.latency * rate.commits, 0) / commits : 0,
      rows: gateways.reduce((sum, rate) => sum + rate.rows, 0),
    }
  }

  of(name) {
    return this.totals.map((total) => total[name])
  }

  last(name) {
    return this.totals.at(-1)?.[name] ?? 0
  }
}
