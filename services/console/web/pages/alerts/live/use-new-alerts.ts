/** How many alerts of a tenant are new since the list was read, as the server announces them. */
import { useEffect, useState } from 'react'
import { followAlerts } from './alert-stream.ts'

type Seqs = { seen: number; last: number }

/**
 * @param live false keeps no connection
 * @returns `see` takes what is known now as seen: call it when the list is read again
 */
export function useNewAlerts(
  tenant: string,
  live: boolean,
): { count: number; connected: boolean; see: () => void } {
  const [seqs, setSeqs] = useState<Seqs | null>(null)
  const [connected, setConnected] = useState(false)
  useEffect(() => {
    if (!live) return
    return followAlerts(tenant, (state) => {
      setConnected(state.connected)
      const { lastSeq: last } = state
      if (last === null) return
      // A lost connection resumes: what was raised meanwhile is new as well.
      setSeqs((before) => ({ seen: before?.seen ?? last, last: Math.max(before?.last ?? 0, last) }))
    })
  }, [tenant, live])
  return {
    count: seqs === null ? 0 : seqs.last - seqs.seen,
    connected,
    see: () => setSeqs((before) => before && { ...before, seen: before.last }),
  }
}
