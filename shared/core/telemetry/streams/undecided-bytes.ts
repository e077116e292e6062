/**
 * Counts the undecided bytes of each tenant at one edge: those that it stored beyond the low
 * watermark. Bytes are summed in slices of the stream, one for each observation of the watermark. A
 * slice is dropped once the watermark passes its end. Memory is bounded: when there are too many
 * slices, pairs of them are merged, and new slices get that width. Merged bytes count a little
 * longer.
 */

type UndecidedBytes = {
  /** Counts an event once it is stored. @param sequence of its message */
  add: (sequence: number, tenantId: string, bytes: number) => void
  /**
   * Drops what is decided, and everything when the stream was recreated or put back to an earlier
   * copy.
   * @returns whether that was so
   */
  observe: (observed: ObservedWatermark) => boolean
  /** Undecided bytes of a tenant. */
  of: (tenantId: string) => number
  /** The newest sequence counted so far; 0 before the first. */
  newest: () => number
}

type ObservedWatermark = {
  lowWatermark: number
  /** The stream's last sequence at that moment. */
  lastSequence: number
  /** `newest()` before the query of the stream. */
  newestBefore: number
}

type Slice = { lastSequence: number; bytes: Map<string, number> }

/** Most slices: 8 minutes of observations. With 1,000 tenants in each they are some 50 MB. */
const slicesMax = 512

/** Creates an empty counter. */
export function createUndecidedBytes(): UndecidedBytes {
  let slices: Slice[] = []
  let open: Slice = { lastSequence: 0, bytes: new Map() }
  let newest = 0
  /** Observations per slice, and those of the open slice so far. */
  let width = 1
  let observations = 0
  const totals = new Map<string, number>()

  const begin = () => {
    open = { lastSequence: 0, bytes: new Map() }
    observations = 0
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
    observe: ({ lowWatermark, lastSequence, newestBefore }) => {
      if (lastSequence < newestBefore) {
        // Sequences repeat from an earlier one on: the counted bytes are gone.
        clear()
        return true
      }
      for (const slice of [...slices, open]) if (slice.lastSequence <= lowWatermark) drop(slice)
      slices = slices.filter((slice) => slice.lastSequence > lowWatermark)
      if (open.lastSequence <= lowWatermark) begin()
      if (slices.length === 0) width = 1
      if (open.bytes.size === 0 || ++observations < width) return false
      slices.push(open)
      begin()
      if (slices.length <= slicesMax) return false
      slices = mergePairs(slices)
      width *= 2
      return false
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
