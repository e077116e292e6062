// A DNS server for a test: A, AAAA and CNAME answers that the test can change between two queries,
// over UDP on loopback.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'

/** The records of a name: addresses of both families, after an optional chain of other names. */
export type Zone = Record<string, { a?: string[]; aaaa?: string[]; cname?: string; silent?: true }>

export type TestDns = {
  /** `host:port`, as `createDnsResolve` takes it. */
  server: string
  zone: Zone
  /** Queries so far, as `A name`. */
  questions: string[]
  close: () => Promise<void>
}

const types = { A: 1, CNAME: 5, AAAA: 28 } as const

/** Starts a server for the names of a zone; any other name does not exist. */
export async function startDns(zone: Zone): Promise<TestDns> {
  const questions: string[] = []
  const socket = createSocket('udp4')
  socket.on('message', (message, from) => {
    const { name, type, end } = readQuestion(message)
    questions.push(`${type === types.A ? 'A' : 'AAAA'} ${name}`)
    const records = findRecords(zone, name, type)
    if (records === 'silent') return
    const header = Buffer.from(message.subarray(0, 12))
    header.writeUInt16BE(records === null ? 0x8183 : 0x8180, 2)
    header.writeUInt16BE(records?.length ?? 0, 6)
    header.writeUInt32BE(0, 8)
    const question = message.subarray(12, end)
    socket.send(Buffer.concat([header, question, ...(records ?? [])]), from.port, from.address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return {
    server: `127.0.0.1:${socket.address().port}`,
    zone,
    questions,
    close: async () => {
      socket.close()
      await once(socket, 'close')
    },
  }
}

function readQuestion(message: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = []
  let at = 12
  for (let size = message[at]!; size > 0; size = message[at]!) {
    labels.push(message.toString('latin1', at + 1, at + 1 + size))
    at += 1 + size
  }
  return { name: labels.join('.').toLowerCase(), type: message.readUInt16BE(at + 1), end: at + 5 }
}

/** Encoded answer records; null for a name that does not exist. */
function findRecords(zone: Zone, name: string, type: number): Buffer[] | null | 'silent' {
  const records: Buffer[] = []
  for (let owner = name; ; ) {
    const entry = zone[owner]
    if (entry === undefined) return records.length === 0 ? null : records
    if (entry.silent) return 'silent'
    if (entry.cname === undefined) {
      const addresses = (type === types.A ? entry.a : entry.aaaa) ?? []
      return [...records, ...addresses.map((a) => toRecord(owner, type, toAddressBytes(a)))]
    }
    records.push(toRecord(owner, types.CNAME, toName(entry.cname)))
    owner = entry.cname
  }
}

function toRecord(owner: string, type: number, data: Buffer): Buffer {
  const fixed = Buffer.alloc(10)
  fixed.writeUInt16BE(type, 0)
  fixed.writeUInt16BE(1, 2)
  // Time to live 0: resolvers must not cache it.
  fixed.writeUInt32BE(0, 4)
  fixed.writeUInt16BE(data.length, 8)
  return Buffer.concat([toName(owner), fixed, data])
}

function toName(name: string): Buffer {
  const labels = name
    .split('.')
    .map((label) => Buffer.from(`${String.fromCharCode(label.length)}${label}`, 'latin1'))
  return Buffer.concat([...labels, Buffer.from([0])])
}

function toAddressBytes(address: string): Buffer {
  if (!address.includes(':')) return Buffer.from(address.split('.').map(Number))
  const [head = '', tail = ''] = address.split('::')
  const parse = (text: string) =>
    text === '' ? [] : text.split(':').map((g) => Number.parseInt(g, 16))
  const before = parse(head)
  const after = parse(tail)
  const groups = [
    ...before,
    ...new Array<number>(8 - before.length - after.length).fill(0),
    ...after,
  ]
  return Buffer.from(groups.flatMap((group) => [group >> 8, group & 255]))
}
