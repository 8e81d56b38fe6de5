// What outlives a reload. Tokens are kept for this tab only (sessionStorage): closing it forgets them.

const SESSIONS = "cauce.sessions"
const OPERATOR = "cauce.operator"

function read(key, otherwise) {
  try {
    return JSON.parse(sessionStorage.getItem(key)) ?? otherwise
  } catch {
    return otherwise
  }
}

function write(key, value) {
  try {
    if (value === null) sessionStorage.removeItem(key)
    else sessionStorage.setItem(key, JSON.stringify(value))
  } catch {
    // no storage: it lasts until the page is left
  }
}

/** [{ client_id, token, dataset, queries: [name], plan: [{ kind, name, length }] }], newest first. */
export const sessions = () => read(SESSIONS, [])

export function keepSession(session) {
  write(SESSIONS, [session, ...sessions().filter((kept) => kept.client_id !== session.client_id)])
}

export function dropSession(clientId) {
  write(SESSIONS, sessions().filter((kept) => kept.client_id !== clientId))
}

export const operatorToken = () => read(OPERATOR, null)
export const keepOperatorToken = (token) => write(OPERATOR, token)
