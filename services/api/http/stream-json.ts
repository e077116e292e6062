/**
 * Streams a JSON object with long lists in chunks: the event loop serves other requests between two
 * chunks, and a slow reader keeps at most one chunk of text in memory.
 */
import { Readable } from 'node:stream'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'

/** A list, and what an item of it becomes in JSON. */
type JsonList = { items: readonly unknown[]; toItem: (item: never) => unknown }

/** Items per chunk: sessions are some 60 KB, which take a millisecond to serialize. */
const itemsPerPiece = 200

/**
 * Streams `{...fields, ...lists}` as JSON.
 * @param fields the small members
 * @param lists the long lists, by name
 */
export function streamJson(fields: object, lists: Record<string, JsonList>): Readable {
  return Readable.from(writePieces(fields, lists), { objectMode: false, highWaterMark: 64 * 1024 })
}

async function* writePieces(
  fields: object,
  lists: Record<string, JsonList>,
): AsyncGenerator<string> {
  yield JSON.stringify(fields).slice(0, -1)
  for (const [name, { items, toItem }] of Object.entries(lists)) {
    yield `,${JSON.stringify(name)}:[`
    for (let at = 0; at < items.length; at += itemsPerPiece) {
      await yieldToEventLoop()
      const piece = items.slice(at, at + itemsPerPiece).map((item) => toItem(item as never))
      yield `${at === 0 ? '' : ','}${JSON.stringify(piece).slice(1, -1)}`
    }
    yield ']'
  }
  yield '}'
}
