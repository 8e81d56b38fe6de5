// tus 1.0 by our own means, for where tus-js-client was not installed: pieces of a file, each after the last was taken.

import { Refusal } from "./net.js"

const PIECE = 8 << 20

/** Send `file` from where the upload is to its end. */
export async function sendPlainly(url, file, token) {
  const headers = { Authorization: `Bearer ${token}`, "Tus-Resumable": "1.0.0" }
  let offset = await offsetOf(await checked(fetch(url, { method: "HEAD", headers })))
  while (offset < file.size) {
    const body = file.slice(offset, offset + PIECE)
    const about = { ...headers, "Content-Type": "application/offset+octet-stream", "Upload-Offset": String(offset) }
    offset = await offsetOf(await checked(fetch(url, { method: "PATCH", headers: about, body })))
  }
}

async function checked(asked) {
  const answer = await asked.catch((error) => {
    throw new Refusal(0, { detail: error.message })
  })
  if (!answer.ok) throw new Refusal(answer.status, await answer.json().catch(() => ({})))
  return answer
}

async function offsetOf(answer) {
  return Number(answer.headers.get("Upload-Offset"))
}
