// How datasets and queries are called for people. One that is not here goes by its own name.

export const DATASETS = {
  movies: { title: "Films", about: "ratings, budgets, casts" },
  flights: { title: "Flights", about: "itineraries and fares" },
  coffee: { title: "Coffee shops", about: "sales, stores, customers" },
}

export const QUERIES = {
  "movies-q1": "Films by Argentina and Spain together, 2000 to 2009",
  "movies-q2": "Five largest budgets of countries that filmed alone",
  "movies-q3": "Best and worst rated Argentine films since 2000",
  "movies-q4": "Ten actors most often in Argentine films since 2000",
  "movies-q5": "Revenue for each unit of budget, by mood of the plot",
  "flights-q1": "Flights with three or more stopovers",
  "flights-q2": "Flights over four times the direct distance",
  "flights-q3": "Two fastest flights of each route with three stopovers",
  "flights-q4": "Fares of each route, of flights above the mean",
  "flights-q5": "Most frequent base fare of each airport",
  "coffee-q1": "Purchases of 75 and more, 2024 and 2025",
  "coffee-q2": "Best items of each month",
  "coffee-q3": "Revenue of each store by half-year",
  "coffee-q4": "Most faithful customers of each store",
}

export const datasetTitle = (name) => DATASETS[name]?.title ?? name
export const queryTitle = (name) => QUERIES[name] ?? name
export const queryNumber = (name) => name.match(/q(\d+)$/)?.[1] ?? "?"
