// One file to the gateways: created, sent, resumed at whichever gateway answers, from the byte that was committed.

import { Refusal, isPassing, wait } from "./net.js"
import { sendPlainly } from "./plain_tus.js"

const GIVE_UP_MS = 300_000 // without progress, as the command line does

/** Done when all of the file was taken; raises the Refusal of a file that is not. `isAlive` may end it early. */
export async function send(gateways, session, source, isAlive) {
  const path = await created(gateways, session, source)
  let since = Date.now()
  let reached = -1
  for (let failures = 0; ; failures += 1) {
    const gateway = gateways.current
    try {
      await (globalThis.tus ? sendByLibrary : sendPlainly)(gateway + path, source.file, session.token)
      return
    } catch (error) {
      const offset = session.offsets?.get(source.name) ?? 0
      if (offset > reached) [since, reached, failures] = [Date.now(), offset, 0]
      const mayPass = error instanceof Refusal && (isPassing(error.status) || error.status === 409)
      if (!mayPass || !isAlive() || Date.now() - since > GIVE_UP_MS) throw error
      gateways.leave(gateway)
      await wait(Math.min(3000, 150 * 2 ** failures))
    }
  }
}

/** The same file gives the same upload, so this is also how one is found again. */
async function created(gateways, session, source) {
  const metadata = { filename: source.name, kind: source.kind.kind, ...(await identity(source.file)) }
  const answer = await gateways.ask(`/sessions/${session.client_id}/uploads`, {
    method: "POST",
    token: session.token,
    headers: {
      "Tus-Resumable": "1.0.0",
      "Upload-Length": String(source.file.size),
      "Upload-Metadata": Object.entries(metadata).map(([name, text]) => `${name} ${base64(text)}`).join(","),
    },
  })
  return new URL(answer.headers.get("Location"), location.origin).pathname
}

const END_BYTES = 64 << 10

/** What tells a file from another of the same name. A page that was not loaded safely has no checksums: then its time. */
async function identity(file) {
  const about = { size: String(file.size), mtime: String(file.lastModified) }
  if (!globalThis.crypto?.subtle) return about
  const ends = file.size <= 2 * END_BYTES ? file : new Blob([file.slice(0, END_BYTES), file.slice(-END_BYTES)])
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", await ends.arrayBuffer()))
  return { ...about, fingerprint: [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("") }
}

const base64 = (text) => btoa(String.fromCodePoint(...new TextEncoder().encode(text)))

function sendByLibrary(uploadUrl, file, token) {
  return new Promise((done, fail) => {
    const upload = new globalThis.tus.Upload(file, {
      uploadUrl,
      headers: { Authorization: `Bearer ${token}` },
      retryDelays: null, // another gateway may answer sooner: that is our business
      storeFingerprintForResuming: false,
      onSuccess: () => done(),
      onError: (error) => fail(refusalOf(error)),
    })
    upload.start()
  })
}

function refusalOf(error) {
  const answer = error.originalResponse
  if (!answer) return new Refusal(0, { detail: error.message })
  try {
    return new Refusal(answer.getStatus(), JSON.parse(answer.getBody()))
  } catch {
    return new Refusal(answer.getStatus(), { detail: error.message })
  }
}
