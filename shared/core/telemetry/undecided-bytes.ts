/**
 * The undecided bytes of each tenant at one edge: those it has stored beyond the low watermark.
 * Bytes are added up in slices of the stream, one for each reading of the watermark; a slice is
 * dropped once the watermark has passed its end. Memory is bounded: too many slices are merged in
 * pairs, and new slices get that width. Merging only lets bytes count a little longer.
 */

export type UndecidedBytes = {
  /** Counts an event once it is stored. @param sequence of its message */
  add: (sequence: number, tenantId: string, bytes: number) => void
  /** Drops what is decided, and everything when the stream was made again. */
  look: (look: WatermarkLook) => void
  /** Bytes of a tenant that wait. */
  of: (tenantId: string) => number
  /** The newest sequence counted so far; 0 before the first. */
  newest: () => number
}

export type WatermarkLook = {
  lowWatermark: number
  /** The stream's last sequence at that moment. */
  lastSequence: number
  /** `newest()` before the stream was asked. */
  newestBefore: number
}

type Slice = { lastSequence: number; bytes: Map<string, number> }

/** Slices kept: 8 minutes of looks before the first merge; 1,000 tenants in each are some 50 MB. */
const slicesMax = 512

export function createUndecidedBytes(): UndecidedBytes {
  let slices: Slice[] = []
  let open: Slice = { lastSequence: 0, bytes: new Map() }
  let newest = 0
  /** Looks that a slice is open for, and those that the open one has seen. */
  let width = 1
  let looks = 0
  const totals = new Map<string, number>()

  const begin = () => {
    open = { lastSequence: 0, bytes: new Map() }
    looks = 0
  }
  const clear = () => {
    slices = []
    begin()
    newest = 0
    totals.clear()
  }
  const drop = ({ bytes }: Slice) => {
    for (const [tenantId, count] of bytes) {
      const left = totals.get(tenantId)! - count
      if (left > 0) totals.set(tenantId, left)
      else totals.delete(tenantId)
    }
  }

  return {
    add: (sequence, tenantId, bytes) => {
      newest = Math.max(newest, sequence)
      open.lastSequence = Math.max(open.lastSequence, sequence)
      open.bytes.set(tenantId, (open.bytes.get(tenantId) ?? 0) + bytes)
      totals.set(tenantId, (totals.get(tenantId) ?? 0) + bytes)
    },
    look: ({ lowWatermark, lastSequence, newestBefore }) => {
      // The stream was recreated and its sequences start at 1: the counted bytes are gone.
      if (lastSequence < newestBefore) return clear()
      for (const slice of [...slices, open]) if (slice.lastSequence <= lowWatermark) drop(slice)
      slices = slices.filter((slice) => slice.lastSequence > lowWatermark)
      if (open.lastSequence <= lowWatermark) begin()
      if (slices.length === 0) width = 1
      if (open.bytes.size === 0 || ++looks < width) return
      slices.push(open)
      begin()
      if (slices.length <= slicesMax) return
      slices = mergePairs(slices)
      width *= 2
    },
    of: (tenantId) => totals.get(tenantId) ?? 0,
    newest: () => newest,
  }
}

function mergePairs(slices: readonly Slice[]): Slice[] {
  const merged: Slice[] = []
  for (let at = 0; at < slices.length; at += 2) {
    const [first, second] = [slices[at]!, slices[at + 1]]
    if (second !== undefined) {
      for (const [tenantId, count] of second.bytes) {
        first.bytes.set(tenantId, (first.bytes.get(tenantId) ?? 0) + count)
      }
      first.lastSequence = Math.max(first.lastSequence, second.lastSequence)
    }
    merged.push(first)
  }
  return merged
}
