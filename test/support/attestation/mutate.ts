/**
 * Changes to evidence, as someone makes them who wants it accepted: flipped bits, exchanged pieces,
 * pieces of other evidence, bytes cut off, put in or appended.
 */
import { decode } from 'cbor2'
import type { Random } from '../../../deploy/fleet/phones/random.ts'
import type { AttestationVector, VectorKind } from './vectors.ts'

type Change = (bytes: Buffer, random: Random, other: Buffer) => Buffer

const pick = (random: Random, length: number): number => Math.floor(random.next() * length)

const pickRange = (random: Random, bytes: Buffer): [start: number, end: number] => {
  const start = pick(random, bytes.length)
  return [start, start + 1 + pick(random, Math.min(64, bytes.length - start))]
}

const insert = (bytes: Buffer, place: number, piece: Uint8Array): Buffer =>
  Buffer.concat([bytes.subarray(0, place), piece, bytes.subarray(place)])

const changes: Record<string, Change> = {
  'a bit': (bytes, random) => {
    const changed = Buffer.from(bytes)
    changed[pick(random, bytes.length)]! ^= 1 << pick(random, 8)
    return changed
  },
  'a byte': (bytes, random) => {
    const changed = Buffer.from(bytes)
    changed[pick(random, bytes.length)] = pick(random, 256)
    return changed
  },
  'two bytes exchanged': (bytes, random) => {
    const changed = Buffer.from(bytes)
    const [left, right] = [pick(random, bytes.length), pick(random, bytes.length)]
    changed[left] = bytes[right]!
    changed[right] = bytes[left]!
    return changed
  },
  'a piece copied': (bytes, random) => {
    const changed = Buffer.from(bytes)
    const [start, end] = pickRange(random, bytes)
    bytes.copy(changed, pick(random, bytes.length), start, end)
    return changed
  },
  'a piece of other evidence': (bytes, random, other) => {
    const changed = Buffer.from(bytes)
    const [start, end] = pickRange(random, other)
    other.copy(changed, random.next() < 0.5 ? start : pick(random, bytes.length), start, end)
    return changed
  },
  'cut off': (bytes, random) => bytes.subarray(0, pick(random, bytes.length)),
  'a piece removed': (bytes, random) => {
    const [start, end] = pickRange(random, bytes)
    return Buffer.concat([bytes.subarray(0, start), bytes.subarray(end)])
  },
  'a byte put in': (bytes, random) =>
    insert(bytes, pick(random, bytes.length + 1), Buffer.of(pick(random, 256))),
  'a piece repeated': (bytes, random) => {
    const [start, end] = pickRange(random, bytes)
    return insert(bytes, end, bytes.subarray(start, end))
  },
  appended: (bytes, random, other) => {
    const [start, end] = pickRange(random, other)
    return Buffer.concat([bytes, other.subarray(start, end)])
  },
}

const names = Object.keys(changes)

/** Changes one part, or for a chain the list of its certificates. */
export function mutate(
  input: readonly Buffer[],
  other: readonly Buffer[],
  random: Random,
): { change: string; input: Buffer[] } {
  const changed = [...input]
  if (input.length > 1 && random.next() < 0.1) return mutateList(changed, other, random)
  const change = names[pick(random, names.length)]!
  const place = pick(random, input.length)
  const foreign = other[pick(random, other.length)]!
  changed[place] = changes[change]!(input[place]!, random, foreign)
  return { change, input: changed }
}

function mutateList(input: Buffer[], other: readonly Buffer[], random: Random) {
  const place = pick(random, input.length)
  const kind = pick(random, 4)
  if (kind === 0) input.splice(place, 1)
  if (kind === 1) input.splice(place, 0, input[pick(random, input.length)]!)
  if (kind === 2) input.splice(pick(random, input.length), 0, ...input.splice(place, 1))
  if (kind === 3) input.splice(place, pick(random, 2), other[pick(random, other.length)]!)
  return { change: 'the list of certificates', input }
}

/**
 * Whether nothing that was signed differs. That is so
 * - for a chain whose certificates were all issued to genuine phones, each byte for byte: one that
 *   was repeated, or exchanged for another of the same key, proves as much;
 * - for Apple's objects whose signed members are equal: the receipt is for Apple's servers and the
 *   device does not sign it, and lengths and members can be written in another form or order.
 *
 * Of a Play token every character counts.
 * @param genuine other genuine evidence
 */
export function isSameEvidence(
  kind: VectorKind,
  changed: readonly Buffer[],
  input: readonly Buffer[],
  genuine: readonly (readonly Buffer[])[],
): boolean {
  if (kind === 'key_attestation') {
    const issued = new Set(genuine.flat().map((certificate) => certificate.toString('hex')))
    return changed.every((certificate) => issued.has(certificate.toString('hex')))
  }
  if (kind === 'play_integrity') return changed[0]!.equals(input[0]!)
  const [before, after] = [input, changed].map(([bytes]) => readSigned(bytes!))
  return before !== null && before === after
}

type Members = {
  fmt?: unknown
  authData?: unknown
  attStmt?: { x5c?: unknown }
  signature?: unknown
  authenticatorData?: unknown
}

/** What is signed, or signs, of an attestation or an assertion. */
function readSigned(bytes: Uint8Array): string | null {
  try {
    const members = decode<Members>(new Uint8Array(bytes))
    const { authData, attStmt, signature, authenticatorData } = members
    const parts = [authData, attStmt?.x5c, signature, authenticatorData].flat()
    const given = parts.filter((part) => part !== undefined)
    if (!given.every((part) => part instanceof Uint8Array)) return null
    return given.map((part) => Buffer.from(part as Uint8Array).toString('hex')).join()
  } catch {
    return null
  }
}

/** The vectors of genuine evidence. */
export const listGenuine = (vectors: readonly AttestationVector[]): AttestationVector[] =>
  vectors.filter(({ verdict }) => verdict === 'verified')
