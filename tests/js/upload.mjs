// Sends a file with tus-js-client, in small pieces: node upload.mjs ENDPOINT TOKEN FILE
// It stops after the first piece and goes on as another program would, from what the gateway says.
import { createReadStream, statSync } from "node:fs"
import { basename } from "node:path"
import { Upload } from "tus-js-client"

const [endpoint, token, path] = process.argv.slice(2)
const options = {
  endpoint,
  uploadSize: statSync(path).size,
  chunkSize: 10_000,
  headers: { Authorization: `Bearer ${token}` },
  metadata: { filename: basename(path) },
  retryDelays: [],
}

function send(more) {
  return new Promise((done, fail) => {
    const upload = new Upload(createReadStream(path), {
      ...options,
      ...more,
      onError: fail,
      onSuccess: () => done(upload.url),
      onChunkComplete: () => {
        if (more.onlyOne) {
          upload.abort()
          done(upload.url)
        }
      },
    })
    upload.start()
  })
}

const url = await send({ onlyOne: true })
console.log(await send({ uploadUrl: url }))
