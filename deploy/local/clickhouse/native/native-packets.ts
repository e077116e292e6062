// The packets of ClickHouse's native protocol that an analyst's client and the proxy exchange. Of a
// query only its text, settings and parameters are kept: what a client says of itself means
// nothing.

import type { Refusal } from '../analyst-request.ts'
import { NativeProtocolError, type NativeReader, toText, toVarint } from './native-reader.ts'

/** Numbers of packets that a client sends. */
export const clientPackets = { hello: 0, query: 1, data: 2, cancel: 3, ping: 4 } as const

const serverPackets = { hello: 0, data: 1, exception: 2, pong: 4, endOfStream: 5 } as const

/** The newest revision that is spoken here. Newer clients speak it too, as agreed at the greeting. */
export const newestRevision = 54_460
/** The oldest: older clients do not know LowCardinality. */
export const oldestRevision = 54_405

/** From which revision on a packet has a field. */
const since = {
  settingsAsText: 54_429,
  interserverSecret: 54_441,
  trace: 54_442,
  distributedDepth: 54_448,
  startTime: 54_449,
  parallelReplicas: 54_453,
  serialization: 54_454,
  addendum: 54_458,
  parameters: 54_459,
}

const nameBytesMax = 1_024
const valueBytesMax = 64 * 1_024
/** As much as is read of a body over HTTP; less is run. */
const queryBytesMax = 1_024 * 1_024
const settingsMax = 64

export type ClientHello = {
  name: string
  revision: number
  database: string
  user: string
  password: string
}

/** Reads the greeting of a client. */
export async function readClientHello(from: NativeReader): Promise<ClientHello> {
  if ((await from.varint()) !== clientPackets.hello) throw new NativeProtocolError('no greeting')
  const name = await from.text(nameBytesMax)
  await from.varint()
  await from.varint()
  return {
    name,
    revision: await from.varint(),
    database: await from.text(nameBytesMax),
    user: await from.text(nameBytesMax),
    password: await from.text(nameBytesMax),
  }
}

/** The greeting of a server of the engine's version. */
export function encodeServerHello(revision: number): Buffer {
  return Buffer.concat([
    toVarint(serverPackets.hello),
    toText('ClickHouse'),
    ...[26, 7, revision].map(toVarint),
    ...['UTC', 'local stack'].map(toText),
    toVarint(0),
  ])
}

/** After the greeting a client may send a quota key, which means nothing here. */
export async function skipAddendum(from: NativeReader, revision: number): Promise<void> {
  if (revision >= since.addendum) await from.text(nameBytesMax)
}

export type NativeQuery = {
  text: string
  settings: [name: string, value: string][]
  /** Values as the client quotes them. */
  parameters: [name: string, value: string][]
  isCompressed: boolean
}

/** Reads a query after its packet's number. */
export async function readQuery(from: NativeReader, revision: number): Promise<NativeQuery> {
  await from.text(nameBytesMax)
  await skipClientInfo(from, revision)
  const settings = await readSettings(from, revision)
  if (revision >= since.interserverSecret) await from.text(nameBytesMax)
  await from.varint()
  const isCompressed = (await from.varint()) !== 0
  const text = await from.text(queryBytesMax)
  const parameters = revision >= since.parameters ? await readSettings(from, revision) : []
  return { text, settings, parameters, isCompressed }
}

const noQueryKind = 0
const interfaceTcp = 1

async function skipClientInfo(from: NativeReader, revision: number): Promise<void> {
  if ((await from.uint8()) === noQueryKind) return
  for (const _ of ['user', 'query id', 'address']) await from.text(nameBytesMax)
  if (revision >= since.startTime) await from.bytes(8)
  if ((await from.uint8()) !== interfaceTcp) throw new NativeProtocolError('no native client')
  for (const _ of ['system user', 'host', 'client']) await from.text(nameBytesMax)
  for (const _ of ['major', 'minor', 'revision']) await from.varint()
  await from.text(nameBytesMax)
  if (revision >= since.distributedDepth) await from.varint()
  await from.varint()
  if (revision >= since.trace && (await from.uint8()) !== 0) {
    await from.bytes(24)
    await from.text(nameBytesMax)
    await from.uint8()
  }
  if (revision < since.parallelReplicas) return
  for (const _ of ['collaborates', 'count', 'number']) await from.varint()
}

async function readSettings(from: NativeReader, revision: number): Promise<[string, string][]> {
  const settings: [string, string][] = []
  for (;;) {
    const name = await from.text(nameBytesMax)
    if (name === '') return settings
    // The form of the value depends on the setting.
    if (revision < since.settingsAsText) throw new NativeProtocolError(`the setting ${name}`)
    await from.varint()
    settings.push([name, await from.text(valueBytesMax)])
    if (settings.length > settingsMax) throw new NativeProtocolError('too many settings')
  }
}

/** Reads the empty block with which a client ends its tables. A table of its own is refused. */
export async function readNoData(from: NativeReader): Promise<void> {
  if ((await from.text(nameBytesMax)) !== '') throw new NativeProtocolError('no tables of clients')
  await readEmptyBlock(from)
}

async function readEmptyBlock(from: NativeReader): Promise<void> {
  for (;;) {
    const field = await from.varint()
    if (field === 0) break
    if (field === 1) await from.uint8()
    else if (field === 2) await from.bytes(4)
    else throw new NativeProtocolError('an unknown field of a block')
  }
  const [columns, rows] = [await from.varint(), await from.varint()]
  if (columns !== 0 || rows !== 0) throw new NativeProtocolError('no data of clients')
}

/** Whether the blocks of this revision have a byte for each column's serialization. */
export const hasSerializationFlags = (revision: number): boolean => revision >= since.serialization

/** An answer of these blocks, to its end. */
export function encodeAnswer(blocks: readonly Buffer[]): Buffer[] {
  const start = Buffer.concat([toVarint(serverPackets.data), toText('')])
  return [...blocks.flatMap((block) => [start, block]), encodePacket('endOfStream')]
}

export const encodePacket = (kind: 'endOfStream' | 'pong'): Buffer => toVarint(serverPackets[kind])

export function encodeException({ code, name, text }: Refusal): Buffer {
  const number = Buffer.alloc(4)
  number.writeInt32LE(code)
  const message = `DB::Exception: ${text}. (${name})`
  return Buffer.concat([
    toVarint(serverPackets.exception),
    number,
    ...['DB::Exception', message, ''].map(toText),
    Buffer.of(0),
  ])
}
