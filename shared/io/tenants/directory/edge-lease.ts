/**
 * An edge's lease on its copy of the tenant directory: proof, on the edge's monotonic clock, that
 * the copy was current at most one lease ago. An announcement is a write to the stream that also
 * carries the directory. Once the edge has read that write, and on to the end, the copy has
 * everything before it, and later changes know of the edge. Without a lease an edge refuses
 * submissions.
 */

type LeaseOptions = {
  /**
   * Stores this edge's entry and resolves with its revision, which must be above every revision
   * stored before. Rejects when it is unknown whether it was stored.
   */
  announce: (appliedRevision: number) => Promise<number>
  /** Called when the copy is current for the first time since `restart`. */
  onCurrent: () => void
  onAnnounced: (outcome: 'stored' | 'failed') => void
  nowMs: () => number
  leaseMs: number
}

export type EdgeLease = {
  /** Whether the copy may be trusted at this moment. */
  valid: () => boolean
  /** Announces, unless an announcement is under way. */
  renew: () => void
  /** Announces as soon as possible: consoles wait until this edge has applied a change. */
  announceChange: () => void
  /** The copy was read to the end of the bucket, which was this revision. */
  applied: (revision: number) => void
  /** Reading began anew: only announcements made from now on can prove its copy current. */
  restart: () => void
  /** Gives the lease up at once. */
  drop: () => void
  /**
   * Milliseconds since the oldest stored announcement that was not read back; 0 if none.
   */
  unprovenMs: () => number
  /** The newest revision that the active snapshot reflects. */
  servedRevision: () => number
}

type Proof = { revision: number; askedMs: number; storedMs: number }

/** Announcements that may wait to be proven; at two a second more are of no use. */
const proofsMax = 16

/** A lease that is not held yet. */
export function createEdgeLease(options: LeaseOptions): EdgeLease {
  const { announce, onCurrent, onAnnounced, nowMs, leaseMs } = options
  let validUntilMs = Number.NEGATIVE_INFINITY
  let reading = 0
  let current = false
  let appliedRevision = 0
  let servedRevision = 0
  let announcing = false
  let again = false
  let proofs: Proof[] = []

  const settleProofs = () => {
    let askedMs = Number.NEGATIVE_INFINITY
    while (proofs[0] !== undefined && proofs[0].revision <= appliedRevision) {
      askedMs = proofs.shift()!.askedMs
    }
    if (askedMs === Number.NEGATIVE_INFINITY) return
    validUntilMs = Math.max(validUntilMs, askedMs + leaseMs)
    if (current) return
    current = true
    servedRevision = appliedRevision
    onCurrent()
    announceChange()
  }

  const run = async () => {
    const askedBy = reading
    announcing = true
    do {
      again = false
      const askedMs = nowMs()
      const revision = await announce(servedRevision).catch(() => null)
      onAnnounced(revision === null ? 'failed' : 'stored')
      // An announcement before a restart proves nothing after it.
      if (askedBy !== reading) return
      // The next renewal tries again; a change that waits must not spin on a broken connection.
      if (revision === null) break
      if (proofs.length === proofsMax) proofs.shift()
      proofs.push({ revision, askedMs, storedMs: nowMs() })
      settleProofs()
    } while (again)
    announcing = false
  }

  const renew = () => {
    if (!announcing) void run()
  }
  const announceChange = () => {
    if (announcing) again = true
    else void run()
  }

  const restart = () => {
    reading++
    announcing = false
    current = false
    appliedRevision = 0
    proofs = []
  }

  return {
    valid: () => nowMs() < validUntilMs,
    renew,
    announceChange,
    applied: (revision) => {
      appliedRevision = revision
      if (current) servedRevision = revision
      settleProofs()
    },
    restart,
    drop: () => {
      restart()
      validUntilMs = Number.NEGATIVE_INFINITY
    },
    unprovenMs: () => (proofs[0] === undefined ? 0 : nowMs() - proofs[0].storedMs),
    servedRevision: () => servedRevision,
  }
}
